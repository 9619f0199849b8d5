/* filter.h: the two seccomp filters of a box. Built once at start, loaded many times as plain BPF. */
#pragma once

#include <linux/filter.h>

#include "base/error.h"

struct ks_filter {
	struct sock_filter *code;
	unsigned short count;
};

/* Memory that a poll of /proc cannot see: where no memory cgroup exists, memfd_create and SysV shm are refused. */
#define KS_FILTER_NO_HIDDEN_MEMORY 1u

/* The allowlist that the template loads and every box inherits. No notify: a chain may hold one listener. */
int ks_filter_allowlist(unsigned flags, struct ks_filter *ret_filter, struct ks_error *err);
/* The second filter of a box: takes the set-up calls away and reports them. */
int ks_filter_escape(struct ks_filter *ret_filter, struct ks_error *err);

/* Both need no_new_privs (or CAP_SYS_ADMIN) and return 0, or a listener, or -errno. */
int ks_filter_load(const struct ks_filter *filter);
int ks_filter_load_listener(const struct ks_filter *filter);
