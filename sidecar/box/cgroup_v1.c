/* cgroup_v1.c: the control files of the v1 controllers (kernel: admin-guide/cgroup-v1/). */
#include "box/cgroup_impl.h"

#include <string.h>

/* v1 counts TCP buffers apart from memory (memory.rst, 2.7.2), without a limit. Loopback is enough to fill them, and
 * tcp_mem is one pool of the whole host: a fixed cap keeps a box from starving it. */
#define TCP_BYTES "67108864\n"
#define CHARGE_BATCH (64 * sysconf(_SC_PAGESIZE)) /* MEMCG_CHARGE_BATCH */

static void prepare(struct ks_leaf *leaf)
{
	const struct ks_place *memory = ks_leaf_place(leaf, KS_FN_MEMORY);
	char path[64];

	if (!memory || memory->ops != &ks_cgroup_v1)
		return;
	(void)snprintf(path, sizeof(path), "%s/memory.kmem.tcp.limit_in_bytes", leaf->name);
	(void)ks_cgroup_write_at(memory->set_fd, path, TCP_BYTES);
	if (ks_leaf_file(leaf, KS_F_MEMORY_SWAP) < 0) {
		/* no swap accounting: asking for no swapping is all there is */
		(void)snprintf(path, sizeof(path), "%s/memory.swappiness", leaf->name);
		(void)ks_cgroup_write_at(memory->set_fd, path, "0");
	}
}

/* memory <= memory+swap must hold at every moment, so raising begins with the sum and lowering ends with it. Kernel
 * memory is in the sum since 4.5 (nokmem aside). Lowering below what page cache is left reclaims it in the write. */
static int limit_memory(struct ks_leaf *leaf, int64_t bytes, struct ks_error *err)
{
	int64_t limit = bytes == KS_NO_LIMIT ? bytes : ks_memory_page_floor(bytes);
	bool swap = ks_leaf_file(leaf, KS_F_MEMORY_SWAP) >= 0;
	bool raise = leaf->written[KS_F_MEMORY_MAX] >= 0 && limit > leaf->written[KS_F_MEMORY_MAX];
	char text[32] = "-1";

	if (bytes != KS_NO_LIMIT)
		(void)snprintf(text, sizeof(text), "%lld", (long long)bytes);
	if (swap && raise && ks_leaf_write(leaf, KS_F_MEMORY_SWAP, text, limit, err) < 0)
		return -1;
	if (ks_leaf_write(leaf, KS_F_MEMORY_MAX, text, limit, err) < 0)
		return -1;
	return swap && !raise ? ks_leaf_write(leaf, KS_F_MEMORY_SWAP, text, limit, err) : 0;
}

/* The period stays at its default, 100 ms. */
static int limit_cpu(struct ks_leaf *leaf, int64_t quota_us, struct ks_error *err)
{
	char text[32] = "-1";

	if (quota_us != KS_NO_LIMIT)
		(void)snprintf(text, sizeof(text), "%lld", (long long)quota_us);
	return ks_leaf_write(leaf, KS_F_CPU_MAX, text, quota_us, err);
}

/* "8:0 Read 4096" lines, a few a device. */
static void count_io(struct ks_leaf *leaf, struct ks_counters *ret)
{
	char text[KS_CGROUP_TEXT], *save = NULL;

	if (!ks_leaf_read(leaf, KS_F_IO, text))
		return;
	ret->io_read = ret->io_write = 0;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		const char *word = strchr(line, ' ');

		if (word && strncmp(word, " Read ", 6) == 0)
			ret->io_read += ks_cgroup_value(word + 6);
		else if (word && strncmp(word, " Write ", 7) == 0)
			ret->io_write += ks_cgroup_value(word + 7);
	}
}

/* v1 has no event for "OOM at this limit", but such an OOM always has hit the limit and an ancestor's need not have.
 * The counters of failed charges (the sum with swap is charged first, so it is mostly that one) stay 0 on some kernels
 * (seen on 6.18): a peak within one charge batch of the limit is a hit, too. */
static int64_t limit_hits(struct ks_leaf *leaf, int64_t peak)
{
	int64_t limit = leaf->written[KS_F_MEMORY_MAX];
	int64_t hits = ks_leaf_number(leaf, KS_F_MEMORY_HITS), swap_hits = ks_leaf_number(leaf, KS_F_MEMORY_SWAP_HITS);

	hits = (hits < 0 ? 0 : hits) + (swap_hits < 0 ? 0 : swap_hits);
	return hits + (limit >= 0 && limit != KS_NO_LIMIT && peak >= limit - CHARGE_BATCH);
}

static int64_t to_us(int64_t ns)
{
	return ns < 0 ? -1 : ns / 1000;
}

static void count(struct ks_leaf *leaf, enum ks_function fn, struct ks_counters *ret)
{
	char text[KS_CGROUP_TEXT];

	switch (fn) {
	case KS_FN_MEMORY:
		if (ks_leaf_read(leaf, KS_F_MEMORY_OOM, text))
			ret->oom_kills = ks_cgroup_key(text, "oom_kill");
		ret->memory_now = ks_leaf_number(leaf, KS_F_MEMORY_NOW);
		ret->memory_peak = ks_leaf_number(leaf, KS_F_MEMORY_PEAK);
		ret->oom_own = ret->limit_hits = limit_hits(leaf, ret->memory_peak);
		break;
	case KS_FN_PIDS:
		if (ks_leaf_read(leaf, KS_F_PIDS_EVENTS, text))
			ret->pids_refused = ks_cgroup_key(text, "max");
		ret->pids_peak = ks_leaf_number(leaf, KS_F_PIDS_PEAK);
		ret->pids_now = ks_leaf_number(leaf, KS_F_PIDS_NOW);
		break;
	case KS_FN_ACCT:
		ret->cpu_user_us = to_us(ks_leaf_number(leaf, KS_F_CPU_USER));
		ret->cpu_system_us = to_us(ks_leaf_number(leaf, KS_F_CPU_SYSTEM));
		break;
	case KS_FN_IO:
		count_io(leaf, ret);
		break;
	case KS_FN_CPU:
	case KS_FN_COUNT:
		break;
	}
}

const struct ks_cgroup_ops ks_cgroup_v1 = {
	.name = "v1",
	.files = {
		[KS_F_MEMORY_MAX] = { KS_FN_MEMORY, "memory.limit_in_bytes", NULL },
		[KS_F_MEMORY_SWAP] = { KS_FN_MEMORY, "memory.memsw.limit_in_bytes", NULL },
		[KS_F_MEMORY_NOW] = { KS_FN_MEMORY, "memory.usage_in_bytes", NULL },
		[KS_F_MEMORY_PEAK] = { KS_FN_MEMORY, "memory.max_usage_in_bytes", NULL },
		[KS_F_MEMORY_OOM] = { KS_FN_MEMORY, "memory.oom_control", NULL },
		[KS_F_MEMORY_HITS] = { KS_FN_MEMORY, "memory.failcnt", NULL },
		[KS_F_MEMORY_SWAP_HITS] = { KS_FN_MEMORY, "memory.memsw.failcnt", NULL },
		[KS_F_MEMORY_CLEAN] = { KS_FN_MEMORY, "memory.force_empty", NULL },
		[KS_F_PIDS_MAX] = { KS_FN_PIDS, "pids.max", NULL },
		[KS_F_PIDS_EVENTS] = { KS_FN_PIDS, "pids.events", NULL },
		[KS_F_PIDS_PEAK] = { KS_FN_PIDS, "pids.peak", NULL },
		[KS_F_PIDS_NOW] = { KS_FN_PIDS, "pids.current", NULL },
		[KS_F_CPU_MAX] = { KS_FN_CPU, "cpu.cfs_quota_us", NULL },
		[KS_F_CPU_USER] = { KS_FN_ACCT, "cpuacct.usage_user", NULL },
		[KS_F_CPU_SYSTEM] = { KS_FN_ACCT, "cpuacct.usage_sys", NULL },
		[KS_F_IO] = { KS_FN_IO, "blkio.throttle.io_service_bytes_recursive", "blkio.throttle.io_service_bytes" },
	},
	.prepare = prepare,
	.limit_memory = limit_memory,
	.limit_cpu = limit_cpu,
	.count = count,
};
