/* test_escape.c: the answer to one notification, by a real listener and by broken ones, and the SIGKILL that
 * follows. */
#include "box/escape.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "box/filter.h"
#include "box/msg.h"
#include "box/sys.h"

#define CLEAN ((struct ks_escape){ .doomed = -1 })

struct caller {
	pid_t pid;
	int sock, listener;
};

/* valgrind knows no seccomp and no pidfds, and answers for a kernel that has none. */
static void need_seccomp(void)
{
	if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &(uint32_t){ SECCOMP_RET_USER_NOTIF }) != 0)
		skip();
}

/* A process under the second filter that makes an escape call when it is told to, and exits with the errno that it
 * got. */
static struct caller start_caller(void)
{
	need_seccomp();
	struct ks_filter filter;
	struct ks_error err;
	struct caller caller = { .listener = -1 };
	char byte = 0;
	int pair[2], nfds = 0;

	assert_int_equal(ks_filter_escape(&filter, &err), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	caller.pid = fork();
	assert_true(caller.pid >= 0);
	if (caller.pid == 0) {
		(void)signal(SIGSYS, SIG_DFL); /* cmocka catches it */
		int listener = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -1 : ks_filter_load_listener(&filter);
		if (listener < 0 || ks_send(pair[1], &byte, 1, &listener, 1, 0) < 0)
			_exit(1);
		(void)close(listener);
		(void)ks_recv(pair[1], &byte, 1, NULL, NULL, 0);
		_exit(mount("none", "/", "none", 0, NULL) == 0 ? 0 : errno);
	}
	(void)close(pair[1]);
	caller.sock = pair[0];
	assert_int_equal(ks_recv(caller.sock, &byte, 1, &caller.listener, &nfds, 0), 1);
	assert_int_equal(nfds, 1);
	return caller;
}

static void let_it_call(const struct caller *caller)
{
	struct pollfd ready = { .fd = caller->listener, .events = POLLIN };

	assert_int_equal(ks_send(caller->sock, "", 1, NULL, 0, 0), 0);
	assert_int_equal(poll(&ready, 1, 10000), 1);
	assert_true(ready.revents & POLLIN);
}

static int end_of(struct caller *caller)
{
	int status = 0;

	assert_int_equal(waitpid(caller->pid, &status, 0), caller->pid);
	ks_close(&caller->sock);
	ks_close(&caller->listener);
	return status;
}

static void test_call_and_process_are_named_and_it_is_ended(void **state)
{
	struct caller caller = start_caller();
	struct ks_escape escape = CLEAN;
	char name[16] = "";

	(void)state;
	assert_int_equal(prctl(PR_GET_NAME, name), 0);
	let_it_call(&caller);
	assert_true(ks_escape_answer(caller.listener, &escape, 1000));
	assert_int_equal(escape.count, 1);
	assert_string_equal(escape.call, "mount");
	assert_string_equal(escape.process, name);
	assert_int_equal(escape.nr, SYS_mount);
	assert_true(escape.doomed >= 0);
	assert_int_equal(escape.doomed_until_us, 101000);
	int status = end_of(&caller);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSYS);
	ks_escape_insist(&escape, INT64_MAX);
	assert_int_equal(escape.doomed, -1);
}

static void test_it_died_before_we_looked(void **state)
{
	struct caller caller = start_caller();
	struct ks_escape escape = CLEAN;

	(void)state;
	let_it_call(&caller);
	assert_int_equal(kill(caller.pid, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)caller.pid, &(siginfo_t){ 0 }, WEXITED | WNOWAIT), 0);
	assert_true(ks_escape_answer(caller.listener, &escape, 0));
	assert_int_equal(escape.count, 0);
	assert_int_equal(escape.doomed, -1);
	assert_int_equal(WTERMSIG(end_of(&caller)), SIGKILL);
}

/* Nobody could answer the next call: the caller of ks_escape_answer kills the box. */
static void test_a_broken_listener_is_said(void **state)
{
	struct ks_escape escape = CLEAN;
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_false(ks_escape_answer(ends[0], &escape, 0));
	(void)close(ends[0]);
	(void)close(ends[1]);
	assert_false(ks_escape_answer(ends[0], &escape, 0));
	assert_int_equal(escape.count, 0);
}

/* seccomp_unotify(2): with no listener left the kernel refuses by itself. */
static void test_without_a_listener_the_call_is_refused(void **state)
{
	struct caller caller = start_caller();

	(void)state;
	ks_close(&caller.listener);
	assert_int_equal(ks_send(caller.sock, "", 1, NULL, 0, 0), 0);
	int status = end_of(&caller);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), ENOSYS);
}

static void test_insisting(void **state)
{
	struct ks_escape escape = CLEAN;
	siginfo_t info = { 0 };

	(void)state;
	need_seccomp();
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			(void)pause();
	}
	escape.doomed = ks_pidfd_open(pid);
	escape.doomed_until_us = 500;
	ks_escape_insist(&escape, 499);
	assert_true(escape.doomed >= 0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG), 0);
	assert_int_equal(info.si_pid, 0);
	ks_escape_insist(&escape, 500);
	assert_int_equal(escape.doomed, -1);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED), 0);
	assert_int_equal(info.si_status, SIGKILL);
	ks_escape_insist(&escape, INT64_MAX); /* nobody is left: nothing happens */
	assert_int_equal(escape.doomed, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_call_and_process_are_named_and_it_is_ended),
		cmocka_unit_test(test_it_died_before_we_looked),
		cmocka_unit_test(test_a_broken_listener_is_said),
		cmocka_unit_test(test_without_a_listener_the_call_is_refused),
		cmocka_unit_test(test_insisting),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
