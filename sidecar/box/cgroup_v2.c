/* cgroup_v2.c: the control files of the v2 controllers (kernel: admin-guide/cgroup-v2.rst). memory.oom.group stays 0:
 * only the hog dies, and the counter tells of it. */
#include "box/cgroup_impl.h"

#include <string.h>

static int limit_memory(struct ks_leaf *leaf, int64_t bytes, struct ks_error *err)
{
	char text[32] = "max";

	/* A limit with swap behind it would not be one. No such file: the kernel has no swap. */
	if (ks_leaf_file(leaf, KS_F_MEMORY_SWAP) >= 0 && ks_leaf_write(leaf, KS_F_MEMORY_SWAP, "0", 0, err) < 0)
		return -1;
	if (bytes == KS_NO_LIMIT)
		return ks_leaf_write(leaf, KS_F_MEMORY_MAX, text, bytes, err);
	(void)snprintf(text, sizeof(text), "%lld", (long long)bytes);
	return ks_leaf_write(leaf, KS_F_MEMORY_MAX, text, ks_memory_page_floor(bytes), err);
}

static int limit_cpu(struct ks_leaf *leaf, int64_t quota_us, struct ks_error *err)
{
	char text[48] = "max";

	if (quota_us != KS_NO_LIMIT)
		(void)snprintf(text, sizeof(text), "%lld %d", (long long)quota_us, KS_CPU_PERIOD_US);
	return ks_leaf_write(leaf, KS_F_CPU_MAX, text, quota_us, err);
}

/* "8:0 rbytes=1 wbytes=2 rios=…" a device. */
static void count_io(struct ks_leaf *leaf, struct ks_counters *ret)
{
	char text[KS_CGROUP_TEXT];

	if (!ks_leaf_read(leaf, KS_F_IO, text))
		return;
	ret->io_read = ret->io_write = 0;
	for (const char *at = text; (at = strstr(at, " rbytes=")); at++)
		ret->io_read += ks_cgroup_value(at + strlen(" rbytes="));
	for (const char *at = text; (at = strstr(at, " wbytes=")); at++)
		ret->io_write += ks_cgroup_value(at + strlen(" wbytes="));
}

static void count(struct ks_leaf *leaf, enum ks_function fn, struct ks_counters *ret)
{
	char text[KS_CGROUP_TEXT];

	switch (fn) {
	case KS_FN_MEMORY:
		if (ks_leaf_read(leaf, KS_F_MEMORY_OOM, text)) {
			/* oom_kill counts our dead, whoever's limit it was; oom only OOMs at our own limit */
			ret->oom_kills = ks_cgroup_key(text, "oom_kill");
			ret->oom_own = ks_cgroup_key(text, "oom");
			ret->limit_hits = ks_cgroup_key(text, "max");
		}
		ret->memory_now = ks_leaf_number(leaf, KS_F_MEMORY_NOW);
		ret->memory_peak = ks_leaf_number(leaf, KS_F_MEMORY_PEAK);
		break;
	case KS_FN_PIDS:
		if (ks_leaf_read(leaf, KS_F_PIDS_EVENTS, text))
			ret->pids_refused = ks_cgroup_key(text, "max");
		ret->pids_peak = ks_leaf_number(leaf, KS_F_PIDS_PEAK);
		ret->pids_now = ks_leaf_number(leaf, KS_F_PIDS_NOW);
		break;
	case KS_FN_ACCT:
		if (ks_leaf_read(leaf, KS_F_CPU_USER, text)) {
			ret->cpu_user_us = ks_cgroup_key(text, "user_usec");
			ret->cpu_system_us = ks_cgroup_key(text, "system_usec");
		}
		break;
	case KS_FN_IO:
		count_io(leaf, ret);
		break;
	case KS_FN_CPU:
	case KS_FN_COUNT:
		break;
	}
}

const struct ks_cgroup_ops ks_cgroup_v2 = {
	.name = "v2",
	.files = {
		[KS_F_MEMORY_MAX] = { KS_FN_MEMORY, "memory.max", NULL },
		[KS_F_MEMORY_SWAP] = { KS_FN_MEMORY, "memory.swap.max", NULL },
		[KS_F_MEMORY_NOW] = { KS_FN_MEMORY, "memory.current", NULL },
		[KS_F_MEMORY_PEAK] = { KS_FN_MEMORY, "memory.peak", NULL },
		/* a leaf has nothing below it: before 5.2, where there is no .local, both would say the same */
		[KS_F_MEMORY_OOM] = { KS_FN_MEMORY, "memory.events.local", "memory.events" },
		[KS_F_MEMORY_CLEAN] = { KS_FN_MEMORY, "memory.reclaim", NULL },
		[KS_F_PIDS_MAX] = { KS_FN_PIDS, "pids.max", NULL },
		[KS_F_PIDS_EVENTS] = { KS_FN_PIDS, "pids.events", NULL },
		[KS_F_PIDS_PEAK] = { KS_FN_PIDS, "pids.peak", NULL },
		[KS_F_PIDS_NOW] = { KS_FN_PIDS, "pids.current", NULL },
		[KS_F_CPU_MAX] = { KS_FN_CPU, "cpu.max", NULL },
		[KS_F_CPU_USER] = { KS_FN_ACCT, "cpu.stat", NULL }, /* there without the cpu controller, too */
		[KS_F_IO] = { KS_FN_IO, "io.stat", NULL },
	},
	.limit_memory = limit_memory,
	.limit_cpu = limit_cpu,
	.count = count,
};
