#include "remove.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/clock.h"

#define CHECK_EVERY 16u
#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452 /* Linux 6.6; the kernel's tables give it this number everywhere but on alpha */
#endif

/* Directories wait under the names ".rm-<token>-<n>" in dir_fd, n from head to tail. Empty ones go at once, the others
 * give their sub-directories to the end of the queue: no depth, no memory. A pass over a directory that leaves
 * something behind is repeated after the rest of the queue, as long as passes get rid of something: a full disk refuses
 * to move directories until something has gone, and someone may write while we read. */
struct ks_remove {
	int dir_fd;
	char prefix[16];
	uint64_t head, tail;
	bool inside; /* dir_fd's own entries are to be removed, too */
	DIR *dir;    /* being emptied, NULL none */
	bool at_top; /* it is dir_fd itself */
	uint64_t before, failed; /* `removed + moved` at its start; entries that it refused to give */
	uint64_t removed, moved, left;
	int first_errno;
	char first_name[64];
};

static void queue_name(const struct ks_remove *remove, uint64_t n, char name[40])
{
	(void)snprintf(name, 40, "%s%llu", remove->prefix, (unsigned long long)n);
}

static void remember(struct ks_remove *remove, const char *name, int error)
{
	if (remove->first_errno)
		return;
	remove->first_errno = error;
	(void)snprintf(remove->first_name, sizeof(remove->first_name), "%.63s", name);
}

void ks_make_accessible(int dir_fd, const char *name)
{
	char link[40];
	KS_AUTOCLOSE int fd = openat(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || syscall(SYS_fchmodat2, fd, "", 0700, AT_EMPTY_PATH) == 0)
		return;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd); /* proc(5): works on O_PATH, unlike fchmod */
	if (fchmodat(AT_FDCWD, link, 0700, 0) < 0)
		return; /* whoever opens it next says why */
}

int ks_open_accessible(int dir_fd, const char *name)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	struct stat st;
	int fd = openat(dir_fd, name, flags);

	if (fd < 0 && errno == EACCES) {
		ks_make_accessible(dir_fd, name);
		fd = openat(dir_fd, name, flags);
	}
	if (fd >= 0 && fstat(fd, &st) == 0 && (st.st_mode & 0700) != 0700)
		(void)fchmod(fd, 0700); /* or its entries will say why not */
	return fd;
}

/* Removes dir/name or queues it. 0, or an errno. */
static int take(struct ks_remove *remove, int dir, const char *name)
{
	char queued[40];

	/* Linux answers EISDIR here, POSIX also allows EPERM: unlink(2). An empty directory needs no opening, and
	 * moving a directory changes its "..", for which it must be writable: rename(2). */
	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		goto gone;
	if (errno != EISDIR && errno != EPERM)
		return errno;
	int first = errno;
	if (unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		goto gone;
	if (errno == ENOTDIR)
		return first;
	if (errno != ENOTEMPTY && errno != EEXIST)
		return errno;
	queue_name(remove, remove->tail, queued);
	if (renameat(dir, name, remove->dir_fd, queued) < 0) {
		if (errno != EACCES)
			return errno;
		ks_make_accessible(dir, name);
		if (renameat(dir, name, remove->dir_fd, queued) < 0)
			return errno;
	}
	remove->tail++;
	remove->moved++;
	return 0;
gone:
	remove->removed++;
	return 0;
}

/* The next queued directory; dir_fd itself when there is none. False: all done. */
static bool open_next(struct ks_remove *remove)
{
	char name[40] = ".";
	int fd;

	remove->before = remove->removed + remove->moved;
	remove->failed = 0;
	remove->at_top = remove->head == remove->tail;
	if (remove->at_top) {
		if (!remove->inside)
			return false;
	} else {
		queue_name(remove, remove->head, name);
	}
	fd = ks_open_accessible(remove->dir_fd, name);
	remove->dir = fd < 0 ? NULL : fdopendir(fd);
	if (remove->dir)
		return true;
	remember(remove, name, errno);
	remove->left++;
	ks_close(&fd);
	if (remove->at_top)
		remove->inside = false;
	else
		remove->head++;
	return true;
}

static void finish_dir(struct ks_remove *remove)
{
	char name[40], again[40];
	bool progress = remove->removed + remove->moved > remove->before;

	(void)closedir(remove->dir);
	remove->dir = NULL;
	if (remove->at_top) {
		remove->inside = progress;
		remove->left += progress ? 0 : remove->failed;
		return;
	}
	queue_name(remove, remove->head++, name);
	if (unlinkat(remove->dir_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT) {
		remove->removed++;
		return;
	}
	int error = errno;
	queue_name(remove, remove->tail, again);
	if (progress && renameat(remove->dir_fd, name, remove->dir_fd, again) == 0) {
		remove->tail++;
		return;
	}
	remember(remove, name, error);
	remove->left += remove->failed ? remove->failed : 1;
}

static void remove_entry(struct ks_remove *remove, const char *name)
{
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return;
	if (remove->at_top && strncmp(name, remove->prefix, strlen(remove->prefix)) == 0)
		return; /* queued, or left behind */
	int error = take(remove, dirfd(remove->dir), name);
	if (error == 0)
		return;
	remove->failed++;
	remember(remove, name, error);
}

int ks_remove_step(struct ks_remove *remove, int64_t budget_us, struct ks_error *err)
{
	int64_t end = ks_now_us() + budget_us;

	for (unsigned n = 1;; n++) {
		if (remove->dir) {
			const struct dirent *d = readdir(remove->dir);
			if (d)
				remove_entry(remove, d->d_name);
			else
				finish_dir(remove);
		} else if (!open_next(remove)) {
			break;
		}
		if (n % CHECK_EVERY == 0 && ks_now_us() >= end)
			return 0;
	}
	if (remove->left == 0)
		return 1;
	ks_fail_errno(err, KS_E_IO, remove->first_errno, "%llu files or directories could not be removed, \"%s\" first",
		      (unsigned long long)remove->left, remove->first_name);
	return ks_error_hint(err, "they may be immutable (lsattr), mount points, or owned by another user");
}

int ks_remove_start(int dir_fd, const char *name, struct ks_remove **ret, struct ks_error *err)
{
	unsigned token;

	if (name && (*name == '\0' || strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0))
		return ks_fail(err, KS_E_INTERNAL, "\"%.100s\" is no name of a directory to remove", name);
	struct ks_remove *remove = calloc(1, sizeof(*remove));
	if (!remove || getrandom(&token, sizeof(token), 0) != sizeof(token)) {
		free(remove);
		return ks_fail_errno(err, KS_E_INTERNAL, ENOMEM, "cannot remove a directory");
	}
	(void)snprintf(remove->prefix, sizeof(remove->prefix), ".rm-%08x-", token);
	remove->dir_fd = dir_fd;
	remove->inside = !name;
	if (name) {
		int error = take(remove, dir_fd, name);
		if (error) {
			remember(remove, name, error);
			remove->left++;
		}
	}
	*ret = remove;
	return 0;
}

uint64_t ks_remove_removed(const struct ks_remove *remove)
{
	return remove->removed;
}

uint64_t ks_remove_left(const struct ks_remove *remove)
{
	return remove->left;
}

void ks_remove_free(struct ks_remove *remove)
{
	if (!remove)
		return;
	if (remove->dir)
		(void)closedir(remove->dir);
	free(remove);
}
