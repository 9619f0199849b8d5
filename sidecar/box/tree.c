#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "sys.h"

static int fail_step(struct ks_error *err, const struct ks_plan_view *plan, const struct ks_step *step, int sys_errno)
{
	char name[40];

	(void)snprintf(name, sizeof(name), "%s %.30s", ks_step_name(step->kind), ks_plan_string(plan, step->target));
	/* what a request named, in a place where nothing may be made */
	const bool named = (sys_errno == ENOENT || sys_errno == ELOOP) &&
			   (step->kind == KS_STEP_BIND || step->kind == KS_STEP_DIR);
	(void)ks_fail_errno(err, named ? KS_E_MOUNT_REFUSED : KS_E_START_FAILED, sys_errno, "cannot set up %s in the box",
			    ks_plan_string(plan, step->target));
	if (named)
		(void)ks_error_hint(err, "a mount point inside the image or the workspace must exist, and neither be a symbolic link nor "
					  "lie behind one: make it there, or name another target");
	return ks_error_step(err, name);
}

static bool wanted_to_fail(const struct ks_plan_view *plan, const struct ks_step *step)
{
	char name[40];

	(void)snprintf(name, sizeof(name), "%s %.30s", ks_step_name(step->kind), ks_plan_string(plan, step->target));
	return ks_plan_fails(plan, name);
}

/* ---- sources: all are detached trees before our root covers any part of the host's ---- */

/* An ordinary user cannot clone a mount of the host's namespace; only this namespace's copy of it, found by its path again. That
 * it still is what was checked is seen by device and inode: the sidecar holds the original open, so the number is not reused. */
static int pin_by_path(const struct ks_plan_view *plan, const struct ks_step *step)
{
	struct stat st;
	KS_AUTOCLOSE int fd = ks_openat2(AT_FDCWD, ks_plan_string(plan, step->source), O_PATH,
					 RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);

	if (fd < 0)
		return -errno;
	/* AT_RECURSIVE: mounts inherited from another user namespace are locked together, a lone one is EINVAL */
	KS_AUTOCLOSE int tree = open_tree(fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE);
	if (tree < 0 || fstat(tree, &st) < 0)
		return -errno;
	if ((uint64_t)st.st_dev != step->device || (uint64_t)st.st_ino != step->inode)
		return -ESTALE;
	return KS_TAKE_FD(tree);
}

/* A mount of another namespace cannot be cloned from here (open_tree(2)): the template that has it does that, and sends the clone. */
static int receive_tree(int sock)
{
	struct ks_msg msg;
	int fds[KS_MSG_FDS], nfds;

	if (ks_recv(sock, &msg, sizeof(msg), fds, &nfds, 0) != (ssize_t)sizeof(msg))
		return -EPIPE;
	if (nfds == 1)
		return fds[0];
	ks_close_all(fds, nfds);
	return -EIO;
}

static int pin_source(const struct ks_plan_view *plan, const struct ks_step *step, const int *fds, int nfds)
{
	if (step->fd < 0)
		return pin_by_path(plan, step);
	if (step->fd >= nfds)
		return -EBADF;
	return step->flags & KS_STEP_SENT ? receive_tree(fds[step->fd]) : fds[step->fd];
}

static int pin_sources(const struct ks_plan_view *plan, const int *fds, int nfds, int *trees, struct ks_error *err)
{
	for (uint32_t i = 0; i < plan->head->step_count; i++) {
		const struct ks_step *step = &plan->steps[i];
		if (step->kind != KS_STEP_BIND || step->flags & (KS_STEP_COVER | KS_STEP_AGAIN))
			continue;
		trees[i] = pin_source(plan, step, fds, nfds);
		if (trees[i] < 0)
			return fail_step(err, plan, step, -trees[i]);
	}
	return 0;
}

/* ---- placing ---- */

static bool same_device(const struct stat *st, const char *path)
{
	struct stat own;

	return stat(path, &own) == 0 && own.st_dev == st->st_dev;
}

/* The template's own is the tmpfs of its root, in which it stands; a box's own (`box` is its plan) are those that it has mounted for
 * itself. A directory of an image, a workspace or the host is neither, also when it lies in a tmpfs. */
static bool is_ours(const struct ks_plan_view *box, int dir)
{
	struct stat st;

	if (fstat(dir, &st) < 0)
		return false;
	if (!box)
		return same_device(&st, ".");
	for (uint32_t i = 0; i < box->head->step_count; i++)
		if (box->steps[i].kind == KS_STEP_TMPFS && box->steps[i].flags & KS_STEP_BOX &&
		    same_device(&st, ks_plan_string(box, box->steps[i].target)))
			return true;
	return false;
}

/* The directory that is to hold `target`, whose last name is *ret_name. No part of it may be a link: that of an image or of a
 * workspace could lead over what is ours (CVE-2019-19921, CVE-2021-30465). Missing ones are made in what is ours and nowhere else,
 * so that nothing ever appears on the host's file system. cwd is the root. */
static int open_own_parent(const struct ks_plan_view *box, const char *target, const char **ret_name)
{
	char path[PATH_MAX];
	char *name = path;
	KS_AUTOCLOSE int dir = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	(void)snprintf(path, sizeof(path), "%s", target + 1);
	for (char *slash; dir >= 0 && (slash = strchr(name, '/')); name = slash + 1) {
		*slash = '\0';
		int next = ks_openat2(AT_FDCWD, path, O_PATH | O_DIRECTORY, RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS);
		if (next < 0 && errno == ENOENT && is_ours(box, dir) && mkdirat(dir, name, 0755) == 0)
			next = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return -errno;
		(void)close(dir);
		dir = next;
		*slash = '/';
	}
	if (dir < 0)
		return -errno;
	if (!is_ours(box, dir))
		return -ENOENT;
	*ret_name = target + 1 + (name - path);
	return KS_TAKE_FD(dir);
}

/* What is there already, or a new one of ours. */
static int open_target(const struct ks_plan_view *box, const char *target, bool want_dir)
{
	const char *name;
	int fd = ks_openat2(AT_FDCWD, target + 1, O_PATH, RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS);

	if (fd >= 0 || errno != ENOENT)
		return fd < 0 ? -errno : fd;
	KS_AUTOCLOSE int dir = open_own_parent(box, target, &name);
	if (dir < 0)
		return dir;
	if (want_dir) {
		if (mkdirat(dir, name, 0755) < 0)
			return -errno;
	} else {
		KS_AUTOCLOSE int file = openat(dir, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0644);
		if (file < 0)
			return -errno;
	}
	fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int place_bind(const struct ks_plan_view *plan, const struct ks_step *step, int tree)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_NOSUID };
	struct stat st;

	if (fstat(tree, &st) < 0)
		return -errno;
	KS_AUTOCLOSE int target = open_target(NULL, ks_plan_string(plan, step->target), S_ISDIR(st.st_mode));
	if (target < 0)
		return target;
	if (step->flags & KS_STEP_DEVICE) {
		if (!S_ISCHR(st.st_mode)) /* CVE-2025-31133: /dev/null of an image was a link to something else */
			return -ENODEV;
		attr.attr_set |= MOUNT_ATTR_NOEXEC;
	} else {
		attr.attr_set |= MOUNT_ATTR_NODEV;
	}
	/* Flags are only ever added: those that a foreign mount brings along are locked. */
	attr.attr_set |= step->flags & KS_STEP_RDONLY ? MOUNT_ATTR_RDONLY : 0;
	if (mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0)
		return -errno;
	if (move_mount(tree, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return -errno;
	return 0;
}

static int place_file(const struct ks_plan_view *plan, const struct ks_step *step)
{
	const char *name;
	KS_AUTOCLOSE int dir = open_own_parent(NULL, ks_plan_string(plan, step->target), &name);
	KS_AUTOCLOSE int fd = dir < 0 ? dir : openat(dir, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0644);

	if (fd < 0)
		return dir < 0 ? dir : -errno;
	ssize_t n = write(fd, ks_plan_string(plan, step->text), step->text_len);
	return n == (ssize_t)step->text_len ? 0 : n < 0 ? -errno : -EIO;
}

/* The box's user owns a memory workspace, whoever mounts it; in a box's own the mode lets everybody in. cwd is the root, and is again
 * afterwards. Where the template saw a directory another box may have put a link since. */
static int mount_tmpfs(const struct ks_plan_view *plan, const struct ks_step *step)
{
	const char *target = ks_plan_string(plan, step->target);
	KS_AUTOCLOSE int root = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	KS_AUTOCLOSE int dir = ks_openat2(AT_FDCWD, target + 1, O_PATH | O_DIRECTORY, RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS);
	char options[128];

	int len = snprintf(options, sizeof(options), "size=%llu,nr_inodes=%llu,mode=%o", (unsigned long long)step->size,
			   (unsigned long long)step->inodes, step->mode);
	if (!(step->flags & KS_STEP_BOX))
		(void)snprintf(options + len, sizeof(options) - (size_t)len, ",uid=%u,gid=%u", plan->head->box_uid,
			       plan->head->box_gid);
	if (root < 0 || dir < 0 || fchdir(dir) < 0)
		return -errno;
	int rc = mount("tmpfs", ".", "tmpfs", MS_NOSUID | MS_NODEV, options) < 0 ? -errno : 0;
	return fchdir(root) < 0 ? -errno : rc;
}

/* Of a workspace, where others write: by then it may be another thing than the one that was looked at. */
static int clone_own(const struct ks_plan_view *plan, const struct ks_step *step)
{
	KS_AUTOCLOSE int tree = open_tree(AT_FDCWD, ks_plan_string(plan, step->source) + 1,
					  OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
	struct stat st;

	if (tree < 0 || fstat(tree, &st) < 0)
		return -errno;
	if (step->inode != 0 && (st.st_dev != step->device || st.st_ino != step->inode))
		return -ESTALE;
	return KS_TAKE_FD(tree);
}

static int place(const struct ks_plan_view *plan, const struct ks_step *step, int tree)
{
	const char *target = ks_plan_string(plan, step->target), *name;
	KS_AUTOCLOSE int dir = -1;

	switch ((enum ks_step_kind)step->kind) {
	case KS_STEP_DIR:
		if (step->flags & KS_STEP_OPTIONAL) {
			dir = open_target(NULL, target, true);
			return dir < 0 ? dir : 0;
		}
		dir = open_own_parent(NULL, target, &name);
		return dir < 0 ? dir : mkdirat(dir, name, step->mode) < 0 ? -errno : 0;
	case KS_STEP_FILE:
		return place_file(plan, step);
	case KS_STEP_SYMLINK:
		dir = open_own_parent(NULL, target, &name);
		return dir < 0 ? dir : symlinkat(ks_plan_string(plan, step->text), dir, name) < 0 ? -errno : 0;
	case KS_STEP_BIND:
		if (step->flags & KS_STEP_COVER) {
			KS_AUTOCLOSE int own = clone_own(plan, step);
			return own < 0 ? own : place_bind(plan, step, own);
		}
		return place_bind(plan, step, tree);
	case KS_STEP_TMPFS:
		dir = open_target(NULL, target, true);
		return dir < 0 ? dir : mount_tmpfs(plan, step);
	case KS_STEP_PROC:
	case KS_STEP_DEVPTS:
	case KS_STEP_MASK:
		break;
	}
	return -EINVAL;
}

/* ---- the root ---- */

static int named(struct ks_error *err, const char *step, int sys_errno)
{
	(void)ks_fail_errno(err, KS_E_START_FAILED, sys_errno, "cannot prepare the box's root (%s)", step);
	return ks_error_step(err, step);
}

/* Any directory does: our tmpfs covers it in our own mount namespace only, and pivot_root takes it away. */
static const char *find_mount_point(void)
{
	static const char *const candidates[] = { "/tmp", "/run", "/mnt", "/var", "/usr" };
	struct stat st;

	for (size_t i = 0; i < KS_COUNT(candidates); i++)
		if (stat(candidates[i], &st) == 0 && S_ISDIR(st.st_mode))
			return candidates[i];
	return "/";
}

static int make_root(const struct ks_plan_view *plan, struct ks_error *err)
{
	const char *root = find_mount_point();

	if (ks_plan_fails(plan, "root") || mount("root", root, "tmpfs", MS_NOSUID | MS_NODEV, "size=4m,mode=755") < 0 ||
	    chdir(root) < 0)
		return named(err, "root", errno ? errno : EIO);
	return 0;
}

/* The proc of the session's pid namespace stays mounted, unmasked, for good: a box may mount its own only while a fully
 * visible one is there (mount_too_revealing in fs/namespace.c). The box covers it with its own. cwd is the new root. */
static int enter_root(const struct ks_plan_view *plan, struct ks_error *err)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };

	if (ks_plan_fails(plan, "session proc") || mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0) {
		(void)named(err, "session proc", errno ? errno : EIO);
		return ks_error_hint(err, "when this runs inside a container whose /proc is masked, start that container with an "
					  "unmasked /proc (docker: --security-opt systempaths=unconfined)");
	}
	if (ks_plan_fails(plan, "pivot_root") || ks_pivot_root(".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return named(err, "pivot_root", errno ? errno : EIO);
	if (ks_plan_fails(plan, "read-only root") || mount_setattr(AT_FDCWD, "/", 0, &attr, sizeof(attr)) < 0)
		return named(err, "read-only root", errno ? errno : EIO);
	return 0;
}

int ks_tree_build(const struct ks_plan_view *plan, const int *fds, int nfds, struct ks_error *err)
{
	static int trees[KS_PLAN_STEPS];

	errno = 0;
	if (ks_plan_fails(plan, "propagation") || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return named(err, "propagation", errno ? errno : EIO);
	if (pin_sources(plan, fds, nfds, trees, err) < 0 || make_root(plan, err) < 0)
		return -1;
	for (uint32_t i = 0; i < plan->head->step_count; i++) {
		const struct ks_step *step = &plan->steps[i];
		if (step->flags & KS_STEP_BOX)
			continue;
		int rc = wanted_to_fail(plan, step) ? -EIO : place(plan, step, trees[i]);
		if (rc < 0)
			return fail_step(err, plan, step, -rc);
	}
	errno = 0;
	return enter_root(plan, err);
}

/* ---- what each box mounts for itself ---- */

static int bind_again(const struct ks_plan_view *plan, const char *source, const char *target)
{
	KS_AUTOCLOSE int tree = open_tree(AT_FDCWD, source, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	struct stat st;

	if (tree < 0 || fstat(tree, &st) < 0)
		return -errno;
	KS_AUTOCLOSE int place = open_target(plan, target, S_ISDIR(st.st_mode));
	if (place < 0)
		return place;
	if (move_mount(tree, "", place, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return -errno;
	return 0;
}

/* Asked first: a mount that is refused waits for a grace period of the whole machine. Our own /dev/null, whose type the template has
 * checked. */
static int cover(const char *target)
{
	struct stat st;

	if (stat(target, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	return mount(S_ISDIR(st.st_mode) ? KS_EMPTY_DIR : "/dev/null", target, NULL, MS_BIND, NULL) < 0 ? -errno : 0;
}

#define PTY_MAX "64"

static int box_mount(const struct ks_plan_view *plan, const struct ks_step *step)
{
	const unsigned long safe = MS_NOSUID | MS_NODEV;
	const char *target = ks_plan_string(plan, step->target);

	switch ((enum ks_step_kind)step->kind) {
	case KS_STEP_TMPFS:
		return mount_tmpfs(plan, step);
	case KS_STEP_PROC:
		return mount("proc", target, "proc", safe | MS_NOEXEC, NULL) < 0 ? -errno : 0;
	case KS_STEP_DEVPTS:
		/* max: else a box could take all of kernel.pty.max that is not reserved for the host;
		 * no gid: an ordinary user has no id to give the terminals to (mount(2) on devpts: newinstance is the default) */
		return mount("devpts", target, "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,max=" PTY_MAX ",ptmxmode=0666,mode=0620") < 0 ?
			       -errno :
			       0;
	case KS_STEP_MASK:
		return cover(target);
	case KS_STEP_BIND:
		return bind_again(plan, ks_plan_string(plan, step->source), target);
	case KS_STEP_DIR:
	case KS_STEP_FILE:
	case KS_STEP_SYMLINK:
		break;
	}
	return -EINVAL;
}

int ks_tree_box_mounts(const struct ks_plan_view *plan, struct ks_error *err)
{
	for (uint32_t i = 0; i < plan->head->step_count; i++) {
		const struct ks_step *step = &plan->steps[i];
		if (!(step->flags & KS_STEP_BOX))
			continue;
		int rc = wanted_to_fail(plan, step) ? -EIO : box_mount(plan, step);
		if (rc < 0)
			return fail_step(err, plan, step, -rc);
	}
	return 0;
}
