/* private.h: the sidecar's own directory on disk, and the private workspaces in it.
 *
 *	<base>/kern-sidecar-<uid>/<8 hex>/ws-<n>
 *
 * <base> is $KERN_STATE_DIR; else the first of $TMPDIR, /tmp, /var/tmp that is writable, not mounted noexec and has
 * 64 MiB free; else the first that is writable. $XDG_RUNTIME_DIR is not used: it is small, kept in memory, and often
 * noexec, and agents build and run programs. Each running sidecar holds a lock (flock) on its <8 hex> directory; one
 * whose lock is free belongs to a dead sidecar, and the next one sweeps it away. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "workspace/remove.h"

struct ks_state;

/* Open it after the launcher has been forked: the lock lives as long as any copy of the fd. */
int ks_state_open(struct ks_state **ret, struct ks_error *err);
const char *ks_state_path(const struct ks_state *state); /* of this sidecar's directory, canonical */
int ks_state_fd(const struct ks_state *state);
/* The identity of kern-sidecar-<uid>, for the rules of policy.h. */
void ks_state_identity(const struct ks_state *state, dev_t *ret_dev, ino_t *ret_ino);
/* Removes what dead sidecars left, in slices: 1 done, 0 more to do, -1 done but something stayed (for the log). */
int ks_state_sweep(struct ks_state *state, int64_t budget_us, struct ks_error *err);
/* Removes this sidecar's directory with what is left in it: 1, 0, -1 as above. */
int ks_state_close_step(struct ks_state *state, int64_t budget_us, struct ks_error *err);
void ks_state_free(struct ks_state *state);

/* A new empty directory, 0700; as root it is given to owner_uid:owner_gid. *ret_fd is O_RDONLY|O_DIRECTORY. */
int ks_private_workspace_new(struct ks_state *state, uid_t owner_uid, gid_t owner_gid, char **ret_path, int *ret_fd,
			     struct ks_error *err);
/* `path` is one that ks_private_workspace_new returned. Then ks_remove_step until it is not 0, and ks_remove_free. */
int ks_private_workspace_remove(struct ks_state *state, const char *path, struct ks_remove **ret, struct ks_error *err);

/* A workspace that the host names: absolute; the last component is made (0755) when absent; links in the path are
 * followed once and the result is pinned; must pass ks_source_check. Errors point at /workspace. */
int ks_workspace_open(const char *path, const struct ks_state *state, char **ret_canonical, int *ret_fd,
		      struct ks_error *err);
