/* hoard WAY MIB: holds that much memory in a place that the resident set of a process does not show, then says so and sleeps. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MIB (1024L * 1024L)

static char block[MIB];

static long fill_file(int fd, long mib)
{
	long n = 0;

	while (n < mib && write(fd, block, MIB) == MIB)
		n++;
	return n;
}

static long in_memfd(long mib)
{
	int fd = memfd_create("hoard", 0);

	return fd < 0 ? -1 : fill_file(fd, mib);
}

static long in_segment(long mib)
{
	int id = shmget(IPC_PRIVATE, (size_t)(mib * MIB), 0600);
	char *at = id < 0 ? (void *)-1 : shmat(id, NULL, 0);

	if (at == (void *)-1)
		return -1;
	for (long i = 0; i < mib * MIB; i += 4096)
		at[i] = 1;
	return mib;
}

static long in_pipes(long mib)
{
	long held = 0;
	int fds[2];

	while (held < mib * MIB && pipe2(fds, O_NONBLOCK) == 0) {
		ssize_t n;
		(void)fcntl(fds[1], F_SETPIPE_SZ, MIB);
		while ((n = write(fds[1], block, sizeof(block))) > 0)
			held += n;
	}
	return held / MIB;
}

static long in_sockets(long mib)
{
	long held = 0;
	int fds[2];

	while (held < mib * MIB && socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) == 0) {
		ssize_t n;
		while ((n = write(fds[1], block, 65536)) > 0)
			held += n;
	}
	return held / MIB;
}

/* One page in every 2 MiB: a page table of 4 KiB for each. */
static long in_page_tables(long mib)
{
	long tables = mib * MIB / 4096;

	for (long i = 0; i < tables; i++) {
		char *at = mmap(NULL, 2 * MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (at == MAP_FAILED)
			return i * 4096 / MIB;
		(void)*(volatile char *)at; /* the shared zero page: no memory but the table */
	}
	return mib;
}

/* Names that are not there are remembered, too. */
static long in_names(long mib)
{
	char path[300];
	long n, names = mib * MIB / 448; /* a dentry and its long name */

	memset(path, 'n', sizeof(path));
	for (n = 0; n < names; n++) {
		struct stat st;
		int at = snprintf(path, sizeof(path), "name-%012ld", n);
		memset(path + at, 'x', 200);
		path[at + 200] = '\0';
		if (stat(path, &st) == 0)
			return -1;
	}
	return mib;
}

static long in_process(long mib)
{
	char *at = malloc((size_t)(mib * MIB));

	if (!at)
		return -1;
	for (long i = 0; i < mib * MIB; i += 4096)
		((volatile char *)at)[i] = 1;
	return mib;
}

static long in_unlinked(long mib, const char *directory)
{
	int fd = open(directory, O_TMPFILE | O_RDWR, 0600);

	return fd < 0 ? -1 : fill_file(fd, mib);
}

static long in_tmp(long mib) { return in_unlinked(mib, "/tmp"); }
static long in_shm(long mib) { return in_unlinked(mib, "/dev/shm"); }

static const struct {
	const char *name;
	long (*hold)(long mib);
} ways[] = {
	{ "memfd", in_memfd },		 { "segment", in_segment }, { "pipes", in_pipes }, { "sockets", in_sockets },
	{ "page-tables", in_page_tables }, { "names", in_names },   { "tmp", in_tmp },	   { "shm", in_shm },
	{ "process", in_process },
};

int main(int argc, char **argv)
{
	memset(block, 1, sizeof(block));
	for (size_t i = 0; argc > 2 && i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (strcmp(ways[i].name, argv[1]) != 0)
			continue;
		long held = ways[i].hold(atol(argv[2]));
		printf("%ld %d\n", held, held == atol(argv[2]) ? 0 : errno);
		fflush(stdout);
		(void)sleep(argc > 3 ? 1000 : 0);
		return 0;
	}
	return 2;
}
