/* escape.c WAY: makes an escape call (mount, of nothing) in the way that is named. Whoever gets past it says "alive". */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void say(const char *text)
{
	if (write(1, text, strlen(text)) < 0)
		_exit(9);
}

static void escape(void)
{
	(void)mount("none", "/tmp", "tmpfs", 0, NULL);
	say("alive\n");
}

static void *escape_thread(void *unused)
{
	escape();
	return unused;
}

static void sleep_for_ever(void)
{
	for (;;)
		(void)pause();
}

static void *sleep_thread(void *unused)
{
	sleep_for_ever();
	return unused;
}

static void caught(int number)
{
	(void)number;
	say("alive: caught\n");
}

static void mask(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGSYS);
	(void)pthread_sigmask(how, &set, NULL);
}

static void start(void *(*body)(void *))
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, body, NULL) != 0)
		_exit(9);
}

/* ---- ways with one thread ---- */

static void way_plain(void)
{
	escape();
}

static void way_ignored(void)
{
	(void)signal(SIGSYS, SIG_IGN);
	escape();
}

static void way_caught(void)
{
	(void)signal(SIGSYS, caught);
	escape();
}

static void way_blocked(void)
{
	mask(SIG_BLOCK);
	escape();
}

static void way_renamed(void)
{
	(void)prctl(PR_SET_NAME, "a\nb\tTgid:\t1");
	escape();
}

static void way_nameless(void)
{
	(void)prctl(PR_SET_NAME, "");
	escape();
}

/* ---- with several ---- */

static void way_thread(void)
{
	start(escape_thread);
	sleep_for_ever();
}

static void way_threads_at_once(void)
{
	for (int i = 0; i < 20; i++)
		start(escape_thread);
	sleep_for_ever();
}

static void way_others_block(void)
{
	mask(SIG_BLOCK);
	for (int i = 0; i < 4; i++)
		start(sleep_thread);
	mask(SIG_UNBLOCK);
	escape();
}

static void way_leader_blocks(void)
{
	start(escape_thread);
	mask(SIG_BLOCK);
	sleep_for_ever();
}

static void way_leader_gone(void)
{
	start(escape_thread);
	pthread_exit(NULL);
}

static void *ignore_thread(void *unused)
{
	for (;;) {
		(void)signal(SIGSYS, SIG_IGN);
		(void)signal(SIGSYS, SIG_DFL);
	}
	return unused;
}

static void way_ignored_meanwhile(void)
{
	start(ignore_thread);
	escape();
}

static void *late_escape_thread(void *unused)
{
	(void)usleep(100000); /* the leader waits for its vfork by now, and only SIGKILL wakes it */
	escape();
	return unused;
}

static void way_leader_in_vfork(void)
{
	start(late_escape_thread);
	if (vfork() == 0) {
		(void)sleep(60);
		_exit(0);
	}
	say("alive: after the vfork\n");
}

/* ---- with other processes ---- */

static void await(int *by_sys, int *by_kill)
{
	int status;

	while (wait(&status) > 0) {
		*by_sys += WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS;
		*by_kill += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
	}
}

static void way_children(void)
{
	int by_sys = 0, by_kill = 0;
	char line[80];

	for (int i = 0; i < 5; i++) {
		if (fork() == 0)
			escape();
		await(&by_sys, &by_kill);
	}
	(void)snprintf(line, sizeof(line), "%d children ended, the parent did not\n", by_sys + by_kill);
	say(line);
}

static void way_children_at_once(void)
{
	int by_sys = 0, by_kill = 0;
	char line[80];

	for (int i = 0; i < 20; i++)
		if (fork() == 0)
			escape();
	await(&by_sys, &by_kill);
	(void)snprintf(line, sizeof(line), "%d children ended, the parent did not\n", by_sys + by_kill);
	say(line);
}

/* A child that is stopped and let go all the time. */
static void way_stopped(void)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		escape();
	for (int i = 0; i < 200000 && waitpid(pid, &status, WNOHANG) == 0; i++) {
		(void)kill(pid, SIGSTOP);
		(void)kill(pid, SIGCONT);
	}
	(void)kill(pid, SIGCONT);
	say(WIFSIGNALED(status) ? "the child ended, the parent did not\n" : "the child lives\n");
}

static void way_orphan(void)
{
	pid_t pid = fork();

	if (pid > 0)
		(void)usleep(300000);
	if (pid == 0 && fork() == 0) {
		(void)setsid();
		escape();
	}
}

/* The one that made the call is gone (its process executes something else) at any moment of the look at it, and numbers are
 * taken again at once. Whoever is not it must live on. */
static void way_race(void)
{
	pid_t bystander = fork();
	int status;

	if (bystander == 0)
		sleep_for_ever();
	for (int i = 0; i < 300; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			start(escape_thread);
			for (int k = 0; k < i * 10; k++)
				(void)sched_yield();
			(void)execl("/bin/true", "true", (char *)NULL);
			_exit(0);
		}
		(void)waitpid(pid, &status, 0);
		pid = fork(); /* takes the next number */
		if (pid == 0)
			_exit(5);
		if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 5)
			say("a bystander was killed\n");
	}
	say(kill(bystander, 0) == 0 && waitpid(bystander, &status, WNOHANG) == 0 ? "the bystander lives\n" : "the bystander is dead\n");
	(void)kill(bystander, SIGKILL);
}

/* ---- with a filter of the code's own ---- */

static long add_filter(unsigned flags, unsigned action)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mount, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { 4, code };

	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

static void way_own_filter_allows(void)
{
	if (add_filter(0, SECCOMP_RET_ALLOW) != 0)
		say("no filter\n");
	escape();
}

static void way_own_filter_refuses(void)
{
	if (add_filter(0, SECCOMP_RET_ERRNO | 77) != 0)
		say("no filter\n");
	say(mount("none", "/tmp", "tmpfs", 0, NULL) < 0 && errno == 77 ? "refused by its own filter\n" : "alive\n");
}

static void way_own_listener(void)
{
	say(add_filter(SECCOMP_FILTER_FLAG_NEW_LISTENER, SECCOMP_RET_USER_NOTIF) == -1 && errno == EBUSY ? "no second listener\n" :
													   "a second listener\n");
	escape();
}

static const struct {
	const char *name;
	void (*run)(void);
} ways[] = {
	{ "plain", way_plain },
	{ "ignored", way_ignored },
	{ "caught", way_caught },
	{ "blocked", way_blocked },
	{ "renamed", way_renamed },
	{ "nameless", way_nameless },
	{ "thread", way_thread },
	{ "threads_at_once", way_threads_at_once },
	{ "others_block", way_others_block },
	{ "leader_blocks", way_leader_blocks },
	{ "leader_gone", way_leader_gone },
	{ "ignored_meanwhile", way_ignored_meanwhile },
	{ "leader_in_vfork", way_leader_in_vfork },
	{ "children", way_children },
	{ "children_at_once", way_children_at_once },
	{ "stopped", way_stopped },
	{ "orphan", way_orphan },
	{ "race", way_race },
	{ "own_filter_allows", way_own_filter_allows },
	{ "own_filter_refuses", way_own_filter_refuses },
	{ "own_listener", way_own_listener },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(ways) / sizeof(ways[0]); i++)
		if (strcmp(argv[1], ways[i].name) == 0) {
			ways[i].run();
			return 0;
		}
	return 8;
}
