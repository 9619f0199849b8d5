/* test_msg.c: records with descriptors beside them over a socket: caps, ends, and that nothing leaks. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/base.h"
#include "box/msg.h"

static int pair[2];

static int set_up(void **state)
{
	(void)state;
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair);
}

static int tear_down(void **state)
{
	(void)state;
	ks_close(&pair[0]);
	ks_close(&pair[1]);
	return 0;
}

static int count_fds(void)
{
	int count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void make_fds(int *fds, int count)
{
	for (int i = 0; i < count; i++) {
		fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		assert_true(fds[i] >= 0);
	}
}

static bool same_file(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* ---- records ---- */

static void test_record(void **state)
{
	(void)state;
	struct ks_msg out = { .op = KS_OP_EXITED, .group = 3, .box = 4, .u.exit.wall_us = 5 }, in;
	int fds[KS_MSG_FDS], nfds = 99;

	assert_int_equal(ks_send(pair[0], &out, sizeof(out), NULL, 0, 0), 0);
	assert_int_equal(ks_recv(pair[1], &in, sizeof(in), fds, &nfds, 0), sizeof(in));
	assert_int_equal(nfds, 0);
	assert_memory_equal(&in, &out, sizeof(in));
}

/* A record is cut to what its reader has room for, and the next one begins where it should. */
static void test_long_record(void **state)
{
	(void)state;
	char text[16] = "";

	assert_int_equal(ks_send(pair[0], "0123456789", 10, NULL, 0, 0), 0);
	assert_int_equal(ks_send(pair[0], "abc", 3, NULL, 0, 0), 0);
	assert_int_equal(ks_recv(pair[1], text, 4, NULL, NULL, 0), 4);
	assert_memory_equal(text, "0123\0", 5);
	assert_int_equal(ks_recv(pair[1], text, sizeof(text), NULL, NULL, 0), 3);
	assert_memory_equal(text, "abc3\0", 4);
}

static void test_ends(void **state)
{
	(void)state;
	char byte;
	int fds[KS_MSG_FDS], nfds = 99;

	assert_int_equal(ks_recv(pair[1], &byte, 1, fds, &nfds, MSG_DONTWAIT), -EAGAIN);
	assert_int_equal(nfds, 0);
	ks_close(&pair[0]);
	assert_int_equal(ks_recv(pair[1], &byte, 1, fds, &nfds, 0), 0);
	assert_int_equal(ks_send(pair[1], "x", 1, NULL, 0, 0), -EPIPE); /* and no SIGPIPE */
	assert_int_equal(ks_send(-1, "x", 1, NULL, 0, 0), -EBADF);
	assert_int_equal(ks_recv(-1, &byte, 1, fds, &nfds, 0), -EBADF);
	assert_int_equal(nfds, 0);
}

static void test_full(void **state)
{
	(void)state;
	static const char record[4096];
	int sent = 0, rc;

	while ((rc = ks_send(pair[0], record, sizeof(record), NULL, 0, MSG_DONTWAIT)) == 0)
		assert_true(++sent < 10000);
	assert_int_equal(rc, -EAGAIN);
	assert_true(sent > 0);
}

/* ---- descriptors ---- */

static void check_fds(int count)
{
	int out[KS_MSG_FDS + 1], in[KS_MSG_FDS], nfds = 99;
	const int before = count_fds();
	char byte;

	make_fds(out, count);
	if (count > 0) /* not all alike */
		assert_int_equal(dup3(pair[0], out[count - 1], O_CLOEXEC), out[count - 1]);
	assert_int_equal(ks_send(pair[0], "x", 1, out, count, 0), 0);
	assert_int_equal(ks_recv(pair[1], &byte, 1, in, &nfds, 0), 1);
	assert_int_equal(nfds, count);
	for (int i = 0; i < count; i++) {
		assert_int_equal(fcntl(in[i], F_GETFD), FD_CLOEXEC);
		assert_true(same_file(in[i], out[i]));
	}
	ks_close_all(in, nfds);
	ks_close_all(out, count);
	assert_int_equal(count_fds(), before);
}

static void test_fds(void **state)
{
	(void)state;
	check_fds(0);
	check_fds(1);
	check_fds(KS_MSG_FDS - 1);
	check_fds(KS_MSG_FDS);
}

static void test_too_many_fds(void **state)
{
	(void)state;
	int out[KS_MSG_FDS + 1];
	char byte;

	make_fds(out, KS_MSG_FDS + 1);
	assert_int_equal(ks_send(pair[0], "x", 1, out, KS_MSG_FDS + 1, 0), -EINVAL);
	assert_int_equal(ks_recv(pair[1], &byte, 1, NULL, NULL, MSG_DONTWAIT), -EAGAIN); /* nothing was sent */
	ks_close_all(out, KS_MSG_FDS + 1);
}

static void send_raw(const int *fds, size_t count)
{
	_Alignas(struct cmsghdr) char room[CMSG_SPACE(200 * sizeof(int))] = { 0 };
	struct iovec iov = { .iov_base = (char[]){ 'x' }, .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = room };

	msg.msg_controllen = CMSG_SPACE(count * sizeof(int));
	struct cmsghdr *head = CMSG_FIRSTHDR(&msg);
	*head = (struct cmsghdr){ CMSG_LEN(count * sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
	memcpy(CMSG_DATA(head), fds, count * sizeof(int));
	assert_int_equal(sendmsg(pair[0], &msg, 0), 1);
}

/* From a peer that does not keep to the rules: the kernel closes what does not fit. */
static void test_more_fds_than_room(void **state)
{
	(void)state;
	int out[200], in[KS_MSG_FDS + 1], nfds = 0;
	const int before = count_fds();
	char byte;

	make_fds(out, 200);
	for (size_t count = KS_MSG_FDS + 1; count <= 200; count += 134) {
		in[KS_MSG_FDS] = -77;
		send_raw(out, count);
		assert_int_equal(ks_recv(pair[1], &byte, 1, in, &nfds, 0), 1);
		assert_int_equal(nfds, KS_MSG_FDS);
		assert_int_equal(in[KS_MSG_FDS], -77);
		ks_close_all(in, nfds);
	}
	ks_close_all(out, 200);
	assert_int_equal(count_fds(), before);
}

static void test_unwanted_fds(void **state)
{
	(void)state;
	int out[3];
	const int before = count_fds();
	char byte;

	make_fds(out, 3);
	assert_int_equal(ks_send(pair[0], "x", 1, out, 3, 0), 0);
	assert_int_equal(ks_recv(pair[1], &byte, 1, NULL, NULL, 0), 1);
	ks_close_all(out, 3);
	assert_int_equal(count_fds(), before);
}

/* What the kernel really applies: valgrind keeps a changed limit to itself. */
static bool limit_is(rlim_t want)
{
	char line[256];
	unsigned long now = 0;
	FILE *f = fopen("/proc/self/limits", "re");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Max open files %lu", &now) == 1)
			break;
	if (f)
		(void)fclose(f);
	return now == want;
}

/* Out of descriptors: as many as there is room for, never numbers that mean nothing. */
static void test_no_descriptors_left(void **state)
{
	(void)state;
	struct rlimit old, low;
	int out[3], in[KS_MSG_FDS], nfds = 99;
	const int before = count_fds();
	char byte;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	make_fds(out, 3);
	assert_int_equal(ks_send(pair[0], "x", 1, out, 3, 0), 0);
	ks_close_all(out, 3);
	low = (struct rlimit){ (rlim_t)out[0] + 1, old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	if (!limit_is(low.rlim_cur)) {
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
		skip();
	}
	ssize_t n = ks_recv(pair[1], &byte, 1, in, &nfds, 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(n, 1);
	assert_int_equal(nfds, 1);
	assert_int_equal(in[0], out[0]);
	ks_close_all(in, nfds);
	assert_int_equal(count_fds(), before);
}

static void test_close_all(void **state)
{
	(void)state;
	int fds[3];
	const int before = count_fds();

	make_fds(fds, 3);
	const int some[] = { fds[0], -1, fds[2] };
	ks_close_all(some, 3);
	assert_int_equal(count_fds(), before + 1);
	ks_close_all(some, 0);
	(void)close(fds[1]);
}

/* ---- ks_keep_fds, each in a child because it closes everything else ---- */

static int in_child(int (*part)(void))
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(part());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int keep_reversed(void)
{
	/* every target is another one's source */
	int first = open("/dev/null", O_RDONLY), second = open("/dev/zero", O_RDONLY);
	int fds[] = { 4, 3 };

	if (first < 0 || second < 0 || dup2(first, 30) != 30 || dup2(second, 31) != 31 || dup2(31, 3) != 3 ||
	    dup2(30, 4) != 4 || dup2(30, 900) != 900)
		return 2;
	if (ks_keep_fds(fds, 2) != 0 || fds[0] != 3 || fds[1] != 4)
		return 3;
	struct stat st[2];
	if (fstat(3, &st[0]) < 0 || fstat(4, &st[1]) < 0 || st[0].st_rdev != 0x103 || st[1].st_rdev != 0x105)
		return 4; /* null is 1:3, zero 1:5 (devices.txt) */
	if (fcntl(3, F_GETFD) != FD_CLOEXEC || fcntl(4, F_GETFD) != FD_CLOEXEC)
		return 5;
	for (int fd = 5; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			return 6;
	return 0;
}

static int keep_none(void)
{
	if (ks_keep_fds(NULL, 0) != 0)
		return 2;
	for (int fd = 3; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			return 3;
	return 0;
}

static int keep_most(void)
{
	int fds[KS_MSG_FDS];

	for (int i = 0; i < KS_MSG_FDS; i++)
		fds[i] = pair[0];
	if (ks_keep_fds(fds, KS_MSG_FDS) != 0)
		return 2;
	for (int i = 0; i < KS_MSG_FDS; i++)
		if (fds[i] != 3 + i || fcntl(fds[i], F_GETFD) != FD_CLOEXEC)
			return 3;
	return fcntl(3 + KS_MSG_FDS, F_GETFD) < 0 ? 0 : 4;
}

static int keep_too_many(void)
{
	int fds[KS_MSG_FDS + 1] = { 0 };

	return ks_keep_fds(fds, KS_MSG_FDS + 1) == -EINVAL && fcntl(pair[0], F_GETFD) >= 0 ? 0 : 2;
}

static int keep_closed(void)
{
	int fds[] = { pair[0], -1 };

	return ks_keep_fds(fds, 2) == -EBADF && fds[1] == -1 ? 0 : 2;
}

static void test_keep_fds(void **state)
{
	(void)state;
	assert_int_equal(in_child(keep_reversed), 0);
	assert_int_equal(in_child(keep_none), 0);
	assert_int_equal(in_child(keep_most), 0);
	assert_int_equal(in_child(keep_too_many), 0);
	assert_int_equal(in_child(keep_closed), 0);
}

#define WITH_PAIR(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_PAIR(test_record),		  WITH_PAIR(test_long_record),
		WITH_PAIR(test_ends),		  WITH_PAIR(test_full),
		WITH_PAIR(test_fds),		  WITH_PAIR(test_too_many_fds),
		WITH_PAIR(test_more_fds_than_room), WITH_PAIR(test_unwanted_fds),
		WITH_PAIR(test_no_descriptors_left), WITH_PAIR(test_close_all),
		WITH_PAIR(test_keep_fds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
