/* status.h: what /proc/PID/status says about a process that made a refused call (proc_pid_status(5)). Reads text,
 * opens nothing. */
#pragma once

#include <stdint.h>

struct ks_status {
	char name[20];	/* as the kernel prints it, cut; "" when there is none */
	int tgid;	/* > 0 */
	int inner_pid;	/* in its own pid namespace */
	int threads;	/* 0: not known */
	uint64_t deaf;	/* signals that are blocked, ignored or caught: bit n - 1 of signal n */
};

/* 0, or -1 and nothing is written: no process is named. What else is missing, or was cut off, is taken for the worst:
 * pid 1, and every signal ignored. */
int ks_status_parse(const char *text, struct ks_status *ret);
