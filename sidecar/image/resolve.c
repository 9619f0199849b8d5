#include "resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define MAX_LINKS 40 /* MAXSYMLINKS of the kernel: path_resolution(7) */

/* The box has, of the host, these top-level names - and /etc/alternatives, which most of Debian's links go through. */
static bool box_sees(const struct ks_image *image, const char *path)
{
	static const char alternatives[] = "/etc/alternatives";
	size_t len = strcspn(path + 1, "/");

	if (image->kind != KS_IMAGE_HOST || path[1] == '\0')
		return true;
	for (size_t i = 0; i < image->count; i++)
		if (strlen(image->entries[i].name) == len && memcmp(image->entries[i].name, path + 1, len) == 0)
			return true;
	size_t n = strlen(path), all = strlen(alternatives);
	return n <= all ? strncmp(path, alternatives, n) == 0 && (n == all || alternatives[n] == '/') :
			  strncmp(path, alternatives, all) == 0 && path[all] == '/';
}

/* Cuts the last component off `done`; "/" stays. */
static void go_up(char *done)
{
	char *slash = strrchr(done, '/');

	slash[slash == done] = '\0';
}

/* Puts `link` in front of what is left of the path. */
static int put_in_front(char rest[PATH_MAX], const char *link)
{
	size_t len = strlen(link), left = strlen(rest);

	if (len + 1 + left >= PATH_MAX)
		return -ENAMETOOLONG;
	memmove(rest + len + 1, rest, left + 1);
	memcpy(rest, link, len);
	rest[len] = '/';
	return 0;
}

/* Adds one component to `done` and follows it when it is a link. *links counts down. */
static int enter(const struct ks_image *image, char done[PATH_MAX], const char *name, size_t len, char rest[PATH_MAX],
		 int *links, struct stat *st)
{
	size_t at = strcmp(done, "/") == 0 ? 0 : strlen(done);
	char link[PATH_MAX];

	if (at + 1 + len >= PATH_MAX)
		return -ENAMETOOLONG;
	done[at] = '/';
	memcpy(done + at + 1, name, len);
	done[at + 1 + len] = '\0';
	if (!box_sees(image, done))
		return -EXDEV;
	if (fstatat(image->root_fd, done + 1, st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISLNK(st->st_mode))
		return 0;
	if ((*links)-- == 0)
		return -ELOOP;
	ssize_t n = readlinkat(image->root_fd, done + 1, link, sizeof(link) - 1);
	if (n < 0)
		return -errno;
	link[n] = '\0';
	go_up(done);
	if (link[0] == '/')
		done[1] = '\0';
	return put_in_front(rest, link);
}

int ks_image_resolve(const struct ks_image *image, const char *path, char ret_path[PATH_MAX], struct stat *ret_st)
{
	char done[PATH_MAX] = "/", rest[PATH_MAX], name[NAME_MAX + 1];
	struct stat st;
	int links = MAX_LINKS;

	if (path[0] != '/' || strlen(path) >= sizeof(rest))
		return path[0] == '/' ? -ENAMETOOLONG : -EINVAL;
	(void)strcpy(rest, path);
	if (fstatat(image->root_fd, ".", &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	for (;;) {
		const char *from = rest + strspn(rest, "/");
		size_t len = strcspn(from, "/");
		if (len == 0)
			break;
		if (!S_ISDIR(st.st_mode) && !S_ISLNK(st.st_mode))
			return -ENOTDIR;
		if (len > NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(name, from, len);
		name[len] = '\0';
		memmove(rest, from + len, strlen(from + len) + 1);
		if (strcmp(name, ".") == 0)
			continue;
		if (strcmp(name, "..") == 0) {
			go_up(done);
			continue;
		}
		int rc = enter(image, done, name, len, rest, &links, &st);
		if (rc < 0)
			return rc;
	}
	if (fstatat(image->root_fd, done[1] ? done + 1 : ".", &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	(void)strcpy(ret_path, done);
	*ret_st = st;
	return 0;
}
