/* remove.c: file/remove. Request: name, followLinks, recursive. No result. */
#include "jobs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "names.h"

/* A tree may be deeper than a process may have descriptors: the upper levels stay open and go on where they were, the others are opened
 * again through "..", and are the right ones when device and inode say so. */
#define OPEN_LEVELS 256

#define PASSES_MAX 16 /* over one directory: somebody makes files there as fast as we remove them */

struct level {
	DIR *dir;	  /* NULL: to be opened again */
	const char *name; /* in it, of the level below: valid as long as dir is open and not read from */
	dev_t dev;
	ino_t ino;
	unsigned passes;
	bool got_rid; /* of something in this pass: one more will show what was missed, or has come */
};

struct removal {
	const struct ks_name *name;
	struct level *levels;
	size_t depth, cap;
};

#define AUTOREMOVAL KS_CLEANUP(free_removal)

static void free_removal(struct removal *r)
{
	for (size_t i = 0; i < r->depth; i++)
		if (r->levels[i].dir)
			(void)closedir(r->levels[i].dir);
	free(r->levels);
}

static int fail_inside(const struct removal *r, const char *inside, int error, struct ks_error *err)
{
	(void)ks_name_fail(r->name, error, err);
	(void)snprintf(err->text, sizeof(err->text), "%.150s cannot be removed whole, %.60s in it stays: %s", r->name->path, inside,
		       strerrordesc_np(error));
	return ks_error_hint(err, "%s", error == EXDEV ? "it is a mount point" : "what could be removed is gone");
}

/* The box's user may change the mode of its own directories, so no mode protects what is in them from it. chmod by /proc/self/fd,
 * because a descriptor of O_PATH does not do for fchmod(2), and a name could have become a link. */
static bool make_accessible(int dir, const char *name)
{
	char link[40];
	KS_AUTOCLOSE int fd = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return fd >= 0 && fchmodat(AT_FDCWD, link, 0700, 0) == 0;
}

static int open_level(int dir, const char *name)
{
	const int flags = O_RDONLY | O_DIRECTORY;
	struct stat st;
	int fd = ks_open_beneath(dir, name, flags, KS_BENEATH_STAY);

	if (fd == -EACCES && make_accessible(dir, name))
		fd = ks_open_beneath(dir, name, flags, KS_BENEATH_STAY);
	if (fd >= 0 && fstat(fd, &st) == 0 && (st.st_mode & 0700) != 0700)
		(void)fchmod(fd, 0700);
	return fd;
}

static int push(struct removal *r, int got)
{
	KS_AUTOCLOSE int fd = got;
	struct stat st;

	if (fd < 0)
		return fd;
	if (r->depth == r->cap) {
		size_t cap = r->cap ? 2 * r->cap : 64;
		struct level *more = realloc(r->levels, cap * sizeof(*more));
		if (!more)
			return -ENOMEM;
		r->levels = more;
		r->cap = cap;
	}
	if (fstat(fd, &st) < 0)
		return -errno;
	DIR *dir = fdopendir(fd);
	if (!dir)
		return -errno;
	(void)KS_TAKE_FD(fd);
	r->levels[r->depth++] = (struct level){ .dir = dir, .dev = st.st_dev, .ino = st.st_ino };
	return 0;
}

/* Removes an entry that is no directory, or is an empty one. ENOTEMPTY: it has to be entered. What is known to be a directory is not tried
 * as a file: each try costs Landlock a walk up to the root. */
static int remove_one(int dir, const char *name, bool is_dir)
{
	/* Linux answers EISDIR here, POSIX also allows EPERM: unlink(2) */
	if (!is_dir && (unlinkat(dir, name, 0) == 0 || errno == ENOENT))
		return 0;
	const int first = is_dir ? EISDIR : errno;
	if (first != EISDIR && first != EPERM)
		return first;
	if (unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	if (errno == ENOTDIR && is_dir)
		return remove_one(dir, name, false); /* somebody put another thing there */
	return errno == ENOTDIR ? first : errno == EEXIST ? ENOTEMPTY : errno;
}

/* The level below is empty: back in its parent, it is removed by its name. A parent that was closed is read from its beginning. */
static int pop(struct removal *r, struct ks_error *err)
{
	struct level *child = &r->levels[--r->depth], *parent = child - 1;
	DIR *dir = child->dir;
	int rc = 0;

	if (r->depth > 0 && !parent->dir) {
		KS_AUTOCLOSE int fd = openat(dirfd(dir), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		struct stat st;
		if (fd < 0 || fstat(fd, &st) < 0)
			rc = fail_inside(r, "something", errno, err);
		else if (st.st_dev != parent->dev || st.st_ino != parent->ino)
			rc = ks_fail_at(err, KS_E_CHANGED, r->name->pointer, "%.200s was moved about while it was being removed",
					r->name->path);
		else if (!(parent->dir = fdopendir(fd)))
			rc = fail_inside(r, "something", errno, err);
		else
			(void)KS_TAKE_FD(fd);
		parent->name = NULL;
	}
	(void)closedir(dir);
	if (rc < 0 || r->depth == 0 || !parent->name)
		return rc;
	int error = remove_one(dirfd(parent->dir), parent->name, true);
	return error ? fail_inside(r, parent->name, error, err) : 0;
}

static int descend(struct removal *r, const char *name, struct ks_error *err)
{
	struct level *top = &r->levels[r->depth - 1];
	int rc = push(r, open_level(dirfd(top->dir), name));

	if (rc == -ENOENT || rc == -ENOTDIR || rc == -ELOOP)
		return 0; /* somebody replaced it: seen again, or not there any more */
	if (rc < 0)
		return fail_inside(r, name, -rc, err);
	top = &r->levels[r->depth - 2]; /* the array may have moved */
	top->name = name;
	top->got_rid = true;
	if (r->depth - 1 > OPEN_LEVELS) {
		(void)closedir(top->dir);
		top->dir = NULL;
	}
	return 0;
}

static int remove_below(struct removal *r, struct ks_error *err)
{
	int rc = 0;

	while (rc == 0 && r->depth > 0) {
		struct level *top = &r->levels[r->depth - 1];
		const struct dirent *d = readdir(top->dir);
		if (!d && top->got_rid && ++top->passes < PASSES_MAX) {
			top->got_rid = false;
			rewinddir(top->dir);
			continue;
		}
		if (!d) {
			rc = pop(r, err);
			continue;
		}
		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
			continue;
		int error = remove_one(dirfd(top->dir), d->d_name, d->d_type == DT_DIR);
		top->got_rid |= error == 0;
		if (error == ENOTEMPTY)
			rc = descend(r, d->d_name, err);
		else if (error)
			rc = fail_inside(r, d->d_name, error, err);
	}
	return rc;
}

static int remove_name(struct ks_name *name, bool recursive, struct ks_error *err)
{
	AUTOREMOVAL struct removal r = { .name = name };
	const char *last;
	struct stat st;

	if (ks_name_follow(name, true, err) < 0)
		return -1;
	KS_AUTOCLOSE int dir = ks_name_open_parent(name, &last, err);
	if (dir < 0)
		return -1;
	if (strcmp(last, ".") == 0)
		return ks_fail_at(err, KS_E_INVALID_PATH, name->pointer, "the workspace itself, or a mount, cannot be removed");
	if (fstatat(dir, last, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return ks_name_fail(name, errno, err);
	int error = remove_one(dir, last, S_ISDIR(st.st_mode));
	if (error != ENOTEMPTY || !recursive)
		return error ? ks_name_fail(name, error, err) : 0;
	int rc = push(&r, open_level(dir, last));
	if (rc < 0)
		return ks_name_fail(name, -rc, err);
	if (remove_below(&r, err) < 0)
		return -1;
	error = remove_one(dir, last, true);
	return error ? ks_name_fail(name, error, err) : 0;
}

int ks_job_remove(struct ks_run *run, struct ks_unpack *in, struct ks_buf *ret_result, struct ks_error *err)
{
	KS_AUTONAME struct ks_name name = { 0 };

	(void)ret_result;
	if (ks_name_unpack(run, in, "/path", true, true, &name, err) < 0)
		return -1;
	const bool recursive = ks_unpack_int(in) != 0;
	if (!ks_unpack_end(in))
		ks_run_damaged();
	return remove_name(&name, recursive, err);
}
