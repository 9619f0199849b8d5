/* threads.c: what C libraries and runtimes make out of clone, with clone3 missing: threads, posix_spawn, fork, vfork, and a raw thread
 * with the flags that Go's runtime passes. Prints a line for each, and exits 0 when all did what they should. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static int failed;

static void say(const char *what, int ok)
{
	(void)printf("%s %s\n", what, ok ? "ok" : "FAILED");
	failed |= !ok;
}

static void *add_one(void *sum)
{
	__atomic_add_fetch((int *)sum, 1, __ATOMIC_SEQ_CST);
	return sum;
}

static void threads(void)
{
	pthread_t thread[16];
	int sum = 0, started = 0;

	while (started < 16 && pthread_create(&thread[started], NULL, add_one, &sum) == 0)
		started++;
	for (int i = 0; i < started; i++)
		(void)pthread_join(thread[i], NULL);
	say("threads", sum == 16);
}

static int ends_with(pid_t pid, int code)
{
	int status = -1;

	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == code;
}

static void spawn(char *self)
{
	char word[] = "child", *argv[] = { self, word, NULL };
	pid_t pid = -1;

	say("posix_spawn", posix_spawn(&pid, self, NULL, NULL, argv, environ) == 0 && ends_with(pid, 42));
	char missing[] = "/nonexistent";
	say("posix_spawn of nothing", posix_spawn(&pid, missing, NULL, NULL, argv, environ) == ENOENT);
}

static void forks(char *self)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(7);
	say("fork", ends_with(pid, 7));
	pid = vfork();
	if (pid == 0) {
		(void)execl(self, self, "child", (char *)NULL);
		_exit(1);
	}
	say("vfork", ends_with(pid, 42));
}

static int go_thread(void *done)
{
	__atomic_store_n((int *)done, 1, __ATOMIC_SEQ_CST);
	(void)syscall(SYS_exit, 0); /* the thread, not the process */
	return 0;
}

/* runtime/os_linux.go: cloneFlags */
static void go_clone(void)
{
	static _Alignas(16) char stack[65536];
	int done = 0;
	int tid = clone(go_thread, stack + sizeof(stack), CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_SYSVSEM | CLONE_THREAD,
			&done);

	for (int i = 0; tid > 0 && i < 10000 && !__atomic_load_n(&done, __ATOMIC_SEQ_CST); i++)
		(void)usleep(1000);
	say("raw clone", done == 1);
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "child") == 0)
		return 42;
	say("no clone3", syscall(435, NULL, 0) == -1 && errno == ENOSYS);
	threads();
	spawn(argv[0]);
	forks(argv[0]);
	go_clone();
	return failed;
}
