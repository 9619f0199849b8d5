/* The cgroup layer on fake v1 trees: parsing, limits, facts, mounts, the pool of leaves and the sweep. */
#include "cgroup_fake.h"

/* ---- parsing ---- */

static void test_values(void **state)
{
	(void)state;
	assert_int_equal(ks_cgroup_value("0"), 0);
	assert_int_equal(ks_cgroup_value("4096\n"), 4096);
	assert_int_equal(ks_cgroup_value("max\n"), KS_NO_LIMIT);
	assert_int_equal(ks_cgroup_value("max 100000\n"), KS_NO_LIMIT);
	assert_int_equal(ks_cgroup_value("50000 100000\n"), 50000);
	assert_int_equal(ks_cgroup_value("-1\n"), KS_NO_LIMIT);
	assert_int_equal(ks_cgroup_value("9223372036854771712\n"), KS_NO_LIMIT);
	assert_int_equal(ks_cgroup_value("18446744073709551615\n"), KS_NO_LIMIT);
	assert_int_equal(ks_cgroup_value("99999999999999999999999\n"), KS_NO_LIMIT);
	assert_int_equal(ks_cgroup_value(""), -1);
	assert_int_equal(ks_cgroup_value("x"), -1);
	assert_int_equal(ks_cgroup_value("-2"), -1);
	const char *events = "oom 3\noom_kill 7\nmax 2\n";
	assert_int_equal(ks_cgroup_key(events, "oom"), 3);
	assert_int_equal(ks_cgroup_key(events, "oom_kill"), 7);
	assert_int_equal(ks_cgroup_key(events, "max"), 2);
	assert_int_equal(ks_cgroup_key(events, "kill"), -1);
	assert_int_equal(ks_cgroup_key("", "oom"), -1);
	assert_true(ks_cgroup_word("cpu memory pids\n", ' ', "memory"));
	assert_true(ks_cgroup_word("cpu memory pids\n", ' ', "pids"));
	assert_false(ks_cgroup_word("cpuset memory\n", ' ', "cpu"));
	assert_false(ks_cgroup_word("memory\npids\n", ' ', "pids"));
	assert_false(ks_cgroup_word("", ' ', "cpu"));
	assert_string_equal(ks_enforced_name(KS_ENFORCED_KERNEL), "kernel");
	assert_string_equal(ks_enforced_name(KS_ENFORCED_POLLED), "polled");
	assert_string_equal(ks_enforced_name(KS_ENFORCED_NONE), "none");
}

/* ---- v1 ---- */

static void test_v1_limits(void **state)
{
	struct ks_cgroups *cgroups;
	struct ks_error err;
	int fds[KS_LEAF_FDS];

	(void)state;
	make_v1(v1_all);
	cgroups = open_fake();
	assert_status(cgroups, "v1", KS_ENFORCED_KERNEL, KS_ENFORCED_KERNEL, KS_ENFORCED_KERNEL);
	assert_false(ks_cgroups_status(cgroups)->clone_into);
	struct ks_leaf *leaf = take(cgroups);
	assert_int_equal(ks_leaf_dir_fd(leaf), -1);
	assert_int_equal(enter(leaf, 0, fds), 2);
	assert_int_equal(ks_leaf_limit(leaf, 134217728 + 5, 64, 500, &err), -1);
	assert_int_equal(err.reason, KS_E_INTERNAL); /* a cpu limit that the box would not be under */
	assert_int_equal(enter(leaf, KS_ENTER_CPU | KS_ENTER_USAGE, fds), 5);
	limit(leaf, 134217728, 64, 500);
	assert_string_equal(got(leaf_path(leaf, "memory/job", "memory.limit_in_bytes")), "134217728");
	assert_string_equal(got(leaf_path(leaf, "memory/job", "memory.memsw.limit_in_bytes")), "134217728");
	assert_string_equal(got(leaf_path(leaf, "memory/job", "memory.kmem.tcp.limit_in_bytes")), "67108864");
	assert_string_equal(got(leaf_path(leaf, "pids/job", "pids.max")), "65");
	assert_string_equal(got(leaf_path(leaf, "cpu/job", "cpu.cfs_quota_us")), "50000");
	limit(leaf, 268435456, 1, 10);
	assert_string_equal(got(leaf_path(leaf, "memory/job", "memory.limit_in_bytes")), "268435456");
	assert_string_equal(got(leaf_path(leaf, "pids/job", "pids.max")), "2");
	assert_string_equal(got(leaf_path(leaf, "cpu/job", "cpu.cfs_quota_us")), "1000");
	const char *quota = leaf_path(leaf, "cpu/job", "cpu.cfs_quota_us");
	char kept[600];
	(void)snprintf(kept, sizeof(kept), "%s", quota);
	ks_leaf_release(cgroups, leaf);
	assert_string_equal(got(kept), "-1");
	ks_cgroups_close(cgroups);
	assert_int_equal(made, 0);
}

static void test_ranges(void **state)
{
	struct ks_error err;
	struct ks_cgroups *cgroups = open_fake();
	struct ks_leaf *leaf = take(cgroups);
	const int64_t page = sysconf(_SC_PAGESIZE), top_memory = INT64_C(1) << 53;
	const struct {
		int64_t memory, pids, cpus;
		int rc;
	} rows[] = {
		{ 0, 0, 0, 0 },		       { page - 1, 0, 0, -1 }, { page, 0, 0, 0 }, { top_memory, 0, 0, 0 },
		{ top_memory + 1, 0, 0, -1 },  { -1, 0, 0, -1 },       { 0, -1, 0, -1 },  { 0, 1, 0, 0 },
		{ 0, 4194303, 0, 0 },	       { 0, 4194304, 0, -1 },  { 0, 0, -1, -1 },  { 0, 0, 9, -1 },
		{ 0, 0, 10, 0 },	       { 0, 0, 1000000, 0 },   { 0, 0, 1000001, -1 },
	};

	(void)state;
	for (size_t i = 0; i < KS_COUNT(rows); i++) {
		err.reason = KS_E_NONE;
		assert_int_equal(ks_leaf_limit(leaf, rows[i].memory, rows[i].pids, rows[i].cpus, &err), rows[i].rc);
		assert_int_equal(err.reason, rows[i].rc ? KS_E_OUT_OF_RANGE : KS_E_NONE);
	}
	assert_string_equal(err.text, "the cpu (in thousandths) limit is 1000001: use 10 to 1000000, or 0 for none");
	ks_cgroups_close(cgroups);
}

static void test_v1_facts(void **state)
{
	struct ks_cgroups *cgroups;
	struct ks_leaf_facts facts;
	int fds[KS_LEAF_FDS];

	(void)state;
	make_v1(v1_all);
	cgroups = open_fake();
	struct ks_leaf *leaf = take(cgroups);
	assert_int_equal(enter(leaf, KS_ENTER_USAGE, fds), 4);
	put(leaf_path(leaf, "memory/job", "memory.usage_in_bytes"), "1000000\n");
	put(leaf_path(leaf, "memory/job", "memory.failcnt"), "5\n");
	put(leaf_path(leaf, "memory/job", "memory.oom_control"), "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n");
	put(leaf_path(leaf, "pids/job", "pids.events"), "max 9\n");
	put(leaf_path(leaf, "pids/job", "pids.peak"), "3\n");
	put(leaf_path(leaf, "cpuacct/job", "cpuacct.usage_user"), "2000000\n");
	put(leaf_path(leaf, "blkio/job", "blkio.throttle.io_service_bytes"),
	    "8:0 Read 100\n8:0 Write 10\n8:0 Total 110\nTotal 110\n");
	limit(leaf, 67108864, 8, 0);
	assert_string_equal(got(leaf_path(leaf, "memory/job", "memory.max_usage_in_bytes")), "0");

	ks_leaf_facts(leaf, &facts); /* nothing happened */
	assert_int_equal(facts.oom_kills, 0);
	assert_false(facts.oom_own_limit);
	assert_int_equal(facts.memory_peak_bytes, 0);
	assert_true(facts.memory_peak_exact);
	assert_int_equal(facts.pids_peak, -1); /* below an older peak */
	assert_int_equal(facts.pids_now, -1);
	assert_int_equal(facts.pids_refused, 0);
	assert_int_equal(facts.cpu_user_us, 0);
	assert_int_equal(facts.io_read_bytes, 0);

	put(leaf_path(leaf, "memory/job", "memory.usage_in_bytes"), "3000000\n");
	put(leaf_path(leaf, "memory/job", "memory.max_usage_in_bytes"), "5000000\n");
	put(leaf_path(leaf, "memory/job", "memory.oom_control"), "oom_kill_disable 0\nunder_oom 0\noom_kill 6\n");
	put(leaf_path(leaf, "pids/job", "pids.events"), "max 12\n");
	put(leaf_path(leaf, "pids/job", "pids.peak"), "9\n");
	put(leaf_path(leaf, "pids/job", "pids.current"), "2\n");
	put(leaf_path(leaf, "cpuacct/job", "cpuacct.usage_user"), "5000000\n");
	put(leaf_path(leaf, "cpuacct/job", "cpuacct.usage_sys"), "7000\n");
	put(leaf_path(leaf, "blkio/job", "blkio.throttle.io_service_bytes"),
	    "8:0 Read 400\n8:0 Write 10\n8:16 Read 1\n8:16 Write 30\nTotal 441\n");
	assert_int_equal(ks_leaf_memory_now(leaf), 2000000);
	ks_leaf_facts(leaf, &facts);
	assert_int_equal(facts.oom_kills, 2);
	assert_false(facts.oom_own_limit); /* an ancestor's */
	assert_int_equal(facts.memory_peak_bytes, 4000000);
	assert_int_equal(facts.pids_peak, 8);
	assert_int_equal(facts.pids_now, 1);
	assert_int_equal(facts.pids_refused, 3);
	assert_int_equal(facts.cpu_user_us, 3000);
	assert_int_equal(facts.cpu_system_us, 7);
	assert_int_equal(facts.io_read_bytes, 301);
	assert_int_equal(facts.io_write_bytes, 30);

	put(leaf_path(leaf, "memory/job", "memory.failcnt"), "6\n"); /* the limit was hit: left-overs were reclaimed */
	ks_leaf_facts(leaf, &facts);
	assert_true(facts.oom_own_limit);
	assert_int_equal(facts.memory_peak_bytes, 5000000);
	put(leaf_path(leaf, "memory/job", "memory.failcnt"), "5\n"); /* a kernel that does not count it: the peak tells */
	put(leaf_path(leaf, "memory/job", "memory.max_usage_in_bytes"), "66846719\n"); /* one byte below a batch */
	ks_leaf_facts(leaf, &facts);
	assert_false(facts.oom_own_limit);
	assert_int_equal(facts.memory_peak_bytes, 65846719);
	put(leaf_path(leaf, "memory/job", "memory.max_usage_in_bytes"), "66846720\n");
	ks_leaf_facts(leaf, &facts);
	assert_true(facts.oom_own_limit);
	assert_int_equal(facts.memory_peak_bytes, 66846720);
	ks_cgroups_close(cgroups);
	assert_int_equal(made, 0);
}

static void test_v1_not_entered(void **state)
{
	struct ks_cgroups *cgroups;
	struct ks_leaf_facts facts;
	int fds[KS_LEAF_FDS];

	(void)state;
	make_v1(v1_all);
	cgroups = open_fake();
	struct ks_leaf *leaf = take(cgroups);
	assert_int_equal(enter(leaf, 0, fds), 2);
	limit(leaf, 0, 0, 0);
	ks_leaf_facts(leaf, &facts);
	assert_int_equal(facts.oom_kills, 0);
	assert_int_equal(facts.cpu_user_us, -1);
	assert_int_equal(facts.io_write_bytes, -1);
	ks_cgroups_close(cgroups);
}

static void test_missing_controllers(void **state)
{
	static const char *const memory[] = { "memory", NULL }, *const usage[] = { "blkio", "cpuacct", NULL };
	struct ks_cgroups *cgroups;

	(void)state;
	make_v1(memory);
	cgroups = open_fake();
	assert_status(cgroups, "v1", KS_ENFORCED_KERNEL, KS_ENFORCED_NONE, KS_ENFORCED_NONE);
	assert_ptr_equal(strstr(ks_cgroups_status(cgroups)->reason[KS_LIMIT_PIDS], "no pids controller is mounted at "),
			 ks_cgroups_status(cgroups)->reason[KS_LIMIT_PIDS]);
	limit(take(cgroups), 1048576, 5, 500); /* what is not there is passed over */
	ks_cgroups_close(cgroups);
	assert_int_equal(made, 0);
	make_v1(usage); /* nothing that limits: not worth having */
	cgroups = open_fake();
	assert_status(cgroups, "none", KS_ENFORCED_POLLED, KS_ENFORCED_NONE, KS_ENFORCED_NONE);
	assert_int_equal(made, 0);
	ks_cgroups_close(cgroups);
}

static void test_read_only(void **state)
{
	struct ks_cgroups *cgroups;

	(void)state;
	make_v1(v1_all);
	forbidden = "pids/job";
	cgroups = open_fake();
	assert_status(cgroups, "v1", KS_ENFORCED_KERNEL, KS_ENFORCED_NONE, KS_ENFORCED_KERNEL);
	assert_non_null(strstr(ks_cgroups_status(cgroups)->reason[KS_LIMIT_PIDS],
			       "cannot make a cgroup: Read-only file system: "));
	ks_cgroups_close(cgroups);
	assert_int_equal(made, 0);
}

static void test_read_back(void **state)
{
	struct ks_cgroups *cgroups;
	struct ks_error err;
	char expected[600];

	(void)state;
	make_v1(v1_all);
	sabotage = "cpu.cfs_quota_us"; /* found out at the start */
	cgroups = open_fake();
	assert_status(cgroups, "v1", KS_ENFORCED_KERNEL, KS_ENFORCED_KERNEL, KS_ENFORCED_NONE);
	assert_non_null(
		strstr(ks_cgroups_status(cgroups)->reason[KS_LIMIT_CPU], "box0/cpu.cfs_quota_us, but it says -1"));
	sabotage = "pids.max"; /* found out later, in a new leaf */
	struct ks_leaf *good = take(cgroups), *bad = take(cgroups);
	limit(good, 1048576, 5, 0);
	assert_int_equal(ks_leaf_limit(bad, 1048576, 5, 0, &err), -1);
	assert_int_equal(err.reason, KS_E_LIMITS_UNENFORCED);
	(void)snprintf(expected, sizeof(expected), "wrote 6 to %s, but it says -1", leaf_path(bad, "pids/job", "pids.max"));
	assert_string_equal(err.text, expected);
	ks_leaf_release(cgroups, bad);
	ks_leaf_release(cgroups, good);
	ks_cgroups_close(cgroups);
	assert_int_equal(made, 0);
}

static void test_mounts(void **state)
{
	struct ks_cgroups *cgroups;
	FILE *f;
	int fds[KS_LEAF_FDS];

	(void)state;
	/* as in a container without a cgroup namespace, two controllers in one hierarchy, a space in the path */
	make_cgroup("memory");
	make_cgroup("cpu,cpuacct");
	assert_int_equal(mkdir(path_of("pids"), 0755), 0);
	make_cgroup("pids/with space");
	make_cgroup("blkio");
	put(path_of("proc"),
	    "5:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc\n3:pids:/docker/abc\n2:blkio:/../other\nnonsense\n");
	f = fopen(path_of("mountinfo"), "we");
	(void)fputs("1 1 0:1 / /elsewhere/memory rw - cgroup cgroup rw,memory\nnonsense\n", f);
	mount_line(f, "/docker/abcd", "memory", "cgroup", "memory"); /* a neighbour's, not ours */
	mount_line(f, "/docker/abc", "memory", "cgroup", "memory");
	mount_line(f, "/docker/abc", "cpu,cpuacct", "cgroup", "cpu,cpuacct");
	mount_line(f, "/docker", "pids/with\\040space", "cgroup", "pids");
	mount_line(f, "/", "blkio", "cgroup", "blkio");
	(void)fclose(f);
	assert_int_equal(mkdir(path_of("pids/with space/abc"), 0755), 0);
	cgroups = open_fake();
	assert_status(cgroups, "v1", KS_ENFORCED_KERNEL, KS_ENFORCED_KERNEL, KS_ENFORCED_KERNEL);
	assert_int_equal(cgroups->place_count, 3); /* what is outside our namespace is not reached */
	struct ks_leaf *leaf = take(cgroups);
	assert_int_equal(enter(leaf, KS_ENTER_CPU | KS_ENTER_USAGE, fds), 3);
	limit(leaf, 1048576, 5, 2000);
	assert_string_equal(got(leaf_path(leaf, "pids/with space/abc", "pids.max")), "6");
	assert_string_equal(got(leaf_path(leaf, "cpu,cpuacct", "cpu.cfs_quota_us")), "200000");
	ks_cgroups_close(cgroups);
	assert_int_equal(made, 0);
}

static void test_none(void **state)
{
	struct ks_cgroups *cgroups = open_fake();
	struct ks_leaf_facts facts;
	int fds[KS_LEAF_FDS];

	(void)state;
	assert_status(cgroups, "none", KS_ENFORCED_POLLED, KS_ENFORCED_NONE, KS_ENFORCED_NONE);
	struct ks_leaf *leaf = take(cgroups);
	assert_int_equal(enter(leaf, KS_ENTER_CPU | KS_ENTER_USAGE, fds), 0);
	assert_int_equal(ks_leaf_dir_fd(leaf), -1);
	limit(leaf, 1048576, 5, 500);
	ks_leaf_facts(leaf, &facts);
	assert_int_equal(facts.oom_kills, -1);
	assert_false(facts.oom_own_limit);
	assert_int_equal(facts.memory_peak_bytes, -1);
	assert_int_equal(facts.pids_refused, -1);
	assert_int_equal(facts.pids_peak, -1);
	assert_int_equal(facts.cpu_system_us, -1);
	assert_int_equal(facts.io_read_bytes, -1);
	assert_int_equal(ks_leaf_memory_now(leaf), -1);
	ks_leaf_kill(leaf);
	ks_leaf_release(cgroups, leaf);
	ks_leaf_release(cgroups, NULL);
	ks_cgroups_close(cgroups);
	ks_cgroups_close(NULL);
}

/* ---- pool and sweep ---- */

static void test_pool(void **state)
{
	struct ks_cgroups *cgroups;
	struct ks_leaf *leaves[4], *again;
	int fds[KS_LEAF_FDS];

	(void)state;
	make_v1((const char *const[]){ "memory", "pids", NULL });
	cgroups = open_with((struct ks_cgroups_config){ .pool_max = 2 });
	assert_int_equal(made, 2 + 2); /* sets, and the leaf of the probe */
	for (int i = 0; i < 4; i++)
		leaves[i] = take(cgroups);
	assert_int_equal(made, 2 + 8);
	limit(leaves[0], 1048576, 5, 0);
	char kept[600];
	(void)snprintf(kept, sizeof(kept), "%s", leaf_path(leaves[0], "memory/job", "memory.limit_in_bytes"));
	for (int i = 0; i < 4; i++)
		ks_leaf_release(cgroups, leaves[i]);
	assert_int_equal(made, 2 + 4);
	assert_string_equal(got(kept), "-1"); /* pooled without its limit */
	again = take(cgroups);
	assert_ptr_equal(again, leaves[1]); /* the last that was kept */
	assert_int_equal(enter(again, 0, fds), 2);
	put(leaf_path(again, "pids/job", "cgroup.procs"), "77\n"); /* something lives in it */
	ks_leaf_release(cgroups, again);
	assert_int_equal(cgroups->idle_count, 1);
	assert_ptr_equal(take(cgroups), leaves[0]);
	assert_int_equal(made, 2 + 3); /* the empty half went */
	put(leaf_path(again, "pids/job", "cgroup.procs"), "");
	ks_leaf_release(cgroups, leaves[0]); /* tried again here */
	assert_int_equal(made, 2 + 2);
	ks_cgroups_close(cgroups);
	assert_int_equal(made, 0);
}

/* What it leaves charged would be the next box's: it goes, and a new one takes its place. */
static void test_spent_leaf(void **state)
{
	struct ks_cgroups *cgroups;
	char name[16];

	(void)state;
	make_v1((const char *const[]){ "memory", "pids", NULL });
	cgroups = open_with((struct ks_cgroups_config){ .pool_max = 2 });
	struct ks_leaf *leaf = take(cgroups);
	memcpy(name, leaf->name, sizeof(name));
	ks_leaf_spend(leaf);
	ks_leaf_release(cgroups, leaf);
	assert_int_equal(made, 2 + 2);
	assert_int_equal(cgroups->idle_count, 1);
	leaf = take(cgroups);
	assert_string_not_equal(leaf->name, name);
	memcpy(name, leaf->name, sizeof(name));
	ks_leaf_release(cgroups, leaf); /* that one is as good as any */
	assert_string_equal(take(cgroups)->name, name);
	ks_cgroups_close(cgroups);
	assert_int_equal(made, 0);
}

static void test_most_leaves(void **state)
{
	struct ks_cgroups *cgroups = open_fake();
	struct ks_error err;
	struct ks_leaf *last = NULL;

	(void)state;
	for (int i = 0; i < KS_LEAVES_MAX; i++)
		last = take(cgroups);
	assert_null(ks_leaf_take(cgroups, &err));
	assert_int_equal(err.reason, KS_E_OVERLOADED);
	ks_leaf_release(cgroups, last);
	assert_non_null(take(cgroups));
	ks_cgroups_close(cgroups);
}

static void make_set_of(const char *name, bool with_process)
{
	make_cgroup(path_of("memory/job/%s", name) + strlen(top) + 1);
	make_cgroup(path_of("memory/job/%s/box0", name) + strlen(top) + 1);
	if (with_process)
		put(path_of("memory/job/%s/box0/cgroup.procs", name), "77\n");
}

static void test_sweep(void **state)
{
	const unsigned uid = (unsigned)geteuid();
	char dead[64], alive[64], lived[64], other[64], odd[64];

	(void)state;
	make_v1((const char *const[]){ "memory", NULL });
	(void)snprintf(dead, sizeof(dead), "kern-sidecar-%u-0badcafe", uid);
	(void)snprintf(alive, sizeof(alive), "kern-sidecar-%u-00000001", uid);
	(void)snprintf(lived, sizeof(lived), "kern-sidecar-%u-00000002", uid);
	(void)snprintf(other, sizeof(other), "kern-sidecar-%u-0badcafe", uid + 1);
	(void)snprintf(odd, sizeof(odd), "kern-sidecar-%u-0badcafe.d", uid);
	make_set_of(dead, false);
	make_set_of(alive, false);
	make_set_of(lived, true);
	make_set_of(other, false);
	make_set_of(odd, false);
	int lock = open(path_of("memory/job/%s", alive), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(flock(lock, LOCK_EX | LOCK_NB), 0);
	struct ks_cgroups *cgroups = open_fake();
	assert_int_equal(access(path_of("memory/job/%s", dead), F_OK), -1);
	assert_int_equal(access(path_of("memory/job/%s/box0", alive), F_OK), 0);
	assert_int_equal(access(path_of("memory/job/%s/box0", lived), F_OK), 0);
	assert_int_equal(access(path_of("memory/job/%s/box0", other), F_OK), 0);
	assert_int_equal(access(path_of("memory/job/%s/box0", odd), F_OK), 0);
	/* ours is locked, so another sidecar leaves it alone */
	struct ks_cgroups *second = open_fake();
	assert_int_equal(access(path_of("memory/job/%s", cgroups->set), F_OK), 0);
	assert_string_not_equal(cgroups->set, second->set);
	ks_cgroups_close(second);
	ks_cgroups_close(cgroups);
	close(lock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		FAKE(test_v1_limits),
		FAKE(test_ranges),
		FAKE(test_v1_facts),
		FAKE(test_v1_not_entered),
		FAKE(test_missing_controllers),
		FAKE(test_read_only),
		FAKE(test_read_back),
		FAKE(test_mounts),
		FAKE(test_none),
		FAKE(test_pool),
		FAKE(test_spent_leaf),
		FAKE(test_most_leaves),
		FAKE(test_sweep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
