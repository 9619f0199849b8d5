/* msg.h: the one fixed-size record that sidecar, launcher, template and box exchange over SOCK_SEQPACKET,
 * with file descriptors beside it. The claim of a box is in claim.h. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/fds.h"

enum ks_op {
	KS_OP_GROUP_OPEN = 1, /* sidecar -> launcher. fds: plan, then the trees it names */
	KS_OP_GROUP_CLOSE,    /* sidecar -> launcher */
	KS_OP_GROUP_READY,    /* template -> launcher -> sidecar. fd: root of the memory workspace, if the plan has one */
	KS_OP_GROUP_FAILED,   /* launcher or template -> sidecar: error */
	KS_OP_GROUP_ENDED,    /* launcher -> sidecar: every process of the group has been reaped */
	KS_OP_SEND_MEMORY,    /* sidecar -> launcher -> template. fd: the socket that the tree of the memory workspace goes to */
	KS_OP_BOX_MAKE,	      /* sidecar -> launcher -> template. fds: box socket, then what the cgroup step needs */
	KS_OP_BOX_MADE,	      /* template -> launcher -> sidecar: fd: pidfd of the box's init; or error */
	KS_OP_BOX_ENDED,      /* launcher -> sidecar: the box's init has been reaped */
	KS_OP_READY,	      /* box -> sidecar: fd: seccomp listener. Claimed or not, nothing foreign has run */
	KS_OP_FAILED,	      /* box -> sidecar: a set-up step failed: error; nothing foreign has run or will */
	KS_OP_STARTED,	      /* box -> sidecar: the program has been executed, or has come in. fds: pidfd of the main process; in the
				 latter case the listener that counts from now on */
	KS_OP_EXEC_FAILED,    /* box -> sidecar: the box was ready, the program was not: exit.error_number */
	KS_OP_EXITED,	      /* box -> sidecar: the main process ended: exit */
};

/* flags of BOX_MAKE */
#define KS_BOX_INTO_CGROUP 1u /* the last fd is a v2 cgroup to be born in */
#define KS_BOX_ZYGOTE 4u /* its main process enters other boxes of the group: init.h */
#define KS_BOX_OWN_USER_NS 2u /* RLIMIT_NPROC counts by user namespace and id: without a pids cgroup each box needs its own */

/* What init saw. Times in microseconds. */
struct ks_exit_report {
	int32_t wait_status;  /* as in wait(2) */
	int32_t error_number; /* of EXEC_FAILED */
	int64_t wall_us;      /* from the start of the main process */
	int64_t user_us, system_us; /* of every process of the box that was reaped */
	int64_t max_rss_bytes;	    /* of the largest of them */
	int32_t alone;		    /* no other process of the box is left */
	int32_t polled_oom;	    /* our own poll saw the box above its memory cap, and ended it */
};

struct ks_msg {
	uint32_t op;
	uint32_t group, box; /* numbers that the sidecar gave */
	uint32_t flags;
	union {
		struct ks_error error;
		struct ks_exit_report exit;
	} u;
};
