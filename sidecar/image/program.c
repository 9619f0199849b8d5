/* program.c: the programs inside an image, of image.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "resolve.h"

static int check_executable(const struct ks_image *image, const char *path)
{
	char resolved[PATH_MAX];
	struct stat st;
	int rc = ks_image_resolve(image, path, resolved, &st);

	if (rc < 0)
		return rc;
	if (path[strlen(path) - 1] == '/' && !S_ISDIR(st.st_mode))
		return -ENOTDIR;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	return st.st_mode & 0111 ? 0 : -EACCES;
}

int ks_image_find_program(const struct ks_image *image, const char *const names[], char **ret_path,
			  struct ks_error *err)
{
	static const char *const dirs[] = { "/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin" };
	char path[PATH_MAX];

	for (size_t i = 0; names[i]; i++) {
		if (!names[i][0] || strchr(names[i], '/') || strlen(names[i]) > NAME_MAX)
			return ks_fail(err, KS_E_INVALID_VALUE, "\"%.100s\" is no name of a program", names[i]);
		for (size_t d = 0; d < KS_COUNT(dirs); d++) {
			(void)snprintf(path, sizeof(path), "%s/%s", dirs[d], names[i]);
			if (check_executable(image, path) < 0)
				continue;
			char *found = strdup(path);
			if (!found)
				return ks_fail_errno(err, KS_E_INTERNAL, ENOMEM, "cannot name a program");
			*ret_path = found;
			return 0;
		}
	}
	ks_fail(err, KS_E_NOT_FOUND, "there is no \"%.100s\" in the image \"%.120s\"", names[0] ? names[0] : "", image->ref);
	return ks_error_hint(err, "install it there under /usr or /usr/local, name its path in interpreters, or use an "
				  "image that has it");
}

int ks_image_check_program(const struct ks_image *image, const char *path, struct ks_error *err)
{
	int rc = check_executable(image, path);

	if (rc == 0)
		return 0;
	if (rc == -EINVAL && path[0] != '/') {
		ks_fail(err, KS_E_INVALID_VALUE, "the program \"%.100s\" is not an absolute path", path);
		return ks_error_hint(err, "give its path as the box sees it, for example /usr/bin/python3");
	}
	if (rc == -EISDIR || rc == -EINVAL)
		return ks_fail(err, KS_E_NOT_REGULAR, "\"%.100s\" in the image \"%.120s\" is no program but %s", path,
			       image->ref, rc == -EISDIR ? "a directory" : "a special file");
	if (rc == -EACCES)
		return ks_fail(err, KS_E_PERMISSION_DENIED, "\"%.100s\" in the image \"%.120s\" is not executable", path,
			       image->ref);
	if (rc == -EXDEV) {
		ks_fail(err, KS_E_NOT_FOUND, "the program \"%.100s\" of the host is not visible in a box, or is a link to one "
			"that is not", path);
		return ks_error_hint(err, "a box sees the host's /usr, /bin, /sbin and /lib*; install the program there or put "
					  "its directory into mounts");
	}
	return ks_fail_errno(err, KS_E_NOT_FOUND, -rc, "the program \"%.100s\" cannot be found in the image \"%.100s\"", path,
			     image->ref);
}
