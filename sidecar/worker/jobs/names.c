#include "names.h"

#include <errno.h>
#include <fcntl.h>

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
		{ EXDEV, KS_E_PATH_ESCAPE, "it leaves the workspace, or crosses a mount point" },
		{ EACCES, KS_E_PERMISSION_DENIED, "the box's user may not do that" },
		{ EPERM, KS_E_PERMISSION_DENIED, "the box's user may not do that" },
		{ EROFS, KS_E_READ_ONLY, "" },
		{ ENOSPC, KS_E_NO_SPACE, "" },
		{ EDQUOT, KS_E_NO_SPACE, "" },
		{ EFBIG, KS_E_TOO_LARGE, "" },
		{ ENAMETOOLONG, KS_E_INVALID_PATH, "" },
		{ EINVAL, KS_E_INVALID_PATH, "" },
	};
	enum ks_reason reason = KS_E_IO;
	const char *hint = "";

	for (size_t i = 0; i < KS_COUNT(reasons); i++)
		if (reasons[i].error == error) {
			reason = reasons[i].reason;
			hint = reasons[i].hint;
		}
	(void)ks_fail_errno(err, reason, error, "%.200s", name->path);
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

int ks_name_open(const struct ks_name *name, int flags, struct ks_error *err)
{
	int fd = ks_open_beneath(name->root, name->path, flags, KS_BENEATH_STAY);

	return fd < 0 ? ks_name_fail(name, -fd, err) : fd;
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
