/* join.h: the words by which a process that a zygote has forked comes into a box. The box's init (box/join.c) says what there is
 * to enter; the zygote's extension (languages/python/fork.c) enters it and answers. Both over a SOCK_SEQPACKET pair of their own.
 *
 * init -> zygote	struct ks_join, then filter_count BPF instructions of 8 bytes: the filter of the box, to be loaded last. Beside it
 *			one descriptor for each bit of `present`, the lowest first.
 * process -> init	struct ks_joined. Beside it, when error is 0, the listener of that filter, and the kernel's word on who it is
 *			(SCM_CREDENTIALS, unix(7)).
 *
 * The zygote gets its end of that pair beside a frame FORK of its result channel, and after it the cgroup.procs files to write "0"
 * into. The frame's call is 1 when a call waits for this process already, and 0 when it is made ahead. */
#pragma once

#include <stdint.h>

#define KS_JOIN_FORK 10u	/* type of that frame: frames.h */
#define KS_JOIN_FILTER_MAX 1024 /* instructions */
#define KS_JOIN_FDS_MAX 16

enum ks_join_slot {
	KS_JOIN_PID, /* namespaces; net and user are missing when the box has none of its own */
	KS_JOIN_MNT,
	KS_JOIN_IPC,
	KS_JOIN_UTS,
	KS_JOIN_CGROUP,
	KS_JOIN_NET,
	KS_JOIN_USER,
	KS_JOIN_LANDLOCK, /* a ruleset, where the kernel has it */
	KS_JOIN_CWD,
	KS_JOIN_STDIN,
	KS_JOIN_STDOUT,
	KS_JOIN_STDERR,
	KS_JOIN_RESULT, /* becomes descriptor 3 */
	KS_JOIN_SLOTS
};

struct ks_join {
	uint32_t present; /* bit n: slot n */
	uint32_t filter_count;
};

struct ks_joined {
	int32_t error; /* 0, or an errno: nothing of the call has run */
	char step[28]; /* what failed */
};
