/* storage.h: where a session's workspace lies, and who holds workspaceMaxMb: the kernel, where the workspace is a file system of its
 * own and no larger, or as real root where its file system has project quotas; else the watch of disk.h. */
#pragma once

#include "session/session.h"

/* `workspaceStorage` and what it needs of the other fields, before anything is made. */
int ks_session_take_storage(struct ks_session *session, const struct ks_session_params *params, struct ks_error *err);
/* Opens the host's directory or makes a private one, and decides who holds its size. A memory workspace has its directory too, which
 * stays empty: the template mounts the workspace, and the group's `ready` brings it. */
int ks_session_open_workspace(struct ks_session *session, const struct ks_session_params *params, struct ks_error *err);
