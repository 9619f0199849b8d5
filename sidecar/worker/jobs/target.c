#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

/* Nobody's name by accident; what a killed worker leaves behind is known by it. */
#define TEMPORARY ".kern-tmp-"

void ks_target_free(struct ks_target *target)
{
	ks_close(&target->dir);
}

static int not_ours(const struct ks_target *target, struct ks_error *err)
{
	(void)ks_fail_at(err, KS_E_PERMISSION_DENIED, target->name->pointer,
			 "%.200s is a hard link to a file of another user, which the change would reach under its other names",
			 target->name->path);
	return ks_error_hint(err, "remove this name first if the file shall be a new one");
}

int ks_target_look(const struct ks_name *name, struct ks_target *ret, struct ks_error *err)
{
	ret->name = name;
	ret->exists = ret->must_be_same = false;
	ret->dir = ks_name_open_parent(name, &ret->last, err);
	if (ret->dir < 0)
		return -1;
	if (strcmp(ret->last, ".") == 0)
		return ks_name_fail_type(name, S_IFDIR, err);
	if (fstatat(ret->dir, ret->last, &ret->st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : ks_name_fail(name, errno, err);
	if (!S_ISREG(ret->st.st_mode))
		return ks_name_fail_type(name, ret->st.st_mode, err);
	if (ret->st.st_nlink > 1 && ret->st.st_uid != geteuid())
		return not_ours(ret, err);
	/* a rename asks for no right on the file itself; changing it does */
	if (faccessat(ret->dir, ret->last, W_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) < 0)
		return ks_name_fail(name, errno, err);
	ret->exists = true;
	return 0;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       memcmp(&a->st_mtim, &b->st_mtim, sizeof(a->st_mtim)) == 0 && memcmp(&a->st_ctim, &b->st_ctim, sizeof(a->st_ctim)) == 0;
}

static int fail_changed(const struct ks_target *target, const char *pointer, const char *what, struct ks_error *err)
{
	(void)ks_fail_at(err, KS_E_CHANGED, pointer, "%.200s %s", target->name->path, what);
	return ks_error_hint(err, "read it again");
}

int ks_target_match(struct ks_target *target, const char *if_match, struct ks_error *err)
{
	char etag[KS_ETAG_TEXT];

	if (!if_match[0])
		return 0;
	if (!target->exists)
		return fail_changed(target, "/ifMatch", "is not there any more", err);
	KS_AUTOCLOSE int fd = ks_open_regular(target->dir, target->last);
	if (fd < 0)
		return ks_name_fail(target->name, -fd, err);
	int rc = fstat(fd, &target->st) < 0 ? -errno : ks_etag_of_file(fd, etag);
	if (rc < 0)
		return ks_name_fail(target->name, -rc, err);
	if (strcmp(etag, if_match) != 0)
		return fail_changed(target, "/ifMatch", "has changed", err);
	target->must_be_same = true;
	return 0;
}

static int write_all(int fd, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, data, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

static int open_temporary(int dir, char name[32])
{
	uint64_t random;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	(void)snprintf(name, 32, TEMPORARY "%016llx", (unsigned long long)random);
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

/* Some file systems cannot rename without replacing (EINVAL); a second name is refused there when the name is taken: link(2). */
static int put_in_free_place(int dir, const char *from, const char *to)
{
	if (renameat2(dir, from, dir, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL)
		return -errno;
	if (linkat(dir, from, dir, to, 0) < 0)
		return -errno;
	return unlinkat(dir, from, 0) < 0 ? -errno : 0;
}

/* No fsync: the content is safe from a death of ours, not from one of the machine. A workspace is for work, and a sync costs more than
 * a whole call. */
static int put_in_place(struct ks_target *target, const char *temporary, bool fresh, struct ks_error *err)
{
	struct stat now;
	int rc = 0;

	if (fresh) {
		rc = put_in_free_place(target->dir, temporary, target->last);
	} else if (target->must_be_same && (fstatat(target->dir, target->last, &now, AT_SYMLINK_NOFOLLOW) < 0 ||
					    !same_file(&now, &target->st))) {
		return fail_changed(target, target->name->pointer, "was changed by somebody else in this moment", err);
	} else if (renameat(target->dir, temporary, target->dir, target->last) < 0) {
		rc = -errno;
	}
	return rc < 0 ? ks_name_fail(target->name, -rc, err) : 0;
}

static int etag_now(const struct ks_target *target, int fd, const void *data, size_t len, char ret[KS_ETAG_TEXT],
		    struct ks_error *err)
{
	struct stat st;

	if (len <= KS_ETAG_CONTENT) {
		ks_etag_of_bytes(data, len, ret);
		return 0;
	}
	if (fstat(fd, &st) < 0)
		return ks_name_fail(target->name, errno, err);
	ks_etag_of_stat(&st, ret);
	return 0;
}

int ks_target_replace(struct ks_target *target, const void *data, size_t len, mode_t mode, bool fresh, char ret_etag[KS_ETAG_TEXT],
		      struct ks_error *err)
{
	char temporary[32];
	KS_AUTOCLOSE int fd = open_temporary(target->dir, temporary);

	if (fd < 0)
		return ks_name_fail(target->name, -fd, err);
	/* setuid and the like went with the old content, as they do when a file is written to */
	int rc = write_all(fd, data, len);
	if (rc == 0 && fchmod(fd, target->exists ? target->st.st_mode & 0777 : mode) < 0)
		rc = -errno;
	if (rc < 0)
		rc = ks_name_fail(target->name, -rc, err);
	else
		rc = put_in_place(target, temporary, fresh, err);
	if (rc < 0) {
		(void)unlinkat(target->dir, temporary, 0);
		return -1;
	}
	return etag_now(target, fd, data, len, ret_etag, err); /* after the rename, which changes ctime */
}

static int open_for_append(struct ks_target *target, mode_t mode)
{
	const int flags = O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	KS_AUTOCLOSE int fd = target->exists ? openat(target->dir, target->last, flags)
					     : openat(target->dir, target->last, flags | O_CREAT | O_EXCL, 0600);

	if (fd < 0 || (!target->exists && fchmod(fd, mode) < 0))
		return -errno;
	return KS_TAKE_FD(fd);
}

/* What is behind `before` is ours as long as nobody else has added to it. */
static void take_back(const struct ks_target *target, int fd, const struct stat *before, off_t written)
{
	struct stat st;

	if (!target->exists)
		(void)unlinkat(target->dir, target->last, 0);
	else if (fstat(fd, &st) == 0 && st.st_size <= before->st_size + written && ftruncate(fd, before->st_size) < 0)
		return; /* the error on its way says enough */
}

int ks_target_append(struct ks_target *target, const void *data, size_t len, mode_t mode, int64_t *ret_size,
		     char ret_etag[KS_ETAG_TEXT], struct ks_error *err)
{
	struct stat before, after;
	KS_AUTOCLOSE int fd = open_for_append(target, mode);

	if (fd < 0)
		return ks_name_fail(target->name, -fd, err);
	if (fstat(fd, &before) < 0)
		return ks_name_fail(target->name, errno, err);
	if (!S_ISREG(before.st_mode))
		return ks_name_fail_type(target->name, before.st_mode, err);
	if (before.st_nlink > 1 && before.st_uid != geteuid())
		return not_ours(target, err);
	if (target->must_be_same && !same_file(&before, &target->st))
		return fail_changed(target, target->name->pointer, "was changed by somebody else in this moment", err);
	int rc = write_all(fd, data, len);
	if (rc < 0) {
		take_back(target, fd, &before, (off_t)len);
		return ks_name_fail(target->name, -rc, err);
	}
	KS_AUTOCLOSE int look = ks_open_regular(target->dir, target->last);
	rc = fstat(fd, &after) < 0 ? -errno : 0;
	if (rc == 0 && look >= 0)
		rc = ks_etag_of_file(look, ret_etag);
	else if (rc == 0)
		ks_etag_of_stat(&after, ret_etag);
	if (rc < 0)
		return ks_name_fail(target->name, -rc, err);
	*ret_size = after.st_size;
	return 0;
}
