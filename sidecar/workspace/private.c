#include "private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/clock.h"

#define MIN_FREE_BYTES (UINT64_C(64) << 20)
#define NAME_LEN 8u

struct ks_state {
	char *path;
	char name[NAME_LEN + 1];
	int parent_fd, dir_fd; /* dir_fd carries the lock */
	uint64_t next;	       /* workspace number */
	struct ks_remove *closing;
	DIR *sweep; /* over parent_fd */
	bool swept;
	struct ks_error stuck; /* what the sweep could not remove */
	int dead_fd; /* a dead sidecar's directory, locked by us; -1 none */
	char dead_name[NAME_LEN + 1];
	struct ks_remove *dead;
};

static int fail_path(struct ks_error *err, int error, const char *path)
{
	enum ks_reason reason = KS_E_IO;

	if (error == ENOENT)
		reason = KS_E_NOT_FOUND;
	else if (error == ENOTDIR || error == ELOOP)
		reason = KS_E_NOT_A_DIRECTORY;
	else if (error == EACCES || error == EPERM)
		reason = KS_E_PERMISSION_DENIED;
	else if (error == ENOSPC || error == EDQUOT)
		reason = KS_E_NO_SPACE;
	else if (error == EROFS)
		reason = KS_E_READ_ONLY;
	ks_fail_errno(err, reason, error, "the sidecar's state directory cannot be used at \"%.150s\"", path);
	return ks_error_hint(err, "set KERN_STATE_DIR to a directory of yours on a disk with room");
}

/* *ret_good: programs may run from it and there is room. */
static int open_base(const char *path, int *ret_fd, bool *ret_good, struct ks_error *err)
{
	struct stat st;
	struct statvfs fs;
	KS_AUTOCLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) < 0 || fstat(fd, &st) < 0 || fstatvfs(fd, &fs) < 0)
		return fail_path(err, errno, path);
	if ((st.st_mode & S_IWOTH) && !(st.st_mode & S_ISVTX)) {
		ks_fail(err, KS_E_PERMISSION_DENIED,
			"everybody may replace what is in \"%.150s\" (it has no sticky bit): no place for the sidecar's state",
			path);
		return ks_error_hint(err, "chmod +t it, or set KERN_STATE_DIR to a directory of yours");
	}
	*ret_good = !(fs.f_flag & ST_NOEXEC) && (uint64_t)fs.f_bavail * fs.f_frsize >= MIN_FREE_BYTES;
	*ret_fd = KS_TAKE_FD(fd);
	return 0;
}

static int choose_base(char **ret_path, int *ret_fd, struct ks_error *err)
{
	const char *explicit = getenv("KERN_STATE_DIR");
	const char *const candidates[] = { getenv("TMPDIR"), "/tmp", "/var/tmp" };
	const char *found = NULL;
	KS_AUTOCLOSE int fd = -1;
	struct ks_error first = { .reason = KS_E_NONE };
	bool good = false;

	if (explicit && *explicit) {
		if (*explicit != '/') {
			ks_fail(err, KS_E_INVALID_PATH, "KERN_STATE_DIR is \"%.150s\", not an absolute path", explicit);
			return ks_error_hint(err, "set it to an existing directory of yours, or unset it");
		}
		if (open_base(explicit, &fd, &good, err) < 0)
			return -1;
		found = explicit;
	}
	for (size_t i = 0; !(explicit && *explicit) && !good && i < KS_COUNT(candidates); i++) {
		int other = -1;
		struct ks_error why;
		if (!candidates[i] || *candidates[i] != '/')
			continue;
		if (open_base(candidates[i], &other, &good, &why) < 0) {
			if (first.reason == KS_E_NONE)
				first = why;
			continue;
		}
		if (found && !good) {
			ks_close(&other);
			continue;
		}
		ks_close(&fd);
		fd = other;
		found = candidates[i];
	}
	if (!found) {
		*err = first;
		return -1;
	}
	char *path = realpath(found, NULL);
	if (!path)
		return fail_path(err, errno, found);
	*ret_path = path;
	*ret_fd = KS_TAKE_FD(fd);
	return 0;
}

/* kern-sidecar-<uid>. In /tmp anybody may have made that name before us. */
static int open_parent(int base_fd, const char *base, char **ret_path, int *ret_fd, struct ks_error *err)
{
	struct stat st;
	char *path;
	uid_t me = geteuid();

	if (asprintf(&path, "%s/kern-sidecar-%u", strcmp(base, "/") == 0 ? "" : base, me) < 0)
		return ks_fail_errno(err, KS_E_INTERNAL, ENOMEM, "cannot name the state directory");
	KS_AUTOFREE char *full = path;
	const char *name = strrchr(path, '/') + 1;
	if (mkdirat(base_fd, name, 0700) < 0 && errno != EEXIST)
		return fail_path(err, errno, path);
	KS_AUTOCLOSE int fd = openat(base_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && (errno == ELOOP || errno == ENOTDIR)) {
		ks_fail_errno(err, KS_E_NOT_A_DIRECTORY, errno, "\"%.150s\" is a link or a file that somebody put there",
			      path);
		return ks_error_hint(err, "find out who, remove it, or set KERN_STATE_DIR to a directory of yours");
	}
	if (fd < 0 || fstat(fd, &st) < 0)
		return fail_path(err, errno, path);
	if (st.st_uid != me) {
		ks_fail(err, KS_E_PERMISSION_DENIED, "\"%.150s\" belongs to user %u, not to user %u who runs the sidecar",
			path, st.st_uid, me);
		return ks_error_hint(err, "have it removed, or set KERN_STATE_DIR to a directory of yours");
	}
	if (st.st_mode & 077) {
		ks_fail(err, KS_E_PERMISSION_DENIED, "\"%.150s\" is open to others (mode %04o)", path,
			(unsigned)st.st_mode & 07777);
		return ks_error_hint(err, "look at what is in it, then remove it or chmod it to 0700");
	}
	*ret_path = KS_TAKE_PTR(full);
	*ret_fd = KS_TAKE_FD(fd);
	return 0;
}

/* Opens and locks; -EWOULDBLOCK when its owner lives, -ENOENT when a sweep was faster. */
static int lock_dir(int parent_fd, const char *name)
{
	struct stat mine, there;
	KS_AUTOCLOSE int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &mine) < 0 ||
	    fstatat(parent_fd, name, &there, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return mine.st_ino == there.st_ino ? KS_TAKE_FD(fd) : -ENOENT;
}

/* Another sidecar's sweep may take a directory for dead between its making and its locking: then another name. */
static int make_own(struct ks_state *state, const char *parent, struct ks_error *err)
{
	int error = 0;

	for (int tries = 0; tries < 16; tries++) {
		unsigned token;
		if (getrandom(&token, sizeof(token), 0) != sizeof(token))
			return fail_path(err, EIO, parent);
		(void)snprintf(state->name, sizeof(state->name), "%08x", token);
		if (mkdirat(state->parent_fd, state->name, 0700) < 0) {
			error = errno;
			if (error == EEXIST)
				continue;
			return fail_path(err, error, parent);
		}
		int fd = lock_dir(state->parent_fd, state->name);
		if (fd >= 0) {
			state->dir_fd = fd;
			if (asprintf(&state->path, "%s/%s", parent, state->name) >= 0)
				return 0;
			state->path = NULL;
			return ks_fail_errno(err, KS_E_INTERNAL, ENOMEM, "cannot name the state directory");
		}
		error = -fd;
		if (error != ENOENT && error != EWOULDBLOCK)
			break;
	}
	return fail_path(err, error, parent);
}

int ks_state_open(struct ks_state **ret, struct ks_error *err)
{
	KS_AUTOFREE char *base = NULL;
	KS_AUTOFREE char *parent = NULL;
	KS_AUTOCLOSE int base_fd = -1;
	struct ks_state *state = calloc(1, sizeof(*state));

	if (!state)
		return ks_fail_errno(err, KS_E_INTERNAL, ENOMEM, "cannot open the state directory");
	state->parent_fd = state->dir_fd = state->dead_fd = -1;
	if (choose_base(&base, &base_fd, err) < 0 || open_parent(base_fd, base, &parent, &state->parent_fd, err) < 0 ||
	    make_own(state, parent, err) < 0) {
		ks_state_free(state);
		return -1;
	}
	*ret = state;
	return 0;
}

const char *ks_state_path(const struct ks_state *state)
{
	return state->path;
}

int ks_state_fd(const struct ks_state *state)
{
	return state->dir_fd;
}

void ks_state_identity(const struct ks_state *state, dev_t *ret_dev, ino_t *ret_ino)
{
	struct stat st = { .st_ino = 0 };

	(void)fstat(state->parent_fd, &st);
	*ret_dev = st.st_dev;
	*ret_ino = st.st_ino;
}

static bool is_instance(const char *name)
{
	return strlen(name) == NAME_LEN && strspn(name, "0123456789abcdef") == NAME_LEN;
}

/* The next directory whose owner is dead; false when there is none. */
static bool next_dead(struct ks_state *state)
{
	const struct dirent *d;

	while ((d = readdir(state->sweep))) {
		struct ks_error ignored;
		if (!is_instance(d->d_name) || strcmp(d->d_name, state->name) == 0)
			continue;
		ks_close(&state->dead_fd);
		int fd = lock_dir(state->parent_fd, d->d_name);
		if (fd < 0)
			continue;
		state->dead_fd = fd;
		memcpy(state->dead_name, d->d_name, NAME_LEN + 1);
		if (ks_remove_start(fd, NULL, &state->dead, &ignored) == 0)
			return true;
	}
	return false;
}

static void finish_dead(struct ks_state *state)
{
	ks_remove_free(KS_TAKE_PTR(state->dead));
	(void)unlinkat(state->parent_fd, state->dead_name, AT_REMOVEDIR);
	ks_close(&state->dead_fd);
}

int ks_state_sweep(struct ks_state *state, int64_t budget_us, struct ks_error *err)
{
	int64_t end = ks_now_us() + budget_us;

	if (!state->sweep && !state->swept) {
		int fd = openat(state->parent_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		state->sweep = fd < 0 ? NULL : fdopendir(fd);
		if (!state->sweep) {
			ks_close(&fd);
			return fail_path(err, errno, state->path);
		}
	}
	while (!state->swept) {
		if (!state->dead && !next_dead(state)) {
			state->swept = true;
			(void)closedir(KS_TAKE_PTR(state->sweep));
			break;
		}
		int64_t left = end - ks_now_us();
		int rc = ks_remove_step(state->dead, left > 0 ? left : 0, err);
		if (rc == 0)
			return 0;
		if (rc < 0)
			state->stuck = *err;
		finish_dead(state);
	}
	if (state->stuck.reason == KS_E_NONE)
		return 1;
	*err = state->stuck;
	return -1;
}

int ks_state_close_step(struct ks_state *state, int64_t budget_us, struct ks_error *err)
{
	if (!state->closing && ks_remove_start(state->dir_fd, NULL, &state->closing, err) < 0)
		return -1;
	int rc = ks_remove_step(state->closing, budget_us, err);
	if (rc == 1 && unlinkat(state->parent_fd, state->name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return ks_fail_errno(err, KS_E_IO, errno, "\"%.150s\" could not be removed", state->path);
	return rc;
}

void ks_state_free(struct ks_state *state)
{
	if (!state)
		return;
	ks_remove_free(state->closing);
	ks_remove_free(state->dead);
	if (state->sweep)
		(void)closedir(state->sweep);
	ks_close(&state->dead_fd);
	ks_close(&state->dir_fd);
	ks_close(&state->parent_fd);
	free(state->path);
	free(state);
}

int ks_private_workspace_new(struct ks_state *state, uid_t owner_uid, gid_t owner_gid, char **ret_path, int *ret_fd,
			     struct ks_error *err)
{
	char *path;

	if (asprintf(&path, "%s/ws-%llu", state->path, (unsigned long long)++state->next) < 0)
		return ks_fail_errno(err, KS_E_INTERNAL, ENOMEM, "cannot name a workspace");
	KS_AUTOFREE char *full = path;
	const char *name = strrchr(path, '/') + 1;
	if (mkdirat(state->dir_fd, name, 0700) < 0)
		return fail_path(err, errno, path);
	KS_AUTOCLOSE int fd = openat(state->dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || (geteuid() == 0 && fchown(fd, owner_uid, owner_gid) < 0)) {
		int error = errno;
		(void)unlinkat(state->dir_fd, name, AT_REMOVEDIR);
		return fail_path(err, error, path);
	}
	*ret_path = KS_TAKE_PTR(full);
	*ret_fd = KS_TAKE_FD(fd);
	return 0;
}

int ks_private_workspace_remove(struct ks_state *state, const char *path, struct ks_remove **ret, struct ks_error *err)
{
	size_t len = strlen(state->path);

	if (strncmp(path, state->path, len) != 0 || strncmp(path + len, "/ws-", 4) != 0)
		return ks_fail(err, KS_E_INTERNAL, "\"%.150s\" is no private workspace of this sidecar", path);
	return ks_remove_start(state->dir_fd, path + len + 1, ret, err);
}
