/* test_outcome.c: what the facts of a call mean: exit codes, and the one fault that is named when several could be. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "session/call_parts.h"

/* Wait statuses as of wait(2): the exit code in the second byte, or the signal in the first, with 0x80 for a core. */
#define EXITED(code) ((code) << 8)
#define KILLED(number) (number)

static struct ks_call call;
static struct ks_session session;
static struct ks_image image;
static struct ks_run_params params;
static char prog[] = "prog", image_ref[] = "dir:/image";
static char *argv[] = { prog, NULL };

static int set_up(void **state)
{
	(void)state;
	memset(&call, 0, sizeof(call));
	memset(&session, 0, sizeof(session));
	memset(&params, 0, sizeof(params));
	image = (struct ks_image){ .ref = image_ref, .root_fd = -1 };
	session.image = &image;
	ks_list_init(&session.interpreters);
	params.argv.items = argv;
	params.argv.count = 1;
	call.session = &session;
	call.params = &params;
	call.timeout_ms = 2500;
	call.limits.memory_bytes = (int64_t)128 << 20;
	call.outcome.end.leaf.oom_kills = -1; /* no cgroup tells */
	return 0;
}

static const struct ks_outcome *decide(enum ks_end_how how, int wait_status)
{
	call.outcome.end.how = how;
	call.outcome.end.wait_status = wait_status;
	ks_outcome_decide(&call);
	return &call.outcome;
}

static void assert_end(const struct ks_outcome *o, int exit_code, int signal_number, enum ks_fault_type fault)
{
	assert_int_equal(o->exit_code, exit_code);
	assert_int_equal(o->signal, signal_number);
	assert_int_equal(o->fault, fault);
}

/* ---- no fault ---- */

static void test_exit_codes(void **state)
{
	(void)state;
	/* also those that look like a signal, or like a sandbox that speaks */
	static const int codes[] = { 0, 1, 2, 124, 125, 126, 127, 128, 129, 137, 143, 159, 255 };

	for (size_t i = 0; i < KS_COUNT(codes); i++) {
		assert_int_equal(set_up(NULL), 0);
		call.outcome.end.wall_us = 1234;
		assert_end(decide(KS_END_EXITED, EXITED(codes[i])), codes[i], 0, KS_FAULT_NONE);
		assert_int_equal(call.outcome.duration_us, 1234);
		assert_string_equal(call.outcome.message, "");
		assert_string_equal(call.outcome.limit, "");
	}
}

static void test_signals(void **state)
{
	(void)state;
	for (int number = 1; number <= 64; number++) {
		if (number == 32 || number == 33)
			continue; /* the C library's own */
		assert_int_equal(set_up(NULL), 0);
		assert_end(decide(KS_END_EXITED, KILLED(number)), 128 + number, number, KS_FAULT_NONE);
	}
	assert_int_equal(set_up(NULL), 0);
	assert_end(decide(KS_END_EXITED, KILLED(SIGSEGV) | 0x80), 139, SIGSEGV, KS_FAULT_NONE); /* with a core */
}

/* `kill -9 $$`: under a cap, and with a cgroup that has nothing to tell. */
static void test_its_own_sigkill(void **state)
{
	(void)state;
	call.outcome.end.leaf.oom_kills = 0;
	assert_end(decide(KS_END_EXITED, KILLED(SIGKILL)), 137, SIGKILL, KS_FAULT_NONE);
}

/* SIGSYS that nobody sent for an escape call: the code's own. */
static void test_its_own_sigsys(void **state)
{
	(void)state;
	assert_end(decide(KS_END_EXITED, KILLED(SIGSYS)), 128 + SIGSYS, SIGSYS, KS_FAULT_NONE);
}

/* The deadline or a cancel came when it had ended by itself already: then that is what happened. */
static void test_too_late(void **state)
{
	(void)state;
	static const struct {
		int wait_status, exit_code, signal_number;
		bool killed_by_us;
	} cases[] = {
		{ EXITED(0), 0, 0, true },	  { EXITED(3), 3, 0, true },
		{ EXITED(137), 137, 0, true },	  { KILLED(SIGTERM), 143, SIGTERM, true },
		{ KILLED(SIGSEGV), 139, SIGSEGV, true }, { KILLED(SIGKILL), 137, SIGKILL, false },
	};

	for (size_t i = 0; i < KS_COUNT(cases); i++)
		for (int which = 0; which < 3; which++) {
			assert_int_equal(set_up(NULL), 0);
			call.timed_out = which != 0;
			call.cancelled = which != 1;
			call.outcome.end.killed_by_us = cases[i].killed_by_us;
			assert_end(decide(KS_END_EXITED, cases[i].wait_status), cases[i].exit_code,
				   cases[i].signal_number, KS_FAULT_NONE);
			assert_string_equal(call.outcome.limit, "");
		}
}

/* ---- each fault by itself ---- */

static void test_cancelled(void **state)
{
	(void)state;
	call.cancelled = true;
	call.outcome.end.killed_by_us = true;
	assert_end(decide(KS_END_EXITED, KILLED(SIGKILL)), 137, SIGKILL, KS_FAULT_CANCELLED);
	assert_string_equal(call.outcome.message, "the call was cancelled");
	assert_string_equal(call.outcome.limit, "");
}

static void test_timeout(void **state)
{
	(void)state;
	call.timed_out = true;
	call.outcome.end.killed_by_us = true;
	assert_end(decide(KS_END_EXITED, KILLED(SIGKILL)), 137, SIGKILL, KS_FAULT_TIMEOUT);
	assert_string_equal(call.outcome.message, "the call was ended at its deadline of 2500 ms");
	assert_string_equal(call.outcome.limit, "timeoutMs");
}

static void test_oom(void **state)
{
	(void)state;
	call.outcome.end.leaf.oom_kills = 2;
	call.outcome.end.leaf.oom_own_limit = true;
	assert_end(decide(KS_END_EXITED, KILLED(SIGKILL)), 137, SIGKILL, KS_FAULT_OOM);
	assert_string_equal(call.outcome.message,
			    "out of memory: the box reached its cap of 128 MiB and the kernel killed 2 of its "
			    "processes");
	assert_string_equal(call.outcome.limit, "memoryMb");
	/* only a grandchild died, and the main process went on */
	assert_int_equal(set_up(NULL), 0);
	call.outcome.end.leaf.oom_kills = 1;
	call.outcome.end.leaf.oom_own_limit = true;
	assert_end(decide(KS_END_EXITED, EXITED(0)), 0, 0, KS_FAULT_OOM);
}

/* Somebody else's limit is not named as ours. */
static void test_oom_of_an_ancestor(void **state)
{
	(void)state;
	call.outcome.end.leaf.oom_kills = 1;
	assert_end(decide(KS_END_EXITED, KILLED(SIGKILL)), 137, SIGKILL, KS_FAULT_OOM);
	assert_string_equal(call.outcome.message,
			    "out of memory: the kernel killed 1 processes of the box for a limit outside it");
	assert_string_equal(call.outcome.limit, "");
}

static void test_polled_oom(void **state)
{
	(void)state;
	call.outcome.end.polled_oom = true;
	assert_end(decide(KS_END_EXITED, KILLED(SIGKILL)), 137, SIGKILL, KS_FAULT_OOM);
	assert_string_equal(call.outcome.message, "out of memory: the box was above its cap of 128 MiB and was ended");
	assert_string_equal(call.outcome.limit, "memoryMb");
}

static void set_escape(void)
{
	call.escape.count = 3;
	memcpy(call.escape.call, "ptrace", 7);
	memcpy(call.escape.process, "gdb", 4);
}

static void test_escape(void **state)
{
	(void)state;
	set_escape();
	assert_end(decide(KS_END_EXITED, KILLED(SIGSYS)), 128 + SIGSYS, SIGSYS, KS_FAULT_ESCAPE_BLOCKED);
	assert_string_equal(call.outcome.message,
			    "the sandbox refused the system call ptrace, made by gdb, and ended that process");
	assert_string_equal(call.outcome.syscall, "ptrace");
	assert_string_equal(call.outcome.process, "gdb");
	/* a child made it; the main process hides that behind its exit code */
	assert_int_equal(set_up(NULL), 0);
	set_escape();
	assert_end(decide(KS_END_EXITED, EXITED(0)), 0, 0, KS_FAULT_ESCAPE_BLOCKED);
}

/* The longest names there are: the message is whole, nothing is cut inside. */
static void test_escape_with_long_names(void **state)
{
	(void)state;
	call.escape.count = 1;
	memset(call.escape.call, 'c', sizeof(call.escape.call) - 1);
	memset(call.escape.process, 'p', sizeof(call.escape.process) - 1);
	(void)decide(KS_END_EXITED, KILLED(SIGSYS));
	assert_string_equal(call.outcome.message, "the sandbox refused the system call "
						  "ccccccccccccccccccccccccccccccc, made by ppppppppppppppppppp, "
						  "and ended that process");
	assert_string_equal(call.outcome.syscall, call.escape.call);
	assert_string_equal(call.outcome.process, call.escape.process);
}

static void check_exec(int sys_errno, int exit_code, const char *message)
{
	call.outcome.end.exec_errno = sys_errno;
	assert_end(decide(KS_END_EXEC_FAILED, 0), exit_code, 0, KS_FAULT_EXEC_FAILED);
	assert_string_equal(call.outcome.message, message);
}

static void test_exec_failed(void **state)
{
	(void)state;
	check_exec(ENOENT, 127, "cannot execute prog in the image dir:/image: No such file or directory");
	check_exec(EACCES, 126, "cannot execute prog in the image dir:/image: Permission denied");
	check_exec(ENOEXEC, 126, "cannot execute prog in the image dir:/image: Exec format error");
	check_exec(E2BIG, 126, "cannot execute prog in the image dir:/image: Argument list too long");
	check_exec(99999, 126, "cannot execute prog in the image dir:/image: unknown error");
}

static void test_exec_failed_of_a_language(void **state)
{
	(void)state;
	static const char *const programs[] = { "python3", "python", NULL };
	struct ks_plugin plugin = { 0 };
	struct ks_language language = { .plugin = &plugin, .api = { .name = "python", .programs = programs } };
	char name[] = "python", path[] = "/opt/py";
	struct ks_interpreter interpreter = { .language = name, .path = path };

	call.language = &language;
	check_exec(ENOENT, 127, "cannot execute python3 in the image dir:/image: No such file or directory");
	ks_list_append(&session.interpreters, &interpreter.node);
	check_exec(ENOENT, 127, "cannot execute /opt/py in the image dir:/image: No such file or directory");
}

/* A program and an image with the longest names still give one sentence with its reason. */
static void test_exec_failed_long(void **state)
{
	(void)state;
	static char program[5000], ref[4200];
	char want[320];

	memset(program, 'p', sizeof(program) - 1);
	memset(ref, 'r', sizeof(ref) - 1);
	argv[0] = program;
	image.ref = ref;
	(void)snprintf(want, sizeof(want), "cannot execute %.160s in the image %.60s: No such file or directory",
		       program, ref);
	check_exec(ENOENT, 127, want);
	argv[0] = prog;
}

static void test_killed_from_outside(void **state)
{
	(void)state;
	call.started_us = ks_now_us() - 5000000;
	call.outcome.end.wall_us = 17; /* nobody measured it: init is dead */
	assert_end(decide(KS_END_LOST, 0), 137, SIGKILL, KS_FAULT_KILLED);
	assert_string_equal(call.outcome.message,
			    "the box was killed from outside: by an administrator, or by the machine's own "
			    "memory shortage");
	assert_in_range(call.outcome.duration_us, 5000000, 65000000);
}

static void test_listener_lost(void **state)
{
	(void)state;
	call.outcome.end.listener_lost = call.outcome.end.killed_by_us = true;
	assert_end(decide(KS_END_LOST, 0), 137, SIGKILL, KS_FAULT_KILLED);
	assert_string_equal(call.outcome.message,
			    "the box was ended, because the sandbox could no longer see its refused system calls");
}

/* ---- the order ---- */

enum { CANCELLED, TIMEOUT, OOM, ESCAPE, EXEC, LISTENER, LOST, FACTS };

static void set_fact(unsigned fact)
{
	switch (fact) {
	case CANCELLED:
		call.cancelled = call.outcome.end.killed_by_us = true;
		break;
	case TIMEOUT:
		call.timed_out = call.outcome.end.killed_by_us = true;
		break;
	case OOM:
		call.outcome.end.leaf.oom_kills = 1;
		break;
	case ESCAPE:
		set_escape();
		break;
	case LISTENER:
		call.outcome.end.listener_lost = call.outcome.end.killed_by_us = true;
		break;
	default: /* EXEC and LOST are how it ended */
		break;
	}
}

static const enum ks_fault_type faults[FACTS] = {
	[CANCELLED] = KS_FAULT_CANCELLED, [TIMEOUT] = KS_FAULT_TIMEOUT,	     [OOM] = KS_FAULT_OOM,
	[ESCAPE] = KS_FAULT_ESCAPE_BLOCKED, [EXEC] = KS_FAULT_EXEC_FAILED, [LISTENER] = KS_FAULT_KILLED,
	[LOST] = KS_FAULT_KILLED,
};

static void check_pair(unsigned first, unsigned second)
{
	const bool exec = second == EXEC || first == EXEC, lost = second == LOST;

	assert_int_equal(set_up(NULL), 0);
	set_fact(first);
	set_fact(second);
	call.outcome.end.exec_errno = exec ? ENOENT : 0;
	(void)decide(exec ? KS_END_EXEC_FAILED : lost ? KS_END_LOST : KS_END_EXITED,
		     exec || lost ? 0 : KILLED(SIGKILL));
	/* where the program never ran there was nothing to cancel and no deadline */
	enum ks_fault_type want = exec && first <= TIMEOUT ? KS_FAULT_EXEC_FAILED : faults[first];
	if (call.outcome.fault != want)
		print_error("facts %u and %u\n", first, second);
	assert_int_equal(call.outcome.fault, want);
}

static void test_every_pair(void **state)
{
	(void)state;
	for (unsigned first = 0; first < FACTS; first++)
		for (unsigned second = first + 1; second < FACTS; second++)
			if (!(first == EXEC && second == LOST)) /* two ways to end exclude each other */
				check_pair(first, second);
}

/* All of them at once, then one less each time. */
static void test_all_at_once(void **state)
{
	(void)state;
	for (unsigned first = 0; first < FACTS; first++) {
		if (first == EXEC)
			continue;
		assert_int_equal(set_up(NULL), 0);
		for (unsigned fact = first; fact < FACTS; fact++)
			set_fact(fact);
		assert_end(decide(KS_END_LOST, 0), 137, SIGKILL, faults[first]);
	}
}

static void test_names(void **state)
{
	(void)state;
	static const char *const names[] = { "none",	       "cancelled",   "timeout", "oom",
					     "escape_blocked", "exec_failed", "disk",	 "killed" };

	for (unsigned fault = 0; fault <= KS_FAULT_KILLED; fault++)
		assert_string_equal(ks_fault_name((enum ks_fault_type)fault), names[fault]);
}

/* ---- the rest ---- */

static void test_channel(void **state)
{
	(void)state;
	assert_string_equal(decide(KS_END_EXITED, 0)->channel, "ok");
	call.results.limit = true;
	assert_string_equal(decide(KS_END_EXITED, 0)->channel, "limit");
	call.results.limit = false;
	call.frames.limit = true;
	assert_string_equal(decide(KS_END_EXITED, 0)->channel, "limit");
	call.frames.corrupt = true;
	assert_string_equal(decide(KS_END_EXITED, 0)->channel, "corrupt");
}

static void test_start_time(void **state)
{
	(void)state;
	call.made_us = 1000;
	call.started_us = 1700;
	assert_int_equal(decide(KS_END_EXITED, 0)->start_us, 700);
	call.started_us = 0; /* it never came so far */
	assert_int_equal(decide(KS_END_EXITED, 0)->start_us, 0);
}

#define OUTCOME(test) cmocka_unit_test_setup(test, set_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		OUTCOME(test_exit_codes),     OUTCOME(test_signals),
		OUTCOME(test_its_own_sigkill), OUTCOME(test_its_own_sigsys),
		OUTCOME(test_too_late),	      OUTCOME(test_cancelled),
		OUTCOME(test_timeout),	      OUTCOME(test_oom),
		OUTCOME(test_oom_of_an_ancestor), OUTCOME(test_polled_oom),
		OUTCOME(test_escape),	      OUTCOME(test_escape_with_long_names),
		OUTCOME(test_exec_failed),    OUTCOME(test_exec_failed_of_a_language),
		OUTCOME(test_exec_failed_long), OUTCOME(test_killed_from_outside),
		OUTCOME(test_listener_lost),  OUTCOME(test_every_pair),
		OUTCOME(test_all_at_once),    OUTCOME(test_names),
		OUTCOME(test_channel),	      OUTCOME(test_start_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
