/* launcher.h: pid 1 of a pid namespace of its own (and, for an ordinary user, of a user namespace). Parent of every box. Relays
 * requests, reaps by pidfd, and is the one process whose death takes everything below with it. */
#pragma once

#include "filter.h"
#include "plan.h"

struct ks_launcher_config {
	bool is_root;
	uid_t uid;
	gid_t gid;
	char *arguments; /* the process's own argv and environment, to be wiped in the child */
	size_t arguments_len;
	struct ks_filter escape, zygote;
	const char *fail_step; /* test hook, or "" */
};

/* Must be called while the process has one thread. The launcher's end of the control socket carries ks_msg both ways. */
int ks_launcher_start(const struct ks_launcher_config *config, int *ret_control, pid_t *ret_pid, struct ks_error *err);
