#include "names.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

void ks_name_free(struct ks_name *name)
{
	free(name->followed);
}

int ks_name_fail(const struct ks_name *name, int error, struct ks_error *err)
{
	static const struct {
		int error;
		enum ks_reason reason;
		const char *hint;
	} reasons[] = {
		{ ENOENT, KS_E_NOT_FOUND, "" },
		{ ENOTDIR, KS_E_NOT_A_DIRECTORY, "" },
		{ EISDIR, KS_E_IS_DIRECTORY, "" },
		{ EEXIST, KS_E_EXISTS, "" },
		{ ENOTEMPTY, KS_E_NOT_EMPTY, "say recursive: true to remove it with what is in it" },
		{ ELOOP, KS_E_PATH_ESCAPE, "a symbolic link is in the way: followLinks: true follows those that stay inside" },
		{ EXDEV, KS_E_PATH_ESCAPE, "it leaves the workspace, or crosses a mount point; links that are followed must be relative" },
		{ EACCES, KS_E_PERMISSION_DENIED, "the box's user may not do that" },
		{ EPERM, KS_E_PERMISSION_DENIED, "the box's user may not do that" },
		{ EOVERFLOW, KS_E_PERMISSION_DENIED, "it belongs to a user that the box does not know" }, /* of an id-mapped mount */
		{ EROFS, KS_E_READ_ONLY, "" },
		{ ENOSPC, KS_E_NO_SPACE, "" },
		{ EDQUOT, KS_E_NO_SPACE, "" },
		{ EFBIG, KS_E_TOO_LARGE, "" },
		{ ENAMETOOLONG, KS_E_INVALID_PATH, "" },
		{ EINVAL, KS_E_INVALID_PATH, "" },
		{ EAGAIN, KS_E_IO, "a program holds a lease on it: try again" }, /* open(2), O_NONBLOCK */
	};
	enum ks_reason reason = KS_E_IO;
	const char *hint = "";

	for (size_t i = 0; i < KS_COUNT(reasons); i++)
		if (reasons[i].error == error) {
			reason = reasons[i].reason;
			hint = reasons[i].hint;
		}
	(void)ks_fail_errno(err, reason, error, "%.200s", name->path);
	if (error == ELOOP && name->follow)
		hint = "links go round in a circle, or changed while they were followed";
	if (hint[0])
		(void)ks_error_hint(err, "%s", hint);
	return ks_error_at(err, name->pointer);
}

int ks_name_unpack(const struct ks_run *run, struct ks_unpack *in, const char *pointer, bool has_follow, bool to_write,
		   struct ks_name *ret, struct ks_error *err)
{
	const int64_t root = ks_unpack_int(in);

	*ret = (struct ks_name){ .pointer = pointer, .path = ks_unpack_bytes(in, NULL) };
	ret->follow = has_follow && ks_unpack_int(in) != 0;
	if (in->bad)
		ks_run_damaged();
	ret->root = ks_run_root(run, root, to_write, err);
	return ret->root < 0 ? ks_error_at(err, pointer) : 0;
}

int ks_name_follow(struct ks_name *name, bool keep_last, struct ks_error *err)
{
	if (!name->follow || name->followed)
		return 0;
	int rc = ks_follow_beneath(name->root, name->path, keep_last, KS_BENEATH_STAY, &name->followed);
	if (rc < 0)
		return ks_name_fail(name, -rc, err);
	name->path = name->followed;
	return 0;
}

int ks_name_open(const struct ks_name *name, int flags, struct ks_error *err)
{
	int fd = ks_open_beneath(name->root, name->path, flags, KS_BENEATH_STAY);

	return fd < 0 ? ks_name_fail(name, -fd, err) : fd;
}

/* A path of a request has at most PATH_MAX bytes: session/place.c. */
static void parent_of(const char *path, char ret[PATH_MAX])
{
	const char *slash = strrchr(path, '/');
	size_t len = slash ? (size_t)(slash - path) : 1;

	if (len >= PATH_MAX)
		ks_run_damaged();
	memcpy(ret, slash ? path : ".", len);
	ret[len] = '\0';
}

bool ks_name_is_mounted_file(const struct ks_name *name, struct stat *ret_st)
{
	return strcmp(name->path, ".") == 0 && fstat(name->root, ret_st) == 0 && S_ISREG(ret_st->st_mode);
}

static int fail_mounted_file(const struct ks_name *name, struct ks_error *err)
{
	(void)ks_fail_at(err, KS_E_NOT_REGULAR, name->pointer, "a file that is mounted by itself cannot be replaced");
	return ks_error_hint(err, "mount the directory that it is in");
}

int ks_name_open_parent(const struct ks_name *name, const char **ret_last, struct ks_error *err)
{
	const char *slash = strrchr(name->path, '/');
	char parent[PATH_MAX];
	struct stat st;

	if (ks_name_is_mounted_file(name, &st))
		return fail_mounted_file(name, err);

	parent_of(name->path, parent);
	int fd = ks_open_beneath(name->root, parent, O_PATH | O_DIRECTORY, KS_BENEATH_STAY);
	if (fd < 0)
		return ks_name_fail(name, -fd, err);
	*ret_last = slash ? slash + 1 : name->path;
	return fd;
}

int ks_name_open_regular(const struct ks_name *name, struct stat *ret_st, struct ks_error *err)
{
	struct stat st;

	if (ks_name_is_mounted_file(name, ret_st)) { /* open since the start, where the box's user may read it: confine.c */
		int copy = fcntl(name->root, F_GETFL) & O_PATH ? -1 : fcntl(name->root, F_DUPFD_CLOEXEC, 0);
		return copy < 0 ? ks_name_fail(name, EACCES, err) : copy;
	}
	KS_AUTOCLOSE int look = ks_name_open(name, O_PATH, err);
	if (look < 0)
		return -1;
	/* opening alone does something to a device; what comes in between is caught by the second look */
	if (fstat(look, &st) < 0)
		return ks_name_fail(name, errno, err);
	if (!S_ISREG(st.st_mode))
		return ks_name_fail_type(name, st.st_mode, err);
	KS_AUTOCLOSE int fd = ks_name_open(name, O_RDONLY, err);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) < 0)
		return ks_name_fail(name, errno, err);
	if (!S_ISREG(st.st_mode))
		return ks_name_fail_type(name, st.st_mode, err);
	*ret_st = st;
	return KS_TAKE_FD(fd);
}

/* Each level is made below the descriptor of the one above it, and opened again without links. */
int ks_name_make_dirs(const struct ks_name *name, const char *path, size_t *ret_made, struct ks_error *err)
{
	KS_AUTOCLOSE int at = ks_open_beneath(name->root, ".", O_PATH | O_DIRECTORY, KS_BENEATH_STAY);
	int error = at < 0 ? -at : 0;
	size_t made = 0, there = 0; /* levels; bytes of path */

	for (const char *part = path, *end; !error && *part; part = end + (*end == '/')) {
		char one[NAME_MAX + 1];
		end = strchrnul(part, '/');
		(void)snprintf(one, sizeof(one), "%.*s", (int)(end - part), part);
		if (mkdirat(at, one, 0777) == 0) { /* the umask is 022 */
			made++;
		} else if (errno == EEXIST) {
			made = 0;
		} else {
			error = errno;
			break;
		}
		there = (size_t)(end - path);
		int next = ks_open_beneath(at, one, O_PATH | O_DIRECTORY, KS_BENEATH_STAY);
		error = next < 0 ? -next : 0;
		ks_close(&at);
		at = next;
	}
	if (!error) {
		*ret_made = made;
		return 0;
	}
	char parent[PATH_MAX];
	(void)snprintf(parent, sizeof(parent), "%.*s", (int)there, path);
	ks_name_unmake_dirs(name, parent, made);
	return ks_name_fail(name, error, err);
}

void ks_name_unmake_dirs(const struct ks_name *name, const char *path, size_t made)
{
	char at[PATH_MAX];
	struct ks_error ignored;

	(void)snprintf(at, sizeof(at), "%s", path);
	for (; made > 0; made--) {
		const struct ks_name here = { .root = name->root, .path = at, .pointer = name->pointer };
		const char *last;
		KS_AUTOCLOSE int dir = ks_name_open_parent(&here, &last, &ignored);
		if (dir < 0 || unlinkat(dir, last, AT_REMOVEDIR) < 0)
			return;
		*(at + (last > at ? last - at - 1 : 0)) = '\0';
	}
}

int ks_name_fail_type(const struct ks_name *name, mode_t mode, struct ks_error *err)
{
	static const char *const words[] = { "", "a directory", "a symbolic link", "a FIFO", "a socket", "a device" };

	if (S_ISLNK(mode))
		return ks_name_fail(name, ELOOP, err);
	return ks_fail_at(err, S_ISDIR(mode) ? KS_E_IS_DIRECTORY : KS_E_NOT_REGULAR, name->pointer, "%.200s is %s, not a regular file",
			  name->path, words[ks_file_type(mode)]);
}

int ks_file_type(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return 0;
	case S_IFDIR:
		return 1;
	case S_IFLNK:
		return 2;
	case S_IFIFO:
		return 3;
	case S_IFSOCK:
		return 4;
	default:
		return 5;
	}
}
