/* quota.h: a hard limit for a private workspace, by its file system's project quota: real root, and a file system that enforces
 * project quotas (ext4, xfs: mount -o prjquota), only. A box cannot leave its project: new files inherit it, and only a process of
 * the first user namespace may change it (fileattr_set_prepare() in the kernel's VFS). Root itself is not held (CAP_SYS_RESOURCE).
 *
 * The project id is 2147483648 plus the directory's inode number, so that no two directories of a file system have the same, whoever
 * makes them. Ids from 2147483648 on are not for anything else there. */
#pragma once

#include <stdint.h>

#include "base/error.h"

/* `dir_fd` is empty. `bytes` and `names` come on top of the directory itself. -1 with err: there is no limit, and nothing to undo. */
int ks_quota_hold(int dir_fd, uint64_t bytes, uint64_t names, uint32_t *ret_project, struct ks_error *err);
/* When the directory has been removed: `fd` is any other file there. The limit of a dead sidecar's directory stays, on an id that no
 * file has, until a directory gets the same inode number. */
void ks_quota_release(int fd, uint32_t project);
