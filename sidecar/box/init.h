/* init.h: what runs as pid 1 of a box: sets it up, waits for the claim, starts the command as pid 2, reaps, reports. */
#pragma once

#include <linux/capability.h>

#include "launcher.h"

#define KS_BOX_CGROUPS 8
/* What setns(2) asks for. The main process of a zygote has these, over the session's namespaces, to which no other session belongs. */
#define KS_ZYGOTE_CAPS (UINT64_C(1) << CAP_SYS_ADMIN | UINT64_C(1) << CAP_SYS_CHROOT)

struct ks_box_setup {
	const struct ks_launcher_config *config;
	const struct ks_plan_view *plan;
	int sock; /* to the sidecar */
	uint32_t flags; /* KS_BOX_* */
	int cgroup_procs[KS_BOX_CGROUPS + 1]; /* open cgroup.procs files to enter */
	int cgroup_count;
	int landlock; /* the ruleset of the box; -1: there is none */
	long filters; /* that a process is under which the template starts (Seccomp_filters, proc_pid_status(5)) */
};

_Noreturn void ks_init_main(struct ks_box_setup *setup);
/* The steps of a box and of its command in their order, a line each; the plan's own in their place. */
void ks_init_print_steps(const struct ks_plan *plan, struct ks_buf *out);
