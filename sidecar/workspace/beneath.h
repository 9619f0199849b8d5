/* beneath.h: opening names below a directory of which the other side may change anything at any time.
 * No symbolic link is followed by the kernel anywhere, nothing outside the directory is reached, FIFOs do not block. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum ks_beneath {
	KS_BENEATH_STAY = 0,  /* a mount point on the way is refused: -EXDEV */
	KS_BENEATH_XDEV = 1,  /* mount points may be crossed */
};

/* Opens `path` (relative, any length, no "..") below `dir_fd`; O_CLOEXEC, O_NOFOLLOW, O_NONBLOCK and O_NOCTTY are
 * added. Returns an fd or -errno; ELOOP, ENOTDIR and ENOENT are what a tree that changes under us answers. */
int ks_open_beneath(int dir_fd, const char *path, int flags, enum ks_beneath how);
/* Same for a regular file that is to be read: -EINVAL for anything else, before a byte of it is read. */
int ks_open_regular(int dir_fd, const char *path);
/* Where `path` leads when links that stay below dir_fd are followed, at most 40 of them: *ret has none at this moment, and
 * ks_open_beneath() refuses one that has come since. A last name that is a link stays with keep_last; what does not exist is no
 * error. 0 or -errno: EXDEV when a link is absolute or leads out. */
int ks_follow_beneath(int dir_fd, const char *path, bool keep_last, enum ks_beneath how, char **ret);
/* Tests: behave as on a kernel (before 5.6) or in a container that has no openat2. */
void ks_beneath_without_openat2(bool without);
