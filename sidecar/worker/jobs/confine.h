/* confine.h: kern-worker gives up everything that its jobs do not need, before the first of them. */
#pragma once

#include <sys/types.h>

#include "run.h"

struct ks_identity {
	pid_t parent;
	bool become; /* take on the ids; else they are ours already */
	uid_t uid;
	gid_t gid;
};

/* Ids, groups and capabilities of the box's user; no new privileges; no core dump; the sidecar's death is ours; below the roots only
 * (Landlock, where the kernel has it); a short list of system calls, none of which starts a program or opens a socket. A step that fails
 * is the end of the process: no job runs with more than it should have. */
void ks_confine(const struct ks_identity *who, struct ks_roots *roots);
