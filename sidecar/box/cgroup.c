/* cgroup.c: leaves - entering, limiting, counting. Taking and giving back is cgroup_pool.c's.
 * Knows no control file by name: those are in cgroup_v1.c and cgroup_v2.c; where leaves are is cgroup_find.c's. */
#include "box/cgroup_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>


#define PIDS_TOP 4194304 /* PID_MAX_LIMIT: pids.max takes no more */
#define MEMORY_TOP ((int64_t)1 << 53)
#define CPU_LOW_MILLI 10 /* the kernel's least quota is 1 ms, of a period of 100 ms */
#define CPU_TOP_MILLI 1000000

const char *ks_enforced_name(enum ks_enforced enforced)
{
	static const char *const names[] = { "kernel", "polled", "none" };

	return (unsigned)enforced < KS_COUNT(names) ? names[enforced] : "none";
}

int64_t ks_memory_page_floor(int64_t bytes)
{
	int64_t page = sysconf(_SC_PAGESIZE);

	return bytes - bytes % page;
}

/* "-1" and "max" are how v1 and v2 say no limit; v1 also says it as the greatest number of whole pages. */
int64_t ks_cgroup_value(const char *text)
{
	char *end;

	if (strncmp(text, "max", 3) == 0 || strncmp(text, "-1", 2) == 0)
		return KS_NO_LIMIT;
	if (*text < '0' || *text > '9')
		return -1;
	unsigned long long value = strtoull(text, &end, 10);
	return value >= (unsigned long long)ks_memory_page_floor(INT64_MAX) ? KS_NO_LIMIT : (int64_t)value;
}

int64_t ks_cgroup_key(const char *text, const char *key)
{
	size_t len = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, len) == 0 && line[len] == ' ')
			return ks_cgroup_value(line + len + 1);
	}
	return -1;
}

bool ks_cgroup_word(const char *text, char separator, const char *word)
{
	size_t len = strlen(word);
	const char separators[] = { separator, '\n', '\0' };

	for (;;) {
		size_t here = strcspn(text, separators);

		if (here == len && strncmp(text, word, len) == 0)
			return true;
		if (text[here] != separator)
			return false;
		text += here + 1;
	}
}

const struct ks_place *ks_leaf_place(const struct ks_leaf *leaf, enum ks_function fn)
{
	for (int i = 0; i < leaf->cgroups->place_count; i++)
		if (leaf->cgroups->places[i].functions & KS_FN(fn))
			return &leaf->cgroups->places[i];
	return NULL;
}

static int open_file(const struct ks_leaf *leaf, const struct ks_place *place, const char *name)
{
	char path[96];

	(void)snprintf(path, sizeof(path), "%s/%s", leaf->name, name);
	int fd = openat(place->set_fd, path, O_RDWR | O_CLOEXEC);
	if (fd < 0 && errno != ENOENT)
		fd = openat(place->set_fd, path, O_RDONLY | O_CLOEXEC); /* a counter */
	if (fd < 0 && errno != ENOENT)
		fd = openat(place->set_fd, path, O_WRONLY | O_CLOEXEC); /* memory.force_empty, memory.reclaim */
	return fd;
}

/* Opening costs more than reading, so each file stays open once it has been of use. */
int ks_leaf_file(struct ks_leaf *leaf, enum ks_leaf_file file)
{
	for (int i = 0; leaf->files[file] == KS_UNKNOWN && i < leaf->cgroups->place_count; i++) {
		const struct ks_place *place = &leaf->cgroups->places[i];
		const char *name = place->ops->files[file].name;

		if (!name || !(place->functions & KS_FN(place->ops->files[file].fn)))
			continue;
		int fd = open_file(leaf, place, name);
		if (fd < 0 && place->ops->files[file].fallback)
			fd = open_file(leaf, place, place->ops->files[file].fallback);
		if (fd < 0 && errno != ENOENT && errno != EACCES)
			return -1; /* out of descriptors, say: not for ever */
		leaf->files[file] = fd;
	}
	return leaf->files[file] >= 0 ? leaf->files[file] : -1;
}

bool ks_leaf_read(struct ks_leaf *leaf, enum ks_leaf_file file, char ret_text[KS_CGROUP_TEXT])
{
	int fd = ks_leaf_file(leaf, file);
	ssize_t n = fd >= 0 ? pread(fd, ret_text, KS_CGROUP_TEXT, 0) : -1;

	if (n < 0 || n == KS_CGROUP_TEXT)
		return false; /* half a list would be a wrong sum */
	ret_text[n] = '\0';
	return true;
}

int64_t ks_leaf_number(struct ks_leaf *leaf, enum ks_leaf_file file)
{
	char text[64];
	int fd = ks_leaf_file(leaf, file);
	ssize_t n = fd >= 0 ? pread(fd, text, sizeof(text) - 1, 0) : -1;

	if (n <= 0)
		return -1;
	text[n] = '\0';
	return ks_cgroup_value(text);
}

static void file_name(const struct ks_leaf *leaf, enum ks_leaf_file file, char *ret_text, size_t size)
{
	*ret_text = '\0';
	for (int i = 0; i < leaf->cgroups->place_count; i++) {
		const struct ks_place *place = &leaf->cgroups->places[i];

		if (place->ops->files[file].name && (place->functions & KS_FN(place->ops->files[file].fn)))
			(void)snprintf(ret_text, size, "%.180s/%s/%s/%s", place->path, leaf->cgroups->set, leaf->name,
				       place->ops->files[file].name);
	}
}

/* The kernel rounds, clamps or ignores without a word: what counts is what it says afterwards. */
int ks_leaf_write(struct ks_leaf *leaf, enum ks_leaf_file file, const char *text, int64_t expected,
		  struct ks_error *err)
{
	char line[64], path[300];
	int len = snprintf(line, sizeof(line), "%s\n", text);

	if (leaf->written[file] == expected)
		return 0;
	leaf->written[file] = KS_UNKNOWN;
	int fd = ks_leaf_file(leaf, file);
	if (fd < 0 || pwrite(fd, line, (size_t)len, 0) != len) {
		int why = errno;

		file_name(leaf, file, path, sizeof(path));
		(void)ks_fail_errno(err, KS_E_LIMITS_UNENFORCED, why, "cannot write %s to %s", text, path);
		if (why == EBUSY)
			return ks_error_hint(err, "more than the new limit is in use: raise the limit");
		return why == EINVAL ? ks_error_hint(err, "a parent cgroup may allow less: lower the limit") : -1;
	}
	int64_t back = ks_leaf_number(leaf, file);
	if (back != expected) {
		file_name(leaf, file, path, sizeof(path));
		return ks_fail(err, KS_E_LIMITS_UNENFORCED, "wrote %s to %s, but it says %lld", text, path,
			       (long long)back);
	}
	leaf->written[file] = expected;
	return 0;
}

static int in_range(int64_t value, int64_t low, int64_t top, const char *name, struct ks_error *err)
{
	if (value == 0 || (value >= low && value <= top))
		return 0;
	return ks_fail(err, KS_E_OUT_OF_RANGE, "the %s limit is %lld: use %lld to %lld, or 0 for none", name,
		       (long long)value, (long long)low, (long long)top);
}

static bool enforced(const struct ks_leaf *leaf, enum ks_limit_kind kind)
{
	return leaf->cgroups->status.enforced[kind] == KS_ENFORCED_KERNEL;
}

static int write_limits(struct ks_leaf *leaf, int64_t memory_bytes, int64_t pids, int64_t cpus_milli,
			struct ks_error *err)
{
	if (enforced(leaf, KS_LIMIT_MEMORY) &&
	    ks_leaf_place(leaf, KS_FN_MEMORY)
			    ->ops->limit_memory(leaf, memory_bytes ? memory_bytes : KS_NO_LIMIT, err) < 0)
		return -1;
	if (enforced(leaf, KS_LIMIT_PIDS)) {
		char text[32] = "max";

		if (pids)
			(void)snprintf(text, sizeof(text), "%lld", (long long)(pids + KS_LEAF_OVERHEAD));
		if (ks_leaf_write(leaf, KS_F_PIDS_MAX, text, pids ? pids + KS_LEAF_OVERHEAD : KS_NO_LIMIT, err) < 0)
			return -1;
	}
	if (!enforced(leaf, KS_LIMIT_CPU))
		return 0;
	return ks_leaf_place(leaf, KS_FN_CPU)
		->ops->limit_cpu(leaf, cpus_milli ? cpus_milli * (KS_CPU_PERIOD_US / 1000) : KS_NO_LIMIT, err);
}

int ks_leaf_unlimit(struct ks_leaf *leaf, struct ks_error *err)
{
	return write_limits(leaf, 0, 0, 0, err);
}

static void count(struct ks_leaf *leaf, struct ks_counters *ret)
{
	*ret = (struct ks_counters){ -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1 };
	for (int fn = 0; fn < KS_FN_COUNT; fn++) {
		const struct ks_place *place = ks_leaf_place(leaf, (enum ks_function)fn);

		if (place && (leaf->entered & KS_FN(fn)))
			place->ops->count(leaf, (enum ks_function)fn, ret);
	}
}

int ks_leaf_limit(struct ks_leaf *leaf, int64_t memory_bytes, int64_t pids, int64_t cpus_milli, struct ks_error *err)
{
	const struct ks_place *cpu = ks_leaf_place(leaf, KS_FN_CPU);

	if (in_range(memory_bytes, sysconf(_SC_PAGESIZE), MEMORY_TOP, "memory", err) < 0 ||
	    in_range(pids, 1, PIDS_TOP - KS_LEAF_OVERHEAD, "process", err) < 0 ||
	    in_range(cpus_milli, CPU_LOW_MILLI, CPU_TOP_MILLI, "cpu (in thousandths)", err) < 0)
		return -1;
	if (cpus_milli && cpu && !(leaf->entered & KS_FN(KS_FN_CPU)))
		return ks_fail(err, KS_E_INTERNAL, "a cpu limit for a box that was not to enter %s", cpu->path);
	if (write_limits(leaf, memory_bytes, pids, cpus_milli, err) < 0)
		return -1;
	int peak = (leaf->entered & KS_FN(KS_FN_MEMORY)) ? ks_leaf_file(leaf, KS_F_MEMORY_PEAK) : -1;
	/* v1: back to what is in use now. v2 from 6.12 the same, for this descriptor; before, it is read-only. */
	leaf->peak_reset = peak >= 0 && pwrite(peak, "0\n", 2, 0) == 2;
	leaf->seen = -1;
	count(leaf, &leaf->base);
	return 0;
}

static int64_t since(int64_t now, int64_t base)
{
	return now < 0 || base < 0 ? -1 : now > base ? now - base : 0;
}

/* A leaf keeps the page cache that its former boxes read or wrote charged, so what was there at ks_leaf_limit is
 * taken off. Once the limit has been hit that left-over was the first to be reclaimed: then all is the box's. */
static int64_t own_memory(const struct ks_leaf *leaf, int64_t bytes, int64_t limit_hits)
{
	if (limit_hits > leaf->base.limit_hits)
		return bytes;
	return since(bytes, leaf->base.memory_now);
}

static int64_t see(struct ks_leaf *leaf, int64_t bytes)
{
	if (bytes > leaf->seen)
		leaf->seen = bytes;
	return bytes;
}

int64_t ks_leaf_memory_now(struct ks_leaf *leaf)
{
	struct ks_counters now = { .memory_now = -1 };
	const struct ks_place *place = ks_leaf_place(leaf, KS_FN_MEMORY);

	if (!place)
		return -1;
	place->ops->count(leaf, KS_FN_MEMORY, &now);
	return see(leaf, own_memory(leaf, now.memory_now, now.limit_hits));
}

void ks_leaf_facts(struct ks_leaf *leaf, struct ks_leaf_facts *ret)
{
	const struct ks_counters *base = &leaf->base;
	struct ks_counters now;

	count(leaf, &now);
	int64_t used = see(leaf, own_memory(leaf, now.memory_now, now.limit_hits));
	/* A peak that only ever grows tells of this box when it grew. */
	bool exact = now.memory_peak >= 0 && (leaf->peak_reset || now.memory_peak > base->memory_peak);
	*ret = (struct ks_leaf_facts){
		.oom_kills = since(now.oom_kills, base->oom_kills),
		.memory_peak_bytes = exact ? own_memory(leaf, now.memory_peak, now.limit_hits) : leaf->seen,
		.memory_peak_exact = exact,
		.pids_peak = now.pids_peak > base->pids_peak ? now.pids_peak - KS_LEAF_OVERHEAD : -1,
		.pids_now = now.pids_now > 0 ? now.pids_now - KS_LEAF_OVERHEAD : -1,
		.pids_refused = since(now.pids_refused, base->pids_refused),
		.cpu_user_us = since(now.cpu_user_us, base->cpu_user_us),
		.cpu_system_us = since(now.cpu_system_us, base->cpu_system_us),
		.io_read_bytes = since(now.io_read, base->io_read),
		.io_write_bytes = since(now.io_write, base->io_write),
	};
	ret->oom_own_limit = ret->oom_kills > 0 && since(now.oom_own, base->oom_own) > 0;
	if (exact && used > ret->memory_peak_bytes)
		ret->memory_peak_bytes = used; /* the two were not read at one moment */
}

int64_t ks_leaf_tasks_now(struct ks_leaf *leaf)
{
	return leaf->entered & KS_FN(KS_FN_PIDS) ? ks_leaf_number(leaf, KS_F_PIDS_NOW) : -1;
}

static bool in_leaf(const struct ks_place *place, unsigned functions)
{
	/* v2 has one hierarchy for all */
	return place->ops == &ks_cgroup_v2 || (place->functions & functions);
}

int ks_leaf_enter_fds(struct ks_leaf *leaf, unsigned enter, int ret_fds[KS_LEAF_FDS], struct ks_error *err)
{
	struct ks_cgroups *cgroups = leaf->cgroups;
	unsigned functions = KS_FN(KS_FN_MEMORY) | KS_FN(KS_FN_PIDS);
	int count = 0;

	if (enter & KS_ENTER_CPU)
		functions |= KS_FN(KS_FN_CPU);
	if (enter & KS_ENTER_USAGE)
		functions |= KS_FN(KS_FN_ACCT) | KS_FN(KS_FN_IO);
	leaf->entered = 0;
	for (int i = 0; i < cgroups->place_count; i++) {
		char path[64];

		if (!in_leaf(&cgroups->places[i], functions))
			continue;
		(void)snprintf(path, sizeof(path), "%s/cgroup.procs", leaf->name);
		if (leaf->procs[i] < 0)
			leaf->procs[i] = openat(cgroups->places[i].set_fd, path, O_RDWR | O_CLOEXEC);
		if (leaf->procs[i] < 0)
			return ks_fail_errno(err, KS_E_START_FAILED, errno, "cannot open %.180s/%s/%s",
					     cgroups->places[i].path, cgroups->set, path);
		ret_fds[count++] = leaf->procs[i];
		leaf->entered |= cgroups->places[i].functions;
	}
	return count;
}

int ks_leaf_dir_fd(struct ks_leaf *leaf)
{
	struct ks_cgroups *cgroups = leaf->cgroups;

	if (!cgroups->status.clone_into)
		return -1;
	leaf->entered = cgroups->places[0].functions;
	if (leaf->dir < 0)
		leaf->dir = openat(cgroups->places[0].set_fd, leaf->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return leaf->dir;
}

void ks_leaf_kill(struct ks_leaf *leaf)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "%s/cgroup.kill", leaf->name);
	for (int i = 0; i < leaf->cgroups->place_count; i++)
		if (leaf->cgroups->places[i].ops == &ks_cgroup_v2)
			(void)ks_cgroup_write_at(leaf->cgroups->places[i].set_fd, path, "1");
}
