/* idmap.h: writing the id maps of user namespaces (user_namespaces(7)), from outside. */
#pragma once

#include "plan.h"

/* Works from any pid namespace that has a /proc: the pid is taken from the pidfd's fdinfo. */
int ks_write_id_maps(int pidfd, const struct ks_id_range *uids, const struct ks_id_range *gids, unsigned count,
		     bool deny_setgroups, struct ks_error *err);
/* A user namespace that nothing lives in, for an id-mapped mount (mount_setattr(2)): files of host ids `from` appear as those of host
 * ids `to`. Needs real root. The descriptor, or -1 with err. */
int ks_idmap_namespace(uid_t from_uid, gid_t from_gid, uid_t to_uid, gid_t to_gid, struct ks_error *err);
/* A detached mount of the tree at `fd` (`path` is for messages), with everything that is mounted below it; id-mapped by that namespace
 * unless idmap is -1. Needs real root. The descriptor, or -1 with err. */
int ks_clone_tree(int fd, const char *path, int idmap, struct ks_error *err);
