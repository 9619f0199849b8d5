/* test_status.c: what is read out of /proc/PID/status about who made a refused call. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/base.h"
#include "box/status.h"

#define EVERY UINT64_MAX
#define DEAF UINT64_C(0x8000000000001001) /* of the masks */
#define NONE "0000000000000000"
#define MASKS "SigBlk:\t0000000000000001\nSigIgn:\t0000000000001000\nSigCgt:\t8000000000000000\n"

static void check(const char *text, const char *name, int tgid, int inner_pid, int threads, uint64_t deaf)
{
	struct ks_status status = { .name = "old" };

	assert_int_equal(ks_status_parse(text, &status), 0);
	assert_string_equal(status.name, name);
	assert_int_equal(status.tgid, tgid);
	assert_int_equal(status.inner_pid, inner_pid);
	assert_int_equal(status.threads, threads);
	assert_true(status.deaf == deaf);
}

static void check_nobody(const char *text)
{
	struct ks_status status = { .name = "old", .tgid = 5 };

	assert_int_equal(ks_status_parse(text, &status), -1);
	assert_string_equal(status.name, "old");
	assert_int_equal(status.tgid, 5);
}

static void test_whole(void **state)
{
	(void)state;
	check("Name:\tpython3\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t4242\nNgid:\t0\nPid:\t4243\nPPid:\t7\n"
	      "NSpid:\t4243\t12\t3\nThreads:\t2\nSigQ:\t0/1\nSigPnd:\tffffffffffffffff\n"
	      "ShdPnd:\tffffffffffffffff\n" MASKS "CapInh:\tffffffffffffffff\n",
	      "python3", 4242, 3, 2, DEAF);
}

/* The kernel prints "\n" for a line feed; everything else of a name is as it is. */
static void test_names(void **state)
{
	(void)state;
	check("Name:\ta\\nTgid:\\t1\nTgid:\t9\nNSpid:\t9\t2\n" MASKS, "a\\nTgid:\\t1", 9, 2, 0, DEAF);
	check("Name:\tTgid:\t1\nTgid:\t9\nNSpid:\t9\n" MASKS, "Tgid:\t1", 9, 9, 0, DEAF);
	check("Name:\t\nTgid:\t9\nNSpid:\t9\n" MASKS, "", 9, 9, 0, DEAF);
	check("Name:\t%s%n \xff\nTgid:\t9\nNSpid:\t9\n" MASKS, "%s%n \xff", 9, 9, 0, DEAF);
	/* fifteen line feeds are thirty bytes: cut */
	check("Name:\t\\n\\n\\n\\n\\n\\n\\n\\n\\n\\n\\n\\n\\n\\n\\n\nTgid:\t9\nNSpid:\t9\n" MASKS,
	      "\\n\\n\\n\\n\\n\\n\\n\\n\\n\\", 9, 9, 0, DEAF);
	check("Tgid:\t9\nNSpid:\t9\n" MASKS, "", 9, 9, 0, DEAF);
}

static void test_nobody(void **state)
{
	(void)state;
	check_nobody("");
	check_nobody("\n\n\n");
	check_nobody("Name:\tx\n");
	check_nobody("Name:\tx\nTgid:\n");
	check_nobody("Name:\tx\nTgid:\t\n");
	check_nobody("Name:\tx\nTgid:\t0\n");
	check_nobody("Name:\tx\nTgid:\t-4\n");
	check_nobody("Name:\tx\nTgid:\tx\n");
	check_nobody("Name:\tx\nTgid:\t2147483648\n");
	check_nobody("Name:\tx\nTgid:\t99999999999999999999999999\n");
	check_nobody("Name:\tx\n Tgid:\t9\n");
	check_nobody("Name:\tx\nTgid");
}

static void test_pids(void **state)
{
	(void)state;
	check("Tgid:\t2147483647\nNSpid:\t2147483647\n", "", 2147483647, 2147483647, 0, EVERY);
	check("Tgid:\t1\nNSpid:\t1\n", "", 1, 1, 0, EVERY);
	/* for the worst: what cannot be read is a namespace's init, which SIGSYS would not end */
	check("Tgid:\t9\n", "", 9, 1, 0, EVERY);
	check("Tgid:\t9\nNSpid:\n", "", 9, 1, 0, EVERY);
	check("Tgid:\t9\nNSpid:\t9\t\n", "", 9, 1, 0, EVERY);
	check("Tgid:\t9\nNSpid:\t9\t2147483648\n", "", 9, 1, 0, EVERY);
	check("Tgid:\t9\nNSpid:\t9\t0\nThreads:\t3\n", "", 9, 1, 3, EVERY);
}

static void test_cut_masks(void **state)
{
	(void)state;
	const char whole[] = "Tgid:\t9\nNSpid:\t9\t4\nSigBlk:\t" NONE "\nSigIgn:\t" NONE "\nSigCgt:\t" NONE;
	char cut[sizeof(whole)];

	check(whole, "", 9, 4, 0, 0);
	for (size_t len = strlen("Tgid:\t9\nNSpid:\t9\t4"); len < sizeof(whole) - 1; len++) {
		memcpy(cut, whole, len);
		cut[len] = '\0';
		check(cut, "", 9, 4, 0, EVERY);
	}
	check("Tgid:\t9\nNSpid:\t9\t4\nSigBlk:\t0000000000000000\nSigCgt:\t0000000000000000\n", "", 9, 4, 0, EVERY);
	check("Tgid:\t9\nNSpid:\t9\t4\nSigBlk:\t0" NONE "\nSigIgn:\t" NONE "\nSigCgt:\t" NONE "\n", "", 9, 4, 0,
	      EVERY);
}

/* This very process, with the worst name there is. */
static void test_the_kernel_s_own(void **state)
{
	(void)state;
	char text[16384], old[17] = "";
	sigset_t set;

	assert_int_equal(prctl(PR_GET_NAME, old), 0);
	assert_int_equal(prctl(PR_SET_NAME, "\nTgid:\t1\n\\%s"), 0);
	assert_int_equal(sigemptyset(&set) | sigaddset(&set, SIGSYS) | sigaddset(&set, SIGHUP), 0);
	assert_int_equal(sigprocmask(SIG_BLOCK, &set, NULL), 0);
	assert_true(signal(SIGUSR1, SIG_IGN) != SIG_ERR);
	KS_AUTOCLOSE int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, text, sizeof(text) - 1);
	assert_true(n > 0 && n < (ssize_t)sizeof(text) - 1);
	text[n] = '\0';
	assert_int_equal(sigprocmask(SIG_UNBLOCK, &set, NULL), 0);
	assert_int_equal(prctl(PR_SET_NAME, old), 0);
	struct ks_status status;
	assert_int_equal(ks_status_parse(text, &status), 0);
	assert_string_equal(status.name, "\\nTgid:\t1\\n\\\\%s");
	assert_int_equal(status.tgid, getpid());
	assert_true(status.inner_pid > 0);
	assert_int_equal(status.threads, 1);
	const uint64_t want = UINT64_C(1) << (SIGSYS - 1) | UINT64_C(1) << (SIGHUP - 1) | UINT64_C(1) << (SIGUSR1 - 1);
	assert_true((status.deaf & want) == want);
	assert_true((status.deaf & UINT64_C(1) << (SIGKILL - 1)) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),  cmocka_unit_test(test_names),
		cmocka_unit_test(test_nobody), cmocka_unit_test(test_pids),
		cmocka_unit_test(test_cut_masks), cmocka_unit_test(test_the_kernel_s_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
