#include "session/host_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "session/mounts.h"
#include "session/session.h"

#define POINTER "/path"

static int fail(int error, const char *path, struct ks_error *err)
{
	static const struct {
		int error;
		enum ks_reason reason;
	} reasons[] = {
		{ ENOENT, KS_E_NOT_FOUND },	  { ENOTDIR, KS_E_NOT_A_DIRECTORY }, { EACCES, KS_E_PERMISSION_DENIED },
		{ EPERM, KS_E_PERMISSION_DENIED }, { EROFS, KS_E_READ_ONLY },	     { ENOSPC, KS_E_NO_SPACE },
		{ EDQUOT, KS_E_NO_SPACE },	  { ELOOP, KS_E_INVALID_PATH },	     { ENAMETOOLONG, KS_E_INVALID_PATH },
		{ EISDIR, KS_E_IS_DIRECTORY },
	};
	enum ks_reason reason = KS_E_IO;

	for (size_t i = 0; i < KS_COUNT(reasons); i++)
		if (reasons[i].error == error)
			reason = reasons[i].reason;
	(void)ks_fail_errno(err, reason, error, "%.200s", path);
	return ks_error_at(err, POINTER);
}

static bool in_session(const struct ks_session *session, const char *path)
{
	if (session->workspace && ks_path_within(path, session->workspace))
		return true;
	for (size_t i = 0; i < session->mount_count; i++)
		if (session->mounts[i].writable && ks_path_within(path, session->mounts[i].source))
			return true;
	return false;
}

/* As it was given, and as it is: a link of a workspace may lead out of it. */
static int check_place(const struct ks_core *core, const char *path, struct ks_error *err)
{
	for (struct ks_list *n = core->sessions.next; n != &core->sessions; n = n->next)
		if (in_session(KS_ENTRY(n, struct ks_session, node), path)) {
			(void)ks_fail_at(err, KS_E_INVALID_PATH, POINTER, "%.200s is in a directory that code in a box can change", path);
			return ks_error_hint(err, "name a file outside of workspaces and writable mounts, or use a blob");
		}
	return 0;
}

static int check_real_place(const struct ks_core *core, int fd, struct ks_error *err)
{
	char link[40], path[PATH_MAX];

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd); /* proc(5): where it is now */
	ssize_t n = readlink(link, path, sizeof(path) - 1);
	if (n < 0)
		return ks_fail_errno(err, KS_E_INTERNAL, errno, "/proc does not say where a directory is");
	path[n] = '\0';
	return check_place(core, path, err);
}

static int not_regular(const struct stat *st, const char *path, struct ks_error *err)
{
	if (S_ISDIR(st->st_mode))
		return fail(EISDIR, path, err);
	(void)ks_fail_at(err, KS_E_NOT_REGULAR, POINTER, "%.200s is no regular file", path);
	return ks_error_hint(err, "name a file, or one that is not there yet");
}

int ks_host_file_open(const struct ks_core *core, const char *path, struct ks_error *err)
{
	char link[40];
	struct stat st;

	if (check_place(core, path, err) < 0)
		return -1;
	KS_AUTOCLOSE int named = open(path, O_PATH | O_CLOEXEC); /* opening a device or a FIFO can do things: this does not open */
	if (named < 0 || fstat(named, &st) < 0)
		return fail(errno, path, err);
	if (!S_ISREG(st.st_mode))
		return not_regular(&st, path, err);
	if (check_real_place(core, named, err) < 0)
		return -1;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", named);
	int fd = open(link, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	return fd < 0 ? fail(errno, path, err) : fd;
}

static int open_directory(const struct ks_core *core, const char *path, const char **ret_name, struct ks_error *err)
{
	const char *slash = strrchr(path, '/');
	KS_AUTOFREE char *above = strndup(path, slash == path ? 1 : (size_t)(slash - path));

	*ret_name = slash + 1;
	if (!above)
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	if (slash[1] == '\0' || strcmp(slash + 1, ".") == 0 || strcmp(slash + 1, "..") == 0)
		return fail(EISDIR, path, err);
	KS_AUTOCLOSE int dir = open(above, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return fail(errno, above, err);
	return check_real_place(core, dir, err) < 0 ? -1 : KS_TAKE_FD(dir);
}

int ks_host_file_create(const struct ks_core *core, const char *path, struct ks_host_file *ret, struct ks_error *err)
{
	struct ks_host_file file = { .fd = -1 };
	const char *name;
	struct stat st;
	unsigned token;

	if (check_place(core, path, err) < 0)
		return -1;
	KS_AUTOCLOSE int dir = open_directory(core, path, &name, err);
	if (dir < 0)
		return -1;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		if (!S_ISREG(st.st_mode))
			return not_regular(&st, path, err);
	} else if (errno != ENOENT) {
		return fail(errno, path, err);
	}
	if (getrandom(&token, sizeof(token), 0) != (ssize_t)sizeof(token) || !(file.name = strdup(name)))
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	(void)snprintf(file.temporary, sizeof(file.temporary), ".kern-snapshot-%08x", token);
	file.fd = openat(dir, file.temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (file.fd < 0) {
		free(file.name);
		return fail(errno, path, err);
	}
	file.dir = KS_TAKE_FD(dir);
	*ret = file;
	return 0;
}

int ks_host_file_commit(struct ks_host_file *file, struct ks_error *err)
{
	if (renameat(file->dir, file->temporary, file->dir, file->name) < 0)
		return fail(errno, file->name, err);
	file->temporary[0] = '\0';
	return 0;
}

void ks_host_file_discard(struct ks_host_file *file)
{
	if (file->temporary[0])
		(void)unlinkat(file->dir, file->temporary, 0);
	if (file->name) {
		ks_close(&file->dir);
		ks_close(&file->fd);
	}
	free(file->name);
	*file = (struct ks_host_file){ .dir = -1, .fd = -1 };
}
