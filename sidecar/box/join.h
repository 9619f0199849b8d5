/* join.h: in the init of a box: a main process that is not executed but comes in. A zygote forks it, with an interpreter that is booted
 * already; it enters the namespaces of the box, gives up its power, and is init's child from then on, as one that was executed. Init does
 * not take its word for it: what the kernel says of the process must be what it says of any other. */
#pragma once

#include "init.h"

struct ks_join_spec {
	const struct ks_box_setup *setup;
	int sock; /* the zygote has the other end */
	int stdio[3], result_fd, cwd;
};

/* How many filters the caller is under; -1: this kernel does not say (it does since Linux 5.9). */
long ks_join_filters(void);
/* Lets one in, and waits until it is there. Its pid, with descriptors of it and of the listener of its filter; -1 with err: nothing foreign
 * has run, and the box is of no use. */
pid_t ks_join_admit(const struct ks_join_spec *spec, int *ret_pidfd, int *ret_listener, struct ks_error *err);
