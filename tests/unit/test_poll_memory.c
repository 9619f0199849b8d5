/* test_poll_memory.c: what a box holds, read from /proc, in a pid and mount namespace of the test's own. */
#include "scratch.h"

#include <signal.h>
#include <sys/mman.h>

#include "box/plan.h"
#include "box/poll_memory.h"

#define MIB ((uint64_t)1 << 20)
#define NOT_HERE 77 /* this machine gives no namespaces */

static void write_mib(const char *path, size_t mib)
{
	static char block[1 << 20];
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	CHECK(fd >= 0);
	memset(block, 'x', sizeof(block));
	for (size_t i = 0; i < mib; i++)
		CHECK(write(fd, block, sizeof(block)) == (ssize_t)sizeof(block));
	(void)close(fd);
}

/* A child that maps `bytes` (or shares `shared`) and waits. It touches nothing else, so that differences are exact. */
static pid_t start_holder(size_t bytes, char *shared)
{
	int ready[2];
	char byte;

	CHECK(pipe(ready) == 0);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE;
		if (bytes)
			CHECK(mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0) != MAP_FAILED);
		for (size_t at = 0; shared && at < 32 * MIB; at += 4096)
			shared[at] = 'y';
		CHECK(write(ready[1], "r", 1) == 1);
		for (;;)
			(void)pause();
	}
	CHECK(read(ready[0], &byte, 1) == 1);
	(void)close(ready[0]);
	(void)close(ready[1]);
	return pid;
}

static void end(pid_t pid)
{
	CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
}

static void CHECK_about(uint64_t got, uint64_t want)
{
	/* page tables are not in it; what a fork copies of ours is, and a sanitizer keeps books */
	const uint64_t slack = 15 * MIB;

	if (got < want || got > want + slack)
		(void)fprintf(stderr, "%llu bytes instead of %llu\n", (unsigned long long)got,
			      (unsigned long long)want);
	CHECK(got >= want && got <= want + slack);
}

static void file_systems(void)
{
	/* pid 1, which is us, does not count: it is a box's init */
	CHECK(ks_box_memory(0) == 0);
	CHECK(ks_box_memory(UINT64_MAX) == 0);
	write_mib("/tmp/a", 5);
	CHECK(ks_box_memory(0) == 5 * MIB);
	write_mib("/dev/shm/a", 3);
	write_mib("/home/a", 2);
	write_mib(KS_CODE_DIR "/a", 1);
	CHECK(ks_box_memory(0) == 11 * MIB);
	CHECK(unlink("/tmp/a") == 0);
	CHECK(ks_box_memory(11 * MIB) == 6 * MIB);
}

static void processes(void)
{
	const uint64_t files = ks_box_memory(0);
	pid_t idle = start_holder(0, NULL);
	const uint64_t base = ks_box_memory(0);

	CHECK(base > files);
	pid_t holder = start_holder(64 * MIB, NULL);
	CHECK_about(ks_box_memory(0) - base, 64 * MIB);
	CHECK(ks_box_memory(UINT64_MAX) >= ks_box_memory(0));
	end(holder);
	CHECK(ks_box_memory(0) < base + 15 * MIB);
	end(idle);
	CHECK(ks_box_memory(0) == files);
}

/* 32 MiB that two processes share: the cheap bound counts them twice, the exact sum once; it is asked for only when
 * the bound is above. */
static void shared_pages(void)
{
	char *shared = mmap(NULL, 32 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(shared != MAP_FAILED);
	pid_t one = start_holder(0, NULL), two = start_holder(0, NULL);
	const uint64_t idle_bound = ks_box_memory(UINT64_MAX), idle = ks_box_memory(0);
	end(one);
	end(two);
	one = start_holder(0, shared);
	two = start_holder(0, shared);
	const uint64_t bound = ks_box_memory(UINT64_MAX), exact = ks_box_memory(0);
	CHECK_about(exact - idle, 32 * MIB);
	CHECK(bound - idle_bound >= 60 * MIB);
	/* the cheap one where it is enough; the two differ by 32 MiB and more */
	CHECK(ks_box_memory(2 * bound) > exact + 24 * MIB);
	CHECK(ks_box_memory(bound / 2) < bound - 24 * MIB);
	end(one);
	end(two);
	(void)munmap(shared, 32 * MIB);
}

/* As pid 1, with what a box has of its own. */
static void inside(void)
{
	CHECK(mount("proc", "/proc", "proc", 0, NULL) == 0);
	CHECK(mount("tmpfs", "/run", "tmpfs", 0, NULL) == 0 && mkdir(KS_CODE_DIR, 0755) == 0);
	CHECK(mount("tmpfs", "/tmp", "tmpfs", 0, NULL) == 0 && mount("tmpfs", "/dev/shm", "tmpfs", 0, NULL) == 0);
	CHECK(mount("tmpfs", "/home", "tmpfs", 0, NULL) == 0 && mount("tmpfs", KS_CODE_DIR, "tmpfs", 0, NULL) == 0);
	file_systems();
	processes();
	shared_pages();
}

static void in_namespaces(struct scratch *unused)
{
	int status = 0;

	(void)unused;
	if (!own_mounts() || unshare(CLONE_NEWPID) < 0)
		_exit(NOT_HERE);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		inside();
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

static void test_box_memory(void **state)
{
	(void)state;
	int rc = in_child(in_namespaces, NULL);

	if (rc == NOT_HERE)
		skip();
	assert_int_equal(rc, 0);
}

static void test_pause(void **state)
{
	(void)state;
	const uint64_t max = 512 * MIB;
	const struct {
		uint64_t bytes;
		unsigned cpus, ms;
	} cases[] = {
		{ 0, 1, 100 },		   { 0, 2, 64 },	      { 0, 4, 32 },	      { 0, 64, 10 },
		{ max - 400 * MIB, 1, 100 }, { max - 396 * MIB, 1, 99 }, { max - 44 * MIB, 1, 11 }, { max - 40 * MIB, 1, 10 },
		{ max - 4 * MIB, 1, 10 },  { max, 1, 10 },	      { max + MIB, 1, 10 },   { UINT64_MAX, 1, 10 },
		{ 0, 0, 100 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(ks_box_memory_pause_ms(cases[i].bytes, max, cases[i].cpus), cases[i].ms);
	assert_int_equal(ks_box_memory_pause_ms(0, UINT64_MAX, 1), 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_box_memory),
		cmocka_unit_test(test_pause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
