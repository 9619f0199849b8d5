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
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#include "base/fds.h"
#include "copy.h"
#include "workspace/beneath.h"
#include "workspace/remove.h"
#include "workspace/walk.h"

#define DEPS KS_SKIPPED_TOP_NAME
#define STAGE KS_STAGE_TOP_NAME
#define SLICE_US 100000
#define KS_CACHE_ENTRIES 16 /* those that were used last */
#define KS_CACHE_BYTES ((int64_t)512 << 20) /* of one */
#define KS_CACHE_AGE_S (7 * 86400) /* since it was installed: an index has newer ones by then */
#define KS_CACHE_UNFINISHED_S 3600 /* then nobody is still at work on it */

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

/* 0, or -1 with err. */
static int remove_all(int dir, const char *name, struct ks_error *err)
{
	struct ks_remove *remove = NULL;
	int rc = ks_remove_start(dir, name, &remove, err);

	while (rc == 0)
		rc = ks_remove_step(remove, SLICE_US, err);
	ks_remove_free(remove);
	return rc < 0 ? -1 : 0;
}

static int clear(int workspace, struct ks_error *err)
{
	KS_AUTOCLOSE int stage = ks_open_beneath(workspace, STAGE, O_RDONLY | O_DIRECTORY, KS_BENEATH_STAY);

	if (stage == -EACCES)
		stage = ks_open_accessible(workspace, STAGE);
	if (stage < 0) /* a file or a link goes by its name */
		return unlinkat(workspace, STAGE, 0) == 0 || errno == ENOENT ? 0 : broken(err, "cannot clear " STAGE);
	if (remove_all(stage, NULL, err) < 0)
		return -1;
	return unlinkat(workspace, STAGE, AT_REMOVEDIR) < 0 ? broken(err, "cannot clear " STAGE) : 0;
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

static int open_entry(int cache, const char *key)
{
	char path[128];

	if (strlen(key) != 64 || strchr(key, '/'))
		ks_run_damaged();
	(void)snprintf(path, sizeof(path), "%s/tree", key);
	return ks_open_beneath(cache, path, O_RDONLY | O_DIRECTORY, KS_BENEATH_STAY);
}

/* 1: taken from the cache. 0: not there, or it went while we copied; then the tree is empty again. */
static int take_cached(int cache, const char *key, int tree, struct ks_error *err)
{
	const struct timespec used[] = { { .tv_nsec = UTIME_NOW }, { .tv_nsec = UTIME_OMIT } };
	KS_AUTOCLOSE int entry = open_entry(cache, key);
	struct stat st;

	if (entry < 0 || fstatat(cache, key, &st, AT_SYMLINK_NOFOLLOW) < 0 || time(NULL) - st.st_mtim.tv_sec > KS_CACHE_AGE_S)
		return 0;
	(void)utimensat(cache, key, used, AT_SYMLINK_NOFOLLOW);
	if (ks_copy_tree(entry, tree, INT64_MAX, err) == 0)
		return 1;
	return remove_all(tree, NULL, err);
}

/* Request: known, device, inode of the session's packages; the number of the cache's root, 0 for none; the key there. Result: were
 * there no packages, and have they been taken from the cache? */
int ks_job_deps_stage(struct ks_run *run, struct ks_unpack *in, struct ks_buf *ret_result, struct ks_error *err)
{
	static const char *const places[] = { STAGE "/tree", STAGE "/tmp", STAGE "/home" };
	const bool known = ks_unpack_int(in) != 0;
	const int64_t device = ks_unpack_int(in), inode = ks_unpack_int(in), cache = ks_unpack_int(in);
	const char *key = ks_unpack_bytes(in, NULL);
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
	if (tree < 0 || ks_copy_tree(deps, tree, INT64_MAX, err) < 0)
		return tree < 0 ? broken(err, "cannot open " STAGE) : -1;
	const bool fresh = is_empty(deps) == 1;
	int cached = 0;
	if (fresh && cache > 0) {
		const int root = ks_run_root(run, cache, false, err);
		cached = root < 0 ? -1 : take_cached(root, key, tree, err);
	}
	if (cached < 0)
		return -1;
	ks_pack_int(ret_result, fresh);
	ks_pack_int(ret_result, cached);
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

/* ---- the cache ---- */

/* What has to go: an entry that is out of date, one that nobody has finished, of too many the one that was used longest ago. "": none. */
static void find_stale(int cache, char ret[NAME_MAX + 1])
{
	int copy = openat(cache, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	time_t oldest = 0;
	struct stat st;
	bool old = false;
	int count = 0;

	ret[0] = '\0';
	for (const struct dirent *e; dir && !old && (e = readdir(dir));) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || fstatat(cache, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		const bool finished = e->d_name[0] != '.';
		old = time(NULL) - st.st_mtim.tv_sec > (finished ? KS_CACHE_AGE_S : KS_CACHE_UNFINISHED_S);
		count += finished;
		if (!old && (!finished || (ret[0] && st.st_atim.tv_sec >= oldest)))
			continue;
		oldest = st.st_atim.tv_sec;
		(void)snprintf(ret, NAME_MAX + 1, "%s", e->d_name);
	}
	if (dir)
		(void)closedir(dir);
	if (!old && count <= KS_CACHE_ENTRIES)
		ret[0] = '\0';
}

static int store(int cache, const char *key, int deps, const char *name, struct ks_error *err)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "%s/tree", name);
	if (mkdirat(cache, name, 0700) < 0 || mkdirat(cache, path, 0755) < 0)
		return broken(err, "cannot make an entry of the cache");
	KS_AUTOCLOSE int tree = ks_open_beneath(cache, path, O_RDONLY | O_DIRECTORY, KS_BENEATH_STAY);
	if (tree < 0 || ks_copy_tree(deps, tree, KS_CACHE_BYTES, err) < 0)
		return tree < 0 ? broken(err, "cannot open an entry of the cache") : -1;
	/* complete or absent; somebody else's of the same key is as good */
	return renameat2(cache, name, cache, key, RENAME_NOREPLACE) == 0 ? 0 : broken(err, "cannot name an entry of the cache");
}

/* Request: the number of the cache's root, the key. Leaves the cache within its bounds. */
int ks_job_deps_store(struct ks_run *run, struct ks_unpack *in, struct ks_buf *ret_result, struct ks_error *err)
{
	const int64_t number = ks_unpack_int(in);
	const char *key = ks_unpack_bytes(in, NULL);
	char name[32], stale[NAME_MAX + 1];
	struct ks_error ignored;
	unsigned token = 0;

	(void)ret_result;
	if (!ks_unpack_end(in))
		ks_run_damaged();
	const int cache = ks_run_root(run, number, true, err), workspace = ks_run_root(run, 0, true, err);
	KS_AUTOCLOSE int there = cache < 0 ? -1 : open_entry(cache, key);
	KS_AUTOCLOSE int deps = workspace < 0 ? -1 : ks_open_beneath(workspace, DEPS, O_RDONLY | O_DIRECTORY, KS_BENEATH_STAY);
	if (cache < 0 || deps < 0 || getrandom(&token, sizeof(token), 0) != sizeof(token))
		return broken(err, "cannot open the cache");
	if (there >= 0) /* out of date, or it would have been taken */
		(void)remove_all(cache, key, &ignored);
	(void)snprintf(name, sizeof(name), ".new-%08x", token);
	int rc = store(cache, key, deps, name, err);
	if (rc < 0)
		(void)remove_all(cache, name, &ignored);
	for (int i = 0; i < 2 * KS_CACHE_ENTRIES; i++) {
		find_stale(cache, stale);
		if (!stale[0] || remove_all(cache, stale, &ignored) < 0)
			break;
	}
	return rc;
}
