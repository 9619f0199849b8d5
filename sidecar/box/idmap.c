#include "idmap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "sys.h"

/* The number in fdinfo belongs to the pid namespace of that /proc, which is the one a path needs. */
static int pid_of(int pidfd)
{
	char path[48], text[512];

	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	KS_AUTOCLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return -1;
	text[n] = '\0';
	char *line = strstr(text, "\nPid:");
	return line ? atoi(line + 5) : -1;
}

static int write_proc(int pid, const char *file, const char *text, struct ks_error *err)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	KS_AUTOCLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, strlen(text)) < 0) {
		(void)ks_fail_errno(err, KS_E_HOST_UNSUPPORTED, errno, "cannot write %s of a new user namespace", file);
		(void)ks_error_step(err, "id map");
		return ks_error_hint(err, "user namespaces may be restricted here: see kernel.apparmor_restrict_unprivileged_userns, "
					  "user.max_user_namespaces and the container's seccomp profile");
	}
	return 0;
}

static void format_map(const struct ks_id_range *map, unsigned count, char *text, size_t size)
{
	size_t at = 0;

	for (unsigned i = 0; i < count; i++)
		if (map[i].count > 0)
			at += (size_t)snprintf(text + at, size - at, "%u %u %u\n", map[i].inside, map[i].outside, map[i].count);
}

int ks_write_id_maps(int pidfd, const struct ks_id_range *uids, const struct ks_id_range *gids, unsigned count,
		     bool deny_setgroups, struct ks_error *err)
{
	char text[4 * 40];
	int pid = pid_of(pidfd);

	/* user_namespaces(7): without CAP_SETGID in the parent, gid_map may be written only once setgroups is denied */
	if (deny_setgroups && write_proc(pid, "setgroups", "deny", err) < 0)
		return -1;
	format_map(uids, count, text, sizeof(text));
	if (write_proc(pid, "uid_map", text, err) < 0)
		return -1;
	format_map(gids, count, text, sizeof(text));
	return write_proc(pid, "gid_map", text, err);
}

int ks_idmap_namespace(uid_t from_uid, gid_t from_gid, uid_t to_uid, gid_t to_gid, struct ks_error *err)
{
	const struct ks_id_range uids = { from_uid, to_uid, 1 }, gids = { from_gid, to_gid, 1 };
	char path[64];
	int pidfd = -1, fd = -1;
	pid_t pid = ks_clone3(CLONE_NEWUSER, SIGCHLD, -1, &pidfd);

	if (pid < 0)
		return ks_fail_errno(err, KS_E_HOST_UNSUPPORTED, errno, "cannot make a user namespace for an id-mapped mount");
	if (pid == 0)
		for (;;)
			(void)pause();
	if (ks_write_id_maps(pidfd, &uids, &gids, 1, false, err) == 0) {
		(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", pid_of(pidfd));
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			(void)ks_fail_errno(err, KS_E_HOST_UNSUPPORTED, errno, "cannot open a user namespace");
	}
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	(void)close(pidfd);
	return fd;
}

int ks_clone_tree(int fd, const char *path, int idmap, struct ks_error *err)
{
	/* AT_RECURSIVE: what is mounted below the source belongs to it, and must become read-only with it */
	KS_AUTOCLOSE int tree = open_tree(fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE);

	if (tree < 0)
		return ks_fail_errno(err, KS_E_START_FAILED, errno, "cannot clone the mount of %s", path);
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (unsigned)idmap };
	/* not recursive: a file system below may not support it, and nobody has looked at its owners */
	if (idmap >= 0 && mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return ks_fail_errno(err, KS_E_START_FAILED, errno, "cannot make an id-mapped mount of %s", path);
	return KS_TAKE_FD(tree);
}
