/* landlock.h: one more layer where the kernel has it (landlock(7), Linux 5.19 for ABI 2): whatever the mounts say, nothing is written
 * outside the places that a plan makes writable, and no abstract socket or signal reaches out of the box. */
#pragma once

#include "base/landlock.h"
#include "plan.h"

/* For the calling process and what it starts; needs no_new_privs. 0 or -errno. */
int ks_landlock_restrict(const struct ks_plan_view *plan);
/* The same for another process, as a ruleset that it enforces. -ENOSYS: this kernel has no such thing. */
int ks_landlock_ruleset(const struct ks_plan_view *plan);
