/* idmap.h: writing the id maps of user namespaces (user_namespaces(7)), from outside. */
#pragma once

#include "plan.h"

/* Works from any pid namespace that has a /proc: the pid is taken from the pidfd's fdinfo. */
int ks_write_id_maps(int pidfd, const struct ks_id_range *uids, const struct ks_id_range *gids, unsigned count,
		     bool deny_setgroups, struct ks_error *err);
/* A user namespace that nothing lives in, for an id-mapped mount (mount_setattr(2)): files of host id 0 appear as the box user's.
 * Needs real root. The descriptor, or -1 with err. */
int ks_root_as_box_user(struct ks_error *err);
