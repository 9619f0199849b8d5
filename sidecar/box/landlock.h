/* landlock.h: one more layer where the kernel has it (landlock(7), Linux 5.19 for ABI 2): whatever the mounts say, nothing is written
 * outside the places that a plan makes writable, and no abstract socket or signal reaches out of the box. */
#pragma once

#include "base/landlock.h"
#include "plan.h"

/* A ruleset that init enforces, and whoever comes into its box (ks_landlock_enforce). An fd; -ENOSYS: this kernel has no such thing. */
int ks_landlock_ruleset(const struct ks_plan_view *plan);
