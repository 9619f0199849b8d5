/* tree.h: executes the mount steps of a plan: the template's once, the box's in every box. */
#pragma once

#include "plan.h"

/* In the template, in a mount namespace of its own. `fds` are the plan's trees. On failure err->step names the step. */
int ks_tree_build(const struct ks_plan_view *plan, const int *fds, int nfds, struct ks_error *err);
/* In a box: what must never be shared with another box. */
int ks_tree_box_mounts(const struct ks_plan_view *plan, struct ks_error *err);
