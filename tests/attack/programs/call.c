/* call: raw system calls, by number. call [--int80|--x32] NR [ARG...] [-- NR [ARG...]]...
 * An ARG is a number, s:TEXT (a pointer to it), b:BYTES (a pointer to that many zeroed bytes) or r (what the call before returned).
 * Prints one line a call: the number, the result (-1 on failure) and errno. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long raw(long nr, const long *a)
{
	return syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

#ifdef __x86_64__
static long int80(long nr, const long *a)
{
	long rc;

	__asm__ volatile("int $0x80" : "=a"(rc) : "0"(nr), "b"(a[0]), "c"(a[1]), "d"(a[2]), "S"(a[3]), "D"(a[4]) : "memory");
	if (rc < 0)
		errno = (int)-rc;
	return rc < 0 ? -1 : rc;
}

static long x32(long nr, const long *a)
{
	return raw(nr | 0x40000000, a);
}
#endif

static long argument(const char *word, long last)
{
	if (strcmp(word, "r") == 0)
		return last;
	if (strncmp(word, "s:", 2) == 0)
		return (long)(word + 2);
	if (strncmp(word, "b:", 2) == 0)
		return (long)calloc(1, strtoul(word + 2, NULL, 0));
	return (long)strtoul(word, NULL, 0);
}

int main(int argc, char **argv)
{
	long (*make)(long, const long *) = raw;
	long last = 0;
	int i = 1;

#ifdef __x86_64__
	if (argc > 1 && strcmp(argv[1], "--int80") == 0)
		make = int80, i++;
	else if (argc > 1 && strcmp(argv[1], "--x32") == 0)
		make = x32, i++;
#endif
	while (i < argc) {
		long nr = strtol(argv[i++], NULL, 0), args[6] = { 0 };
		for (int k = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
			if (k < 6)
				args[k++] = argument(argv[i], last);
		i++;
		errno = 0;
		last = make(nr, args);
		printf("%ld %s %d\n", nr, last < 0 ? "-1" : "ok", last < 0 ? errno : 0);
		fflush(stdout);
	}
	return 0;
}
