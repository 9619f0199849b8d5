/* every_call.c: makes system calls, each in a child of its own, and prints what became of it.
 *
 * In: lines `GATE NR A B C D E F` on stdin; GATE is native, x32 (the same gate, bit 30 set) or i386 (int 0x80). Out, a line each:
 * `GATE NR OUTCOME`: ran, errno N, signal N, exit (the child ended by the call). */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

struct result {
	int returned;
	long value;
};

static int makes_a_process(long nr)
{
#ifdef SYS_fork
	return nr == SYS_fork || nr == SYS_vfork || nr == SYS_clone;
#else
	return nr == SYS_clone;
#endif
}

/* In line: after vfork the child runs on our stack, and must not return from any function on it. */
__attribute__((always_inline)) static inline long native(long nr, const long *a)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = a[3], r8 __asm__("r8") = a[4], r9 __asm__("r9") = a[5];
	long value;

	__asm__ volatile("syscall"
			 : "=a"(value)
			 : "a"(nr), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return value;
#else
	register long x8 __asm__("x8") = nr, x0 __asm__("x0") = a[0], x1 __asm__("x1") = a[1], x2 __asm__("x2") = a[2],
		      x3 __asm__("x3") = a[3], x4 __asm__("x4") = a[4], x5 __asm__("x5") = a[5];

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
	return x0;
#endif
}

static long i386(long nr)
{
#if defined(__x86_64__)
	long value = nr;

	__asm__ volatile("int $0x80" : "+a"(value) : "b"(0L), "c"(0L), "d"(0L), "S"(0L), "D"(0L) : "r8", "r9", "r10", "r11", "memory");
	return value;
#else
	(void)nr;
	abort();
#endif
}

static void child(const char *gate, long nr, const long *args, volatile struct result *result)
{
	static const long nothing[6];
	/* what sleeps for ever is woken */
	struct itimerval soon = { { 0, 0 }, { 1, 0 } };

	(void)setitimer(ITIMER_REAL, &soon, NULL);
	if (strcmp(gate, "i386") == 0) {
		result->value = i386(nr);
	} else {
		if (strcmp(gate, "x32") == 0)
			nr |= 0x40000000;
		long value = native(nr, args);
		if (value == 0 && makes_a_process(nr))
			(void)native(SYS_exit_group, nothing);
		result->value = value;
	}
	result->returned = 1;
	(void)native(SYS_exit_group, nothing);
}

int main(void)
{
	volatile struct result *result = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char gate[16];
	long nr, a[6];

	/* as in a box, so that the answers compare */
	if (result == MAP_FAILED || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return 2;
	while (scanf("%15s %ld %li %li %li %li %li %li", gate, &nr, &a[0], &a[1], &a[2], &a[3], &a[4], &a[5]) == 8) {
		int status = 0;
		memset((void *)result, 0, sizeof(*result));
		pid_t pid = fork();
		if (pid < 0)
			return 3;
		if (pid == 0)
			child(gate, nr, a, result);
		while (waitpid(pid, &status, __WALL) < 0)
			if (errno != EINTR)
				return 4;
		if (WIFSIGNALED(status))
			printf("%s %ld signal %d\n", gate, nr, WTERMSIG(status));
		else if (!result->returned)
			printf("%s %ld exit\n", gate, nr);
		else if (result->value < 0 && result->value > -4096)
			printf("%s %ld errno %ld\n", gate, nr, -result->value);
		else
			printf("%s %ld ran\n", gate, nr);
	}
	return fflush(stdout) == 0 && feof(stdin) ? 0 : 5;
}
