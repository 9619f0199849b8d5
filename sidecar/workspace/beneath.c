#include "beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/base.h"

static bool no_openat2;

void ks_beneath_without_openat2(bool without)
{
	no_openat2 = without;
}

/* statx(2): mount ids exist since Linux 5.8. Before that only directories can be judged, by their device: overlayfs
 * gives files the device of the layer they lie in. */
static bool same_mount(int a, int b)
{
	struct statx one, two;

	if (statx(a, "", AT_EMPTY_PATH, STATX_TYPE | STATX_MNT_ID, &one) < 0 ||
	    statx(b, "", AT_EMPTY_PATH, STATX_TYPE | STATX_MNT_ID, &two) < 0)
		return false;
	if (one.stx_mask & two.stx_mask & STATX_MNT_ID)
		return one.stx_mnt_id == two.stx_mnt_id;
	if (!S_ISDIR(one.stx_mode) || !S_ISDIR(two.stx_mode))
		return true;
	return one.stx_dev_major == two.stx_dev_major && one.stx_dev_minor == two.stx_dev_minor;
}

/* A link where a directory was wanted is ENOTDIR to the kernel when it is the last name (O_DIRECTORY goes before O_NOFOLLOW), and ELOOP
 * to openat2 everywhere else. Here it is always ELOOP. */
static int open_component(int dir_fd, const char *name, int flags, enum ks_beneath how)
{
	KS_AUTOCLOSE int fd = openat(dir_fd, name, flags);
	char link;

	if (fd < 0) {
		const int error = errno;
		return error == ENOTDIR && readlinkat(dir_fd, name, &link, 1) >= 0 ? -ELOOP : -error;
	}
	if (how == KS_BENEATH_STAY && !same_mount(dir_fd, fd))
		return -EXDEV;
	return KS_TAKE_FD(fd);
}

static int open_by_components(int dir_fd, char *path, int flags, enum ks_beneath how)
{
	KS_AUTOCLOSE int at = -1;
	char *name = path;

	for (;;) {
		char *end = strchr(name, '/');
		if (end)
			*end = '\0';
		int fd = open_component(at < 0 ? dir_fd : at, name,
					end ? O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC : flags, how);
		if (fd < 0 || !end)
			return fd;
		ks_close(&at);
		at = fd;
		name = end + 1;
	}
}

static bool is_link(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 || S_ISLNK(st.st_mode);
}

/* O_PATH|O_NOFOLLOW opens a link itself instead of refusing it, also in openat2: open(2), openat2(2). */
static int refuse_link(int got)
{
	KS_AUTOCLOSE int fd = got;

	return is_link(fd) ? -ELOOP : KS_TAKE_FD(fd);
}

static int open_short(int dir_fd, char *path, int flags, enum ks_beneath how)
{
	struct open_how oh = {
		.flags = (uint64_t)(unsigned)flags,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS |
			   (how == KS_BENEATH_STAY ? (uint64_t)RESOLVE_NO_XDEV : 0),
	};

	if (!no_openat2) {
		long fd = syscall(SYS_openat2, dir_fd, path, &oh, sizeof(oh));
		if (fd >= 0)
			return (int)fd;
		if (errno == ENOTDIR && (flags & O_DIRECTORY)) {
			oh.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
			KS_AUTOCLOSE int what = (int)syscall(SYS_openat2, dir_fd, path, &oh, sizeof(oh));
			return what >= 0 && is_link(what) ? -ELOOP : -ENOTDIR;
		}
		if (errno != ENOSYS)
			return -errno;
		no_openat2 = true;
	}
	return open_by_components(dir_fd, path, flags, how);
}

/* Relative, no empty component, no "..". */
static bool plain(const char *path)
{
	for (const char *name = path;; name++) {
		size_t len = strcspn(name, "/");
		if (len == 0 || (len == 2 && memcmp(name, "..", 2) == 0))
			return false;
		name += len;
		if (*name == '\0')
			return true;
	}
}

int ks_open_beneath(int dir_fd, const char *path, int flags, enum ks_beneath how)
{
	KS_AUTOCLOSE int at = -1;
	char part[PATH_MAX];

	if (!plain(path))
		return -EINVAL;
	flags |= O_CLOEXEC | O_NOFOLLOW | (flags & O_PATH ? 0 : O_NONBLOCK | O_NOCTTY);
	/* The kernel takes PATH_MAX bytes at a time: a longer path is opened in stretches. */
	for (;;) {
		size_t len = strlen(path);
		bool whole = len < sizeof(part);
		if (!whole) {
			const char *cut = memrchr(path, '/', sizeof(part));
			if (!cut)
				return -ENAMETOOLONG;
			len = (size_t)(cut - path);
		}
		memcpy(part, path, len);
		part[len] = '\0';
		int fd = open_short(at < 0 ? dir_fd : at, part,
				    whole ? flags : O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, how);
		if (fd >= 0 && whole && (flags & O_PATH))
			return refuse_link(fd);
		if (fd < 0 || whole)
			return fd;
		ks_close(&at);
		at = fd;
		path += len + 1;
	}
}

#define LINKS_MAX 40 /* MAXSYMLINKS: path_resolution(7) */

struct following {
	int dir_fd;
	enum ks_beneath how;
	char done[PATH_MAX], rest[PATH_MAX]; /* without links; still to be looked at */
	unsigned links;
};

static int go_up(struct following *f)
{
	char *slash = strrchr(f->done, '/');

	if (f->done[0] == '\0')
		return -EXDEV;
	*(slash ? slash : f->done) = '\0';
	return 0;
}

static int go_down(struct following *f, const char *name, size_t len)
{
	size_t at = strlen(f->done);

	if (at + 1 + len >= sizeof(f->done))
		return -ENAMETOOLONG;
	if (at > 0)
		f->done[at++] = '/';
	memcpy(f->done + at, name, len);
	f->done[at + len] = '\0';
	return 0;
}

/* What the link says comes in front of what is left. */
static int go_along(struct following *f, const char *target, size_t len, const char *left)
{
	char rest[sizeof(f->rest)];
	size_t more = strlen(left);

	if (++f->links > LINKS_MAX)
		return -ELOOP;
	if (len == 0 || target[0] == '/')
		return -EXDEV;
	if (len + 1 + more >= sizeof(rest))
		return -ENAMETOOLONG;
	memcpy(rest, target, len);
	rest[len] = '/';
	memcpy(rest + len + 1, left, more + 1);
	memcpy(f->rest, rest, len + more + 2);
	return 0;
}

/* One name of f->rest. The parent of a link's text is the parent of a path without links: cutting off a name is right. */
static int follow_name(struct following *f, bool keep_last)
{
	char name[NAME_MAX + 1], target[PATH_MAX];
	const size_t len = strcspn(f->rest, "/");
	const char *left = f->rest + len + (f->rest[len] == '/');
	ssize_t n = -1;

	if (len > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, f->rest, len);
	name[len] = '\0';
	if (!(keep_last && *left == '\0') && len > 0 && strcmp(name, "..") != 0) {
		KS_AUTOCLOSE int dir = ks_open_beneath(f->dir_fd, f->done[0] ? f->done : ".", O_PATH | O_DIRECTORY, f->how);
		if (dir < 0 && dir != -ENOENT)
			return dir;
		n = dir < 0 ? -1 : readlinkat(dir, name, target, sizeof(target));
	}
	if (n >= 0)
		return (size_t)n == sizeof(target) ? -ENAMETOOLONG : go_along(f, target, (size_t)n, left);
	int rc = 0;
	if (strcmp(name, "..") == 0)
		rc = go_up(f);
	else if (len > 0 && strcmp(name, ".") != 0)
		rc = go_down(f, name, len);
	memmove(f->rest, left, strlen(left) + 1);
	return rc;
}

int ks_follow_beneath(int dir_fd, const char *path, bool keep_last, enum ks_beneath how, char **ret)
{
	struct following f = { .dir_fd = dir_fd, .how = how };

	if (!plain(path))
		return -EINVAL;
	if (strlen(path) >= sizeof(f.rest))
		return -ENAMETOOLONG;
	memcpy(f.rest, path, strlen(path) + 1);
	while (f.rest[0]) {
		int rc = follow_name(&f, keep_last);
		if (rc < 0)
			return rc;
	}
	char *found = strdup(f.done[0] ? f.done : ".");
	if (!found)
		return -ENOMEM;
	*ret = found;
	return 0;
}

int ks_open_regular(int dir_fd, const char *path)
{
	struct stat st;
	int got = ks_open_beneath(dir_fd, path, O_RDONLY, KS_BENEATH_STAY);

	if (got < 0)
		return got;
	KS_AUTOCLOSE int fd = got;
	if (fstat(fd, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) ? KS_TAKE_FD(fd) : -EINVAL;
}
