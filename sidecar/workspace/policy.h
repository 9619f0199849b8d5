/* policy.h: which host paths a request may put into a box, and where. The one place for these rules.
 * Everything here is KS_E_MOUNT_REFUSED with the reason and the cure; the caller adds the pointer. */
#pragma once

#include "base/error.h"

struct ks_state;

/* `canonical`: absolute, links resolved; `fd`: the same object, pinned, or -1 when only the name can be judged yet.
 * Regular files and directories only. `state` may be NULL: then our own state is not looked at. */
int ks_source_check(int fd, const char *canonical, const struct ks_state *state, struct ks_error *err);
/* A file or directory for a mount: absolute, there, links in the path followed once; the result is pinned (O_PATH) and checked. */
int ks_source_open(const char *path, const struct ks_state *state, char **ret_canonical, int *ret_fd, struct ks_error *err);
/* Where in the box: absolute, normalised, not / and not in, at or above a place that the box itself needs. */
int ks_target_check(const char *target, struct ks_error *err);
