#include "staging.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "workspace/remove.h"

#define DIRECTORY (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define SLICE_US 1000000

/* A directory that its owner may not write to cannot be moved to another one: rename(2). Its mode, to be given back. */
struct loosened {
	char name[256];
	unsigned mode;
	struct loosened *next;
};

static int fail(int error, const char *name, struct ks_error *err)
{
	enum ks_reason reason = KS_E_IO;

	if (error == EACCES || error == EPERM || error == EOVERFLOW) /* the last: its owner has no id in the id map */
		reason = KS_E_PERMISSION_DENIED;
	else if (error == ENOSPC || error == EDQUOT)
		reason = KS_E_NO_SPACE;
	(void)ks_fail_errno(err, reason, error, "%.150s in the workspace cannot be replaced", name);
	if (reason == KS_E_PERMISSION_DENIED)
		return ks_error_hint(err, "it belongs to somebody else than the box's user, or is immutable");
	return -1;
}

/* ---- moving what is in one directory to another ---- */

/* Some file systems of user space know no flags: then it is looked at first. Nobody else makes names there. */
static int rename_new(int from, const char *name, int to)
{
	struct stat st;

	if (renameat2(from, name, to, name, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL)
		return -1;
	if (fstatat(to, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		errno = EEXIST;
		return -1;
	}
	return renameat(from, name, to, name);
}

static int move_one(int from, const char *name, int to, struct loosened **loosened)
{
	struct stat st;

	if (rename_new(from, name, to) == 0)
		return 0;
	if (errno != EACCES || fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
		return -errno;
	struct loosened *one = calloc(1, sizeof(*one));
	if (!one)
		return -ENOMEM;
	(void)snprintf(one->name, sizeof(one->name), "%s", name);
	one->mode = st.st_mode & 07777;
	one->next = *loosened;
	*loosened = one;
	ks_make_accessible(from, name);
	return rename_new(from, name, to) < 0 ? -errno : 0;
}

/* All but KS_RESTORE_NAME. Names that move while they are listed may be listed or not, so until a whole pass finds none. A name that `to`
 * has already stays. 0, or -errno with the name. */
static int move_all(int from, int to, struct loosened **loosened, char ret_name[256])
{
	int fd = openat(from, ".", DIRECTORY);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	int rc = dir ? 0 : -errno;
	bool moved = true;

	while (rc == 0 && moved) {
		moved = false;
		rewinddir(dir);
		for (struct dirent *d; rc == 0 && (errno = 0, d = readdir(dir));) {
			if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0 || strcmp(d->d_name, KS_RESTORE_NAME) == 0)
				continue;
			int one = move_one(from, d->d_name, to, loosened);
			moved |= one == 0;
			if (one < 0 && one != -EEXIST && one != -ENOENT) {
				rc = one;
				(void)snprintf(ret_name, 256, "%s", d->d_name);
			}
		}
		if (rc == 0 && errno)
			rc = -errno;
	}
	if (dir)
		(void)closedir(dir);
	else
		ks_close(&fd);
	return rc;
}

static void tighten(int root, struct loosened *loosened)
{
	while (loosened) {
		struct loosened *next = loosened->next;
		KS_AUTOCLOSE int fd = root < 0 ? -1 : openat(root, loosened->name, DIRECTORY);
		if (fd >= 0)
			(void)fchmod(fd, loosened->mode);
		free(loosened);
		loosened = next;
	}
}

/* ---- swap ---- */

int ks_staging_make(int root, struct ks_error *err)
{
	enum ks_sweep what;

	if (ks_staging_sweep(root, &what, err) < 0) /* what an earlier one left */
		return -1;
	if (mkdirat(root, KS_RESTORE_NAME, 0700) < 0 || mkdirat(root, KS_RESTORE_NAME "/new", 0700) < 0)
		return fail(errno, KS_RESTORE_NAME, err);
	int fd = openat(root, KS_RESTORE_NAME "/new", DIRECTORY);
	return fd < 0 ? fail(errno, KS_RESTORE_NAME, err) : fd;
}

static int swap(int root, int staging, int new, int old, struct ks_error *err)
{
	struct loosened *loosened = NULL, *ignored = NULL;
	char name[256] = KS_RESTORE_NAME, again[256];
	int rc = move_all(root, old, &loosened, name);

	if (rc == 0 && renameat(staging, "old", staging, "trash") < 0)
		rc = -errno;
	if (rc == 0) {
		rc = move_all(new, root, &ignored, name);
		if (rc < 0) { /* a disk so full that a directory cannot grow: all the way back */
			(void)move_all(root, new, &ignored, again);
			(void)renameat(staging, "trash", staging, "old");
		} else {
			(void)unlinkat(staging, "new", AT_REMOVEDIR); /* done: nothing is to be finished */
		}
	}
	if (rc < 0)
		(void)move_all(old, root, &ignored, again);
	tighten(rc < 0 ? root : -1, loosened);
	tighten(-1, ignored);
	return rc < 0 ? fail(-rc, name, err) : 0;
}

int ks_staging_swap(int root, struct ks_error *err)
{
	KS_AUTOCLOSE int staging = openat(root, KS_RESTORE_NAME, DIRECTORY);

	if (staging < 0 || mkdirat(staging, "old", 0700) < 0)
		return fail(errno, KS_RESTORE_NAME, err);
	KS_AUTOCLOSE int new = openat(staging, "new", DIRECTORY), old = openat(staging, "old", DIRECTORY);
	if (new < 0 || old < 0)
		return fail(errno, KS_RESTORE_NAME, err);
	return swap(root, staging, new, old, err);
}

/* ---- sweep ---- */

static enum ks_sweep settle(int root, int staging)
{
	KS_AUTOCLOSE int new = openat(staging, "new", DIRECTORY), old = openat(staging, "old", DIRECTORY),
			 trash = openat(staging, "trash", DIRECTORY);
	struct loosened *ignored = NULL;
	char name[256];
	enum ks_sweep what = KS_SWEEP_REMOVED;

	if (old >= 0 && trash < 0) {
		what = KS_SWEEP_BACK;
		(void)move_all(old, root, &ignored, name);
	} else if (new >= 0 && trash >= 0) {
		what = KS_SWEEP_FORWARD;
		(void)move_all(new, root, &ignored, name);
	}
	tighten(-1, ignored);
	return what;
}

static int remove_all(int root, int staging, struct ks_error *err)
{
	struct ks_remove *remove;
	int rc;

	if (ks_remove_start(staging, NULL, &remove, err) < 0)
		return -1;
	do
		rc = ks_remove_step(remove, SLICE_US, err);
	while (rc == 0);
	ks_remove_free(remove);
	if (rc > 0 && unlinkat(root, KS_RESTORE_NAME, AT_REMOVEDIR) < 0)
		rc = ks_fail_errno(err, KS_E_IO, errno, "%s in the workspace cannot be removed", KS_RESTORE_NAME);
	return rc < 0 ? -1 : 0;
}

int ks_staging_sweep(int root, enum ks_sweep *ret, struct ks_error *err)
{
	*ret = KS_SWEEP_NOTHING;
	if (unlinkat(root, KS_RESTORE_NAME, 0) == 0 || errno == ENOENT)
		return 0; /* a file or a link of that name was nobody's restore */
	if (faccessat(root, KS_RESTORE_NAME, R_OK | W_OK | X_OK, AT_EACCESS) < 0)
		ks_make_accessible(root, KS_RESTORE_NAME);
	KS_AUTOCLOSE int staging = openat(root, KS_RESTORE_NAME, DIRECTORY);
	if (staging < 0)
		return fail(errno, KS_RESTORE_NAME, err);
	*ret = settle(root, staging);
	return remove_all(root, staging, err);
}
