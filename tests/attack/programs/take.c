/* take KIND [LIMIT]: takes one kind of kernel object until it is refused, prints how many and the errno, then holds them until its
 * stdin ends. Without a byte of output nothing was taken. */
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void *rest(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static int take_fd(void) { return open("/dev/null", O_RDONLY); }
static int take_epoll(void) { return epoll_create1(0); }
static int take_inotify(void) { return inotify_init1(0); }
static int take_event(void) { return eventfd(0, 0); }
static int take_socket(void) { return socket(AF_UNIX, SOCK_STREAM, 0); }
static int take_pty(void) { return open("/dev/ptmx", O_RDWR | O_NOCTTY); }
static int take_segment(void) { return shmget(IPC_PRIVATE, 4096, 0600); }

static int take_pipe(void)
{
	int fds[2];

	return pipe(fds);
}

static int take_thread(void)
{
	pthread_attr_t attr;
	pthread_t thread;

	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setstacksize(&attr, 65536);
	errno = pthread_create(&thread, &attr, rest, NULL);
	return errno ? -1 : 0;
}

static int take_process(void)
{
	pid_t pid = fork();

	if (pid == 0)
		rest(NULL);
	return pid;
}

static int take_zombie(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	return pid;
}

static int take_orphan_zombie(void) /* init has to reap these */
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		(void)fork();
		_exit(0);
	}
	return pid < 0 ? -1 : waitpid(pid, &status, 0);
}

static int take_timer(void)
{
	struct sigevent none = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	timer_t timer;

	return timer_create(CLOCK_MONOTONIC, &none, &timer);
}

static int take_queue(void)
{
	static int number;
	char name[32];

	(void)snprintf(name, sizeof(name), "/take-%d-%d", getpid(), number++);
	mqd_t queue = mq_open(name, O_CREAT | O_RDWR, 0600, NULL);
	int saved = errno;
	if (queue >= 0)
		(void)mq_unlink(name); /* it lives as long as we hold it */
	errno = saved;
	return queue;
}

static int take_locked(void)
{
	void *at = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, -1, 0);

	return at == MAP_FAILED ? -1 : 0;
}

static int take_signal(void)
{
	static int blocked;
	sigset_t set;

	if (!blocked++) {
		(void)sigemptyset(&set);
		(void)sigaddset(&set, SIGRTMIN);
		(void)sigprocmask(SIG_BLOCK, &set, NULL);
	}
	return sigqueue(getpid(), SIGRTMIN, (union sigval){ 0 });
}

static const struct {
	const char *name;
	int (*take)(void);
} kinds[] = {
	{ "fd", take_fd },	   { "epoll", take_epoll },   { "inotify", take_inotify }, { "event", take_event },
	{ "socket", take_socket }, { "pipe", take_pipe },     { "thread", take_thread },   { "process", take_process },
	{ "zombie", take_zombie }, { "timer", take_timer },   { "queue", take_queue },	   { "signal", take_signal },
	{ "pty", take_pty },	   { "locked", take_locked },	   { "segment", take_segment }, { "orphan", take_orphan_zombie },
};

int main(int argc, char **argv)
{
	long limit = argc > 2 ? atol(argv[2]) : 1000000;
	char byte;

	for (size_t i = 0; argc > 1 && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(kinds[i].name, argv[1]) != 0)
			continue;
		long n = 0;
		errno = 0;
		while (n < limit && kinds[i].take() >= 0)
			n++;
		int saved = n < limit ? errno : 0;
		char line[64];
		int length = snprintf(line, sizeof(line), "%ld %d\n", n, saved);
		(void)!write(1, line, (size_t)length);
		while (read(0, &byte, 1) > 0)
			;
		_exit(0);
	}
	return 2;
}
