/* deaf MODE: makes SIGSYS harmless to itself in one of several ways, then calls mount(2), then says that it lives. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

static sigjmp_buf back;

static void say(const char *text)
{
	(void)!write(1, text, strlen(text));
}

static void caught(int number)
{
	(void)number;
	siglongjmp(back, 1);
}

static void *attempt(void *unused)
{
	(void)unused;
	(void)mount("none", "/tmp", "tmpfs", 0, NULL);
	say("alive\n");
	return NULL;
}

/* Its signal mask lets SIGSYS through, and it does nothing else: the thread that calls is another. */
static void *listener(void *unused)
{
	(void)unused;
	for (;;)
		pause();
	return NULL;
}

static void *changer(void *unused)
{
	(void)unused;
	for (;;) {
		(void)signal(SIGSYS, SIG_IGN);
		(void)signal(SIGSYS, SIG_DFL);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	sigset_t set;
	pthread_t thread;

	sigemptyset(&set);
	sigaddset(&set, SIGSYS);
	say("before\n");
	if (strcmp(mode, "ignore") == 0) {
		(void)signal(SIGSYS, SIG_IGN);
	} else if (strcmp(mode, "block") == 0) {
		(void)sigprocmask(SIG_BLOCK, &set, NULL);
	} else if (strcmp(mode, "catch") == 0) {
		(void)signal(SIGSYS, caught);
		if (sigsetjmp(back, 1)) {
			say("alive\n");
			return 0;
		}
	} else if (strcmp(mode, "thread") == 0) {
		/* the main thread blocks it, another does not, a third calls */
		(void)pthread_create(&thread, NULL, listener, NULL);
		(void)sigprocmask(SIG_BLOCK, &set, NULL);
		(void)pthread_create(&thread, NULL, attempt, NULL);
		(void)pthread_join(thread, NULL);
		return 0;
	} else if (strcmp(mode, "toggle") == 0) {
		(void)pthread_create(&thread, NULL, changer, NULL);
	} else if (strcmp(mode, "vfork") == 0) {
		(void)signal(SIGSYS, SIG_IGN);
		if (vfork() == 0) {
			(void)mount("none", "/tmp", "tmpfs", 0, NULL);
			say("alive\n");
			_exit(0);
		}
		(void)wait(NULL);
		return 0;
	}
	for (int i = 0; i < 3; i++)
		attempt(NULL);
	(void)sleep(5);
	say("survived\n");
	return 0;
}
