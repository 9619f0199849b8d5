/* group.h: a session group: user namespace, pid namespace with a tiny init, and the template, a parked process with the mount tree
 * of which boxes are clones. Runs below the launcher; knows nothing of calls. */
#pragma once

#include "launcher.h"

/* keeper -> launcher, inside the group's socket: fds: pidfd of the group's init, and of the template when there is one */
#define KS_OP_GROUP_MADE 100u

/* The keeper, born in the group's new user namespace: waits for the id map (a ks_msg, or an end), makes init and template, and ends.
 * The group then speaks on `sock`: GROUP_READY or GROUP_FAILED first. */
_Noreturn void ks_group_main(const struct ks_launcher_config *config, const struct ks_plan_view *plan, int sock,
			     const int *trees, int ntrees);
