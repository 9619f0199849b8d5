/* mounts.h: the further mounts of a session: paths of the host, memory file systems, and how they may lie in each other. */
#pragma once

#include "session/session.h"

/* Checks and pins `mounts`, `tmpfs` and `shmSize` of the request. Errors point at the entry ("/mounts/2/source"). The limits, the
 * workspace and its target must be known already. */
int ks_session_take_mounts(struct ks_session *session, const struct ks_session_params *params, struct ks_error *err);
void ks_session_free_mounts(struct ks_session *session);
/* "64m" in bytes; the pattern has been checked. 0 when it is beyond 2^62. */
uint64_t ks_size_bytes(const char *text);
/* Is `path` equal to `place` or below it? Both absolute and normalised. */
bool ks_path_within(const char *path, const char *place);
