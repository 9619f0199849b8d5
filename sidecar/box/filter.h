/* filter.h: the seccomp filters of a box, compiled from seccomp_list.h. Compiling takes microseconds; a program
 * is loaded many times. */
#pragma once

#include <linux/filter.h>
#include <stdint.h>

#include "base/error.h"

struct ks_filter {
	struct sock_filter *code;
	unsigned short count;
};

/* Variants, together or alone. Memory that a poll of /proc cannot see: where no memory cgroup exists, memfd_create
 * and SysV shm are refused. Untrusted: what an ordinary program gets along without is refused as well. */
#define KS_FILTER_NO_HIDDEN_MEMORY 1u
#define KS_FILTER_UNTRUSTED 2u

/* The allowlist of numbers, and the rules on arguments, which the template loads and every box inherits. No notify: a chain may hold
 * one listener. The caller frees their code. */
int ks_filter_allowlist(unsigned flags, struct ks_filter *ret_filter, struct ks_error *err);
int ks_filter_arguments(unsigned flags, struct ks_filter *ret_filter, struct ks_error *err);
/* The filter of each box: takes the set-up calls away and reports them. Its code is static. */
int ks_filter_escape(struct ks_filter *ret_filter, struct ks_error *err);
/* Of a zygote, instead: it may enter namespaces, and nothing else that the filter of a box refuses. What it forks loads that one on
 * top. Its code is static. */
int ks_filter_zygote(struct ks_filter *ret_filter, struct ks_error *err);

enum ks_filter_kind { KS_FILTER_ARGUMENTS, KS_FILTER_ESCAPE, KS_FILTER_ZYGOTE };

#define KS_FILTER_MAX 1024

/* What the last three are made of, for any architecture of the list (AUDIT_ARCH_*), so that one machine can prove
 * all. */
int ks_filter_compile(enum ks_filter_kind kind, uint32_t arch, unsigned flags, struct sock_filter code[KS_FILTER_MAX],
		      unsigned short *ret_count, struct ks_error *err);

/* The name in the list of a call of this architecture, or NULL. */
const char *ks_filter_call_name(int nr);

/* Both need no_new_privs (or CAP_SYS_ADMIN) and return 0, or a listener, or -errno. */
int ks_filter_load(const struct ks_filter *filter);
int ks_filter_load_listener(const struct ks_filter *filter);
