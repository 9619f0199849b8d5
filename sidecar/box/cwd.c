#include "cwd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/base.h"

#define MAX_LINKS 40 /* as the kernel's own walk, path_resolution(7) */

/* A link's text takes its place in front of what is left of the path. 0 or -errno. */
static int follow(int link, char rest[PATH_MAX], int *dir)
{
	char text[2 * PATH_MAX];
	struct statfs fs;
	ssize_t n = readlinkat(link, "", text, PATH_MAX - 1);

	if (n < 0 || fstatfs(link, &fs) < 0)
		return -errno;
	/* /proc/PID/fd, root, cwd and their kind lead wherever a descriptor does: CVE-2024-21626 */
	if (fs.f_type == PROC_SUPER_MAGIC)
		return -ELOOP;
	int len = snprintf(text + n, sizeof(text) - (size_t)n, "/%s", rest);
	if (n + len >= PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(rest, text, (size_t)(n + len) + 1);
	if (rest[0] != '/')
		return 0;
	ks_close(dir);
	*dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return *dir < 0 ? -errno : 0;
}

int ks_open_cwd(const char *path)
{
	char rest[PATH_MAX], name[NAME_MAX + 1];
	KS_AUTOCLOSE int dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (strlen(path) >= sizeof(rest))
		return -ENAMETOOLONG;
	memcpy(rest, path, strlen(path) + 1);
	for (int links = 0; dir >= 0;) {
		size_t skip = strspn(rest, "/"), len = strcspn(rest + skip, "/");
		if (len == 0)
			return KS_TAKE_FD(dir);
		if (len > NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(name, rest + skip, len);
		name[len] = '\0';
		memmove(rest, rest + skip + len, strlen(rest + skip + len) + 1);
		KS_AUTOCLOSE int next = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0 || fstat(next, &st) < 0)
			return -errno;
		if (S_ISLNK(st.st_mode)) {
			int rc = ++links > MAX_LINKS ? -ELOOP : follow(next, rest, &dir);
			if (rc < 0)
				return rc;
			continue;
		}
		if (!S_ISDIR(st.st_mode))
			return -ENOTDIR;
		ks_close(&dir);
		dir = KS_TAKE_FD(next);
	}
	return -errno;
}
