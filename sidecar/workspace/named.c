/* named.c: what the host names: ks_workspace_open of private.h, ks_source_open of policy.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "beneath.h"
#include "policy.h"
#include "private.h"

#define POINTER "/workspace"

static int fail_open(struct ks_error *err, int error, const char *path)
{
	enum ks_reason reason = KS_E_IO;
	const char *hint = "name an existing directory, or one whose parent exists";

	if (error == ENOENT) {
		reason = KS_E_NOT_FOUND;
	} else if (error == ENOTDIR || error == EEXIST) {
		reason = KS_E_NOT_A_DIRECTORY;
	} else if (error == EACCES || error == EPERM) {
		reason = KS_E_PERMISSION_DENIED;
		hint = "give the user who runs the sidecar the right to it";
	} else if (error == ELOOP || error == ENAMETOOLONG) {
		reason = KS_E_INVALID_PATH;
	} else if (error == EROFS) {
		reason = KS_E_READ_ONLY;
	} else if (error == ENOSPC || error == EDQUOT) {
		reason = KS_E_NO_SPACE;
		hint = "make room on that disk";
	}
	ks_fail_errno(err, reason, error, "the workspace \"%.150s\" cannot be opened", path);
	(void)ks_error_hint(err, "%s", hint);
	return ks_error_at(err, POINTER);
}

/* Pins what a canonical path names now: a link that turned up in it since is refused, not followed. */
static int pin(const char *canonical, int flags)
{
	KS_AUTOCLOSE int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (root < 0)
		return -errno;
	return ks_open_beneath(root, canonical[1] ? canonical + 1 : ".", flags, KS_BENEATH_XDEV);
}

/* The parent exists and the last component does not. */
static int make_last(const char *path, const struct ks_state *state, char **ret_canonical, struct ks_error *err)
{
	char parent[PATH_MAX];
	char canonical[PATH_MAX];
	size_t len = strlen(path); /* < PATH_MAX: checked */

	while (len > 1 && path[len - 1] == '/')
		len--;
	memcpy(parent, path, len);
	parent[len] = '\0';
	char *slash = strrchr(parent, '/');
	const char *name = path + (slash - parent) + 1;
	size_t name_len = len - (size_t)(name - path);
	slash[slash == parent] = '\0';
	if (name_len == 0 || (name_len <= 2 && strncmp(name, "..", name_len) == 0))
		return fail_open(err, ENOENT, path);
	if (!realpath(parent, canonical))
		return fail_open(err, errno, path);
	size_t at = strcmp(canonical, "/") == 0 ? 0 : strlen(canonical);
	if (at + 1 + name_len >= sizeof(canonical))
		return fail_open(err, ENAMETOOLONG, path);
	KS_AUTOCLOSE int fd = pin(canonical, O_PATH | O_DIRECTORY);
	if (fd < 0)
		return fail_open(err, -fd, path);
	canonical[at] = '/';
	memcpy(canonical + at + 1, name, name_len);
	canonical[at + 1 + name_len] = '\0';
	if (ks_source_check(-1, canonical, state, err) < 0)
		return ks_error_at(err, POINTER); /* before anything is made in a refused place */
	if (mkdirat(fd, canonical + at + 1, 0755) < 0)
		return fail_open(err, errno, path);
	*ret_canonical = strdup(canonical);
	return *ret_canonical ? 0 : fail_open(err, ENOMEM, path);
}

int ks_workspace_open(const char *path, const struct ks_state *state, char **ret_canonical, int *ret_fd,
		      struct ks_error *err)
{
	if (path[0] != '/' || strlen(path) >= PATH_MAX) {
		ks_fail_at(err, KS_E_INVALID_VALUE, POINTER, "the workspace \"%.150s\" is not an absolute path", path);
		return ks_error_hint(err, "give the whole path of a directory, for example /home/me/project");
	}
	KS_AUTOFREE char *canonical = realpath(path, NULL);
	if (!canonical) {
		if (errno != ENOENT)
			return fail_open(err, errno, path);
		if (make_last(path, state, &canonical, err) < 0)
			return -1;
	}
	if (ks_source_check(-1, canonical, state, err) < 0)
		return ks_error_at(err, POINTER);
	int got = pin(canonical, O_RDONLY | O_DIRECTORY);
	if (got < 0)
		return fail_open(err, -got, path);
	KS_AUTOCLOSE int fd = got;
	if (ks_source_check(fd, canonical, state, err) < 0)
		return ks_error_at(err, POINTER);
	*ret_canonical = KS_TAKE_PTR(canonical);
	*ret_fd = KS_TAKE_FD(fd);
	return 0;
}

int ks_source_open(const char *path, const struct ks_state *state, char **ret_canonical, int *ret_fd, struct ks_error *err)
{
	if (path[0] != '/' || strlen(path) >= PATH_MAX) {
		ks_fail(err, KS_E_MOUNT_REFUSED, "the source \"%.150s\" is not an absolute path", path);
		return ks_error_hint(err, "give the whole path of a file or directory of the host");
	}
	KS_AUTOFREE char *canonical = realpath(path, NULL);
	if (!canonical) {
		(void)ks_fail_errno(err, KS_E_MOUNT_REFUSED, errno, "the source \"%.150s\" cannot be opened", path);
		return ks_error_hint(err, "name an existing file or directory that the user of the sidecar may reach");
	}
	if (ks_source_check(-1, canonical, state, err) < 0)
		return -1;
	int got = pin(canonical, O_PATH);
	if (got < 0)
		return ks_fail_errno(err, KS_E_MOUNT_REFUSED, -got, "the source \"%.150s\" cannot be opened", path);
	KS_AUTOCLOSE int fd = got;
	if (ks_source_check(fd, canonical, state, err) < 0)
		return -1;
	*ret_canonical = KS_TAKE_PTR(canonical);
	*ret_fd = KS_TAKE_FD(fd);
	return 0;
}
