/* The cgroup layer on this machine's own v1, as root; skips and says so where there is none. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/clock.h"
#include "box/cgroup.h"
#include "box/cgroup_impl.h"

static struct ks_leaf *take(struct ks_cgroups *cgroups)
{
	struct ks_error err = { 0 };
	struct ks_leaf *leaf = ks_leaf_take(cgroups, &err);

	if (!leaf)
		fail_msg("%s", err.text);
	return leaf;
}

static void limit(struct ks_leaf *leaf, int64_t memory, int64_t pids, int64_t cpus)
{
	struct ks_error err = { 0 };

	if (ks_leaf_limit(leaf, memory, pids, cpus, &err) < 0)
		fail_msg("%s", err.text);
}

static int enter(struct ks_leaf *leaf, unsigned what, int fds[KS_LEAF_FDS])
{
	struct ks_error err = { 0 };
	int count = ks_leaf_enter_fds(leaf, what, fds, &err);

	if (count < 0)
		fail_msg("%s", err.text);
	return count;
}

static char set[64]; /* the name of the directories of the test that runs */
static int found;

static int count_set(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	found += strcmp(path + ftw->base, set) == 0;
	return 0;
}

/* Directories of that name, in any hierarchy. Other sidecars of this machine are none of our business. */
static int sets(void)
{
	int rc;

	do {
		found = 0;
		rc = nftw("/sys/fs/cgroup", count_set, 16, FTW_PHYS);
	} while (rc < 0 && errno == ENOENT); /* one of theirs went while it was looked at */
	assert_int_equal(rc, 0);
	return found;
}

static struct ks_cgroups *open_live(struct ks_cgroups_config config)
{
	struct ks_cgroups *cgroups;
	struct ks_error err;

	config.systemd_library = "";
	if (geteuid() != 0) {
		print_message("SKIPPED: not root, no cgroup v1 of our own\n");
		skip();
	}
	assert_int_equal(ks_cgroups_open(&config, &cgroups, &err), 0);
	const struct ks_cgroup_status *status = ks_cgroups_status(cgroups);
	bool all = true;
	for (int i = 0; i < KS_LIMIT_KINDS; i++)
		all &= status->enforced[i] == KS_ENFORCED_KERNEL;
	if (!all || status->clone_into) {
		print_message("SKIPPED: back end %s, memory \"%s\", pids \"%s\", cpu \"%s\"\n", status->backend,
			      status->reason[0], status->reason[1], status->reason[2]);
		ks_cgroups_close(cgroups);
		skip();
	}
	(void)snprintf(set, sizeof(set), "%s", cgroups->set);
	assert_int_equal(sets(), cgroups->place_count);
	return cgroups;
}

/* Runs `work` in a child that moved itself into the leaf as a box's init does; its wait status. */
static int run_in(struct ks_leaf *leaf, int (*work)(void))
{
	int fds[KS_LEAF_FDS], status = -1, count = enter(leaf, KS_ENTER_CPU | KS_ENTER_USAGE, fds);

	pid_t pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (int i = 0; i < count; i++)
			if (write(fds[i], "0", 1) != 1)
				_exit(99);
		_exit(work());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static int touch(size_t bytes)
{
	char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return 1;
	for (size_t i = 0; i < bytes; i += 4096)
		*(volatile char *)(memory + i) = 1;
	return 0;
}

static int hog(void)
{
	return touch(256u << 20);
}

static int eat_40(void)
{
	return touch(40u << 20);
}

/* Forks until it cannot; exits with the number of children. */
static int fork_away(void)
{
	pid_t children[50];
	int count = 0;

	for (; count < (int)KS_COUNT(children); count++) {
		children[count] = fork();
		if (children[count] < 0)
			break;
		if (children[count] == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			(void)pause();
			_exit(0);
		}
	}
	int why = errno;
	for (int i = 0; i < count; i++)
		(void)kill(children[i], SIGKILL);
	while (wait(NULL) > 0)
		;
	return why == EAGAIN ? count : 99;
}

static int spin_400ms(void)
{
	int64_t end = ks_now_us() + 400000;

	while (ks_now_us() < end)
		;
	return 0;
}

static void test_live_memory(void **state)
{
	struct ks_cgroups *cgroups = open_live((struct ks_cgroups_config){ 0 });
	struct ks_leaf *leaf = take(cgroups);
	struct ks_leaf_facts facts;
	int fds[KS_LEAF_FDS], status;

	(void)state;
	(void)enter(leaf, KS_ENTER_CPU | KS_ENTER_USAGE, fds);
	limit(leaf, 64 << 20, 16, 0);
	status = run_in(leaf, hog);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	ks_leaf_facts(leaf, &facts);
	assert_int_equal(facts.oom_kills, 1);
	assert_true(facts.oom_own_limit);
	assert_true(facts.memory_peak_exact);
	assert_in_range(facts.memory_peak_bytes, 63 << 20, 64 << 20);
	assert_true(facts.cpu_system_us > 0);
	ks_leaf_release(cgroups, leaf);

	/* the same leaf again: nothing of the former box shows, and raising and lowering works in both orders */
	assert_ptr_equal(take(cgroups), leaf);
	(void)enter(leaf, KS_ENTER_CPU | KS_ENTER_USAGE, fds);
	limit(leaf, 128 << 20, 16, 0);
	limit(leaf, 512 << 20, 16, 0);
	limit(leaf, 64 << 20, 16, 0);
	status = run_in(leaf, eat_40);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	ks_leaf_facts(leaf, &facts);
	assert_int_equal(facts.oom_kills, 0);
	assert_false(facts.oom_own_limit);
	assert_in_range(facts.memory_peak_bytes, 39 << 20, 48 << 20);
	assert_in_range(ks_leaf_memory_now(leaf), 0, 8 << 20);
	ks_leaf_release(cgroups, leaf);
	ks_cgroups_close(cgroups);
	assert_int_equal(sets(), 0);
}

static void test_live_pids(void **state)
{
	struct ks_cgroups *cgroups = open_live((struct ks_cgroups_config){ 0 });
	struct ks_leaf *leaf = take(cgroups);
	struct ks_leaf_facts facts;
	int fds[KS_LEAF_FDS], status;

	(void)state;
	(void)enter(leaf, KS_ENTER_CPU | KS_ENTER_USAGE, fds);
	limit(leaf, 64 << 20, 5, 0);
	status = run_in(leaf, fork_away);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 5); /* the one that forks stands for the box's init */
	ks_leaf_facts(leaf, &facts);
	assert_int_equal(facts.pids_refused, 1);
	assert_int_equal(facts.oom_kills, 0);
	if (facts.pids_peak != -1) /* 6.10 and later */
		assert_int_equal(facts.pids_peak, 5);
	ks_leaf_release(cgroups, leaf);
	assert_ptr_equal(take(cgroups), leaf);
	limit(leaf, 64 << 20, 5, 0);
	ks_leaf_facts(leaf, &facts);
	assert_int_equal(facts.pids_refused, 0);
	ks_cgroups_close(cgroups);
	assert_int_equal(sets(), 0);
}

static void test_live_cpu(void **state)
{
	struct ks_cgroups *cgroups = open_live((struct ks_cgroups_config){ 0 });
	struct ks_leaf *leaf = take(cgroups);
	struct ks_leaf_facts facts;
	int fds[KS_LEAF_FDS];

	(void)state;
	(void)enter(leaf, KS_ENTER_CPU | KS_ENTER_USAGE, fds);
	limit(leaf, 64 << 20, 5, 100);
	assert_int_equal(run_in(leaf, spin_400ms), 0);
	ks_leaf_facts(leaf, &facts);
	/* 10 ms of each 100 ms: at most 6 periods are touched, and a slice may overrun by a tick */
	assert_in_range(facts.cpu_user_us + facts.cpu_system_us, 10000, 100000);
	ks_leaf_release(cgroups, leaf);
	ks_cgroups_close(cgroups);
	assert_int_equal(sets(), 0);
}

static int cache_fd = -1;

static int fill_cache(void)
{
	static char block[65536];

	for (int i = 0; i < 16 * 16; i++)
		if (write(cache_fd, block, sizeof(block)) != sizeof(block))
			return 1;
	return fsync(cache_fd) < 0;
}

/* 16 MiB of page cache outlives its writer: not charged to the next box's account, and emptied off the clock. */
static void test_live_left_over(void **state)
{
	struct ks_cgroups *cgroups = open_live((struct ks_cgroups_config){ .clean_bytes = 8 << 20 });
	struct ks_leaf *leaf = take(cgroups);
	char name[] = "/tmp/ks-test-cache-XXXXXX";
	int fds[KS_LEAF_FDS];

	(void)state;
	cache_fd = mkostemp(name, O_CLOEXEC);
	assert_true(cache_fd >= 0);
	(void)enter(leaf, KS_ENTER_CPU | KS_ENTER_USAGE, fds);
	limit(leaf, 64 << 20, 5, 0);
	assert_int_equal(run_in(leaf, fill_cache), 0);
	if (ks_leaf_number(leaf, KS_F_MEMORY_NOW) < 16 << 20) {
		print_message("SKIPPED: /tmp leaves no page cache\n");
	} else {
		int64_t before = ks_now_us();
		ks_leaf_release(cgroups, leaf);
		if (cgroups->cleaner < 0) {
			print_message("SKIPPED: no clone3 here\n");
		} else {
			print_message("release with a cleaner: %lld us\n", (long long)(ks_now_us() - before));
			assert_ptr_not_equal(take(cgroups), leaf);
			struct pollfd ended = { .fd = cgroups->cleaner, .events = POLLIN };
			assert_int_equal(poll(&ended, 1, 10000), 1);
			assert_in_range(ks_leaf_number(leaf, KS_F_MEMORY_NOW), 0, 4 << 20);
			assert_ptr_equal(take(cgroups), leaf);
			assert_int_equal(cgroups->cleaner, -1);
		}
	}
	close(cache_fd);
	assert_int_equal(unlink(name), 0);
	ks_cgroups_close(cgroups);
	assert_int_equal(sets(), 0);
}

/* A sidecar that was killed: its leaves are still there, and the next one sweeps them. */
static void test_live_sweep(void **state)
{
	struct ks_cgroups *cgroups = open_live((struct ks_cgroups_config){ 0 }), *next;
	int places = cgroups->place_count, ready[2], status;
	char name[sizeof(set)] = "";

	(void)state;
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		next = open_live((struct ks_cgroups_config){ 0 });
		for (int i = 0; i < 3; i++)
			(void)take(next);
		_exit(write(ready[1], next->set, strlen(next->set)) < 0 || pause());
	}
	assert_true(read(ready[0], name, sizeof(name) - 1) > 0);
	close(ready[0]);
	close(ready[1]);
	next = open_live((struct ks_cgroups_config){ 0 });
	ks_cgroups_close(next);
	assert_int_equal(sets(), 0);
	(void)snprintf(set, sizeof(set), "%s", name);
	assert_int_equal(sets(), places); /* its owner lives: left alone */
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid); /* from now on any sidecar of this machine may be the next one */
	next = open_live((struct ks_cgroups_config){ 0 });
	(void)snprintf(set, sizeof(set), "%s", name);
	assert_int_equal(sets(), 0);
	(void)snprintf(set, sizeof(set), "%s", cgroups->set);
	assert_int_equal(sets(), places);
	ks_cgroups_close(next);
	ks_cgroups_close(cgroups);
}

/* An ordinary user may write no hierarchy here, and is told so. */
static void test_live_ordinary_user(void **state)
{
	int status;

	(void)state;
	if (geteuid() != 0) {
		print_message("SKIPPED: not root, cannot become another user\n");
		skip();
	}
	pid_t pid = fork();
	if (pid == 0) {
		struct ks_cgroups_config config = { .systemd_library = "" };
		struct ks_cgroups *cgroups;
		struct ks_error err;

		if (setresuid(65534, 65534, 65534) < 0 || ks_cgroups_open(&config, &cgroups, &err) < 0)
			_exit(1);
		const struct ks_cgroup_status *s = ks_cgroups_status(cgroups);
		bool good = s->enforced[0] == KS_ENFORCED_POLLED && s->enforced[1] == KS_ENFORCED_NONE && s->reason[0][0] &&
			    s->reason[1][0] && s->reason[2][0] && strcmp(s->backend, "none") == 0;
		print_message("as uid 65534: %s\n", s->reason[0]);
		ks_cgroups_close(cgroups);
		_exit(good ? 0 : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_live_memory),
		cmocka_unit_test(test_live_pids),
		cmocka_unit_test(test_live_cpu),
		cmocka_unit_test(test_live_left_over),
		cmocka_unit_test(test_live_sweep),
		cmocka_unit_test(test_live_ordinary_user),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
