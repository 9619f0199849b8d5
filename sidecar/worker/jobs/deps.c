/* deps.c: the installed packages of a workspace (.deps), and the place beside them where a setup builds the next ones (.deps.new):
 *
 *	.deps.new/tree	what .deps is to become: mounted over .deps in the setup's box
 *	.deps.new/tmp	its /tmp
 *	.deps.new/home	its HOME
 *
 * Anybody who may write the workspace may put anything under these names at any time: none is followed, and all is done with the
 * rights of the box's user. */
#include "jobs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fds.h"
#include "copy.h"
#include "workspace/beneath.h"
#include "workspace/remove.h"
#include "workspace/walk.h"

#define DEPS KS_SKIPPED_TOP_NAME
#define STAGE KS_STAGE_TOP_NAME
#define SLICE_US 100000

static int refuse(struct ks_error *err, const char *what)
{
	(void)ks_fail(err, KS_E_SETUP_FAILED, DEPS " of the workspace %s", what);
	return ks_error_hint(err, "remove it, or open a session on a workspace without it");
}

static int broken(struct ks_error *err, const char *what)
{
	return ks_fail_errno(err, errno == ENOSPC || errno == EDQUOT ? KS_E_NO_SPACE : KS_E_SETUP_FAILED, errno, "%s", what);
}

/* 1, 0, or -1 with errno. */
static int is_empty(int dir_fd)
{
	int copy = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	int found = 0;

	if (!dir) {
		ks_close(&copy);
		return -1;
	}
	errno = 0;
	for (const struct dirent *e; !found && (e = readdir(dir));)
		found = strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	int rc = found ? 0 : errno ? -1 : 1;
	(void)closedir(dir);
	return rc;
}

static int clear(int workspace, struct ks_error *err)
{
	struct ks_remove *remove = NULL;
	KS_AUTOCLOSE int stage = ks_open_beneath(workspace, STAGE, O_RDONLY | O_DIRECTORY, KS_BENEATH_STAY);

	if (stage == -EACCES)
		stage = ks_open_accessible(workspace, STAGE);
	if (stage < 0) /* a file or a link goes by its name */
		return unlinkat(workspace, STAGE, 0) == 0 || errno == ENOENT ? 0 : broken(err, "cannot clear " STAGE);
	int rc = ks_remove_start(stage, NULL, &remove, err);
	while (rc == 0)
		rc = ks_remove_step(remove, SLICE_US, err);
	ks_remove_free(remove);
	return rc < 0 ? -1 : unlinkat(workspace, STAGE, AT_REMOVEDIR) < 0 ? broken(err, "cannot clear " STAGE) : 0;
}

/* What is there may be used when it is empty, or the one that the session knows. Makes one where nothing is. */
static int look_at_deps(int workspace, bool known, int64_t device, int64_t inode, int *ret_fd, struct ks_error *err)
{
	struct stat st;

	if (mkdirat(workspace, DEPS, 0755) < 0 && errno != EEXIST)
		return broken(err, "cannot make " DEPS);
	KS_AUTOCLOSE int fd = ks_open_beneath(workspace, DEPS, O_RDONLY | O_DIRECTORY, KS_BENEATH_STAY);
	if (fd == -EXDEV)
		return refuse(err, "is a mount point");
	if (fd == -ELOOP || fd == -ENOTDIR)
		return refuse(err, "is no directory");
	if (fd < 0 || fstat(fd, &st) < 0)
		return refuse(err, "cannot be opened");
	const bool same = known && (int64_t)st.st_dev == device && (int64_t)st.st_ino == inode;
	if (!same && is_empty(fd) != 1)
		return refuse(err, known ? "has been exchanged since the session knows it" :
					   "was not there when the session was opened, and no setup made it");
	*ret_fd = KS_TAKE_FD(fd);
	return 0;
}

/* Request: known, device, inode of the session's packages. Result: were there none? */
int ks_job_deps_stage(struct ks_run *run, struct ks_unpack *in, struct ks_buf *ret_result, struct ks_error *err)
{
	static const char *const places[] = { STAGE "/tree", STAGE "/tmp", STAGE "/home" };
	const bool known = ks_unpack_int(in) != 0;
	const int64_t device = ks_unpack_int(in), inode = ks_unpack_int(in);
	KS_AUTOCLOSE int deps = -1;

	if (!ks_unpack_end(in))
		ks_run_damaged();
	const int workspace = ks_run_root(run, 0, true, err);
	if (workspace < 0 || look_at_deps(workspace, known, device, inode, &deps, err) < 0 || clear(workspace, err) < 0)
		return -1;
	if (mkdirat(workspace, STAGE, 0700) < 0)
		return broken(err, "cannot make " STAGE);
	for (size_t i = 0; i < KS_COUNT(places); i++)
		if (mkdirat(workspace, places[i], 0755) < 0)
			return broken(err, "cannot make " STAGE);
	KS_AUTOCLOSE int tree = ks_open_beneath(workspace, places[0], O_RDONLY | O_DIRECTORY, KS_BENEATH_STAY);
	if (tree < 0 || ks_copy_tree(deps, tree, err) < 0)
		return tree < 0 ? broken(err, "cannot open " STAGE) : -1;
	ks_pack_int(ret_result, is_empty(deps) == 1);
	return 0;
}

/* Exchanges .deps and what was built beside it; once more takes it back. Result: is .deps empty now? */
int ks_job_deps_swap(struct ks_run *run, struct ks_unpack *in, struct ks_buf *ret_result, struct ks_error *err)
{
	if (!ks_unpack_end(in))
		ks_run_damaged();
	const int workspace = ks_run_root(run, 0, true, err);
	if (workspace < 0)
		return -1;
	KS_AUTOCLOSE int tree = ks_open_beneath(workspace, STAGE "/tree", O_RDONLY | O_DIRECTORY, KS_BENEATH_STAY);
	KS_AUTOCLOSE int stage = ks_open_beneath(workspace, STAGE, O_PATH | O_DIRECTORY, KS_BENEATH_STAY);
	if (tree < 0 || stage < 0) {
		errno = tree < 0 ? -tree : -stage;
		return broken(err, "cannot find what was installed");
	}
	/* a file system that cannot exchange can still put a directory in the place of an empty one: rename(2) */
	if (renameat2(stage, "tree", workspace, DEPS, RENAME_EXCHANGE) < 0 &&
	    (errno != EINVAL || renameat(stage, "tree", workspace, DEPS) < 0))
		return broken(err, "cannot put the installed packages in place");
	ks_pack_int(ret_result, is_empty(tree) == 1);
	return 0;
}

/* Request: also .deps, if it is an empty directory. */
int ks_job_deps_clear(struct ks_run *run, struct ks_unpack *in, struct ks_buf *ret_result, struct ks_error *err)
{
	const bool deps_too = ks_unpack_int(in) != 0;

	(void)ret_result;
	if (!ks_unpack_end(in))
		ks_run_damaged();
	const int workspace = ks_run_root(run, 0, true, err);
	if (workspace < 0 || clear(workspace, err) < 0)
		return -1;
	if (deps_too)
		(void)unlinkat(workspace, DEPS, AT_REMOVEDIR); /* not empty: then somebody uses it */
	return 0;
}
