/* test_server_fds.c: stdin and stdout of every kind, and the named host process. */
#include "server_rig.h"

/* ---- descriptors of every kind ---- */

static void test_eof_and_the_last_line(void **state)
{
	(void)state;
	struct rig r;

	start(&r);
	say(&r, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}");
	assert_int_equal(shutdown(r.to, SHUT_WR), 0);
	expect(&r, PONG("1"));
	expect(&r, PONG("2"));
	expect_closed(&r);
	finish(&r);
}

static void check_kind(int fd_in, int fd_out, int to, int from, bool ends)
{
	struct rig r;

	start_on(&r, fd_in, fd_out, to, from);
	if (to >= 0)
		request(&r, "1", "ping", "{}");
	if (from >= 0)
		expect(&r, PONG("1"));
	if (ends)
		ks_close(&r.to);
	expect_closed(&r);
	finish(&r);
}

static void test_pipes_keep_their_flags(void **state)
{
	(void)state;
	int in[2], out[2];
	struct rig r;

	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	int shared_in = dup(in[0]), shared_out = dup(out[1]);
	start_on(&r, in[0], out[1], in[1], out[0]);
	request(&r, "1", "ping", "{}");
	expect(&r, PONG("1"));
	assert_int_equal(fcntl(shared_in, F_GETFL) & O_NONBLOCK, 0);
	assert_int_equal(fcntl(shared_out, F_GETFL) & O_NONBLOCK, 0);
	(void)close(shared_in);
	(void)close(shared_out);
	ks_close(&r.to);
	expect_closed(&r);
	finish(&r);
}

static void test_one_socket_for_both_keeps_its_flags(void **state)
{
	(void)state;
	int pair[2];
	struct rig r;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	int shared = dup(pair[1]);
	start_on(&r, pair[1], dup(pair[1]), pair[0], dup(pair[0]));
	request(&r, "1", "ping", "{}");
	expect(&r, PONG("1"));
	assert_int_equal(fcntl(shared, F_GETFL) & O_NONBLOCK, 0);
	assert_int_equal(shutdown(r.to, SHUT_WR), 0);
	(void)close(shared);
	expect_closed(&r);
	finish(&r);
}

static int file_with(const char *text)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

/* More than one turn's worth of requests in a file, replies into a file. */
static void test_regular_files(void **state)
{
	(void)state;
	struct ks_buf text = { 0 };
	struct rig r;
	char data[64];

	for (int i = 0; i < 20000; i++)
		ks_buf_printf(&text, "{\"jsonrpc\":\"2.0\",\"id\":%05d,\"method\":\"ping\"}\n", i + 10000);
	ks_buf_char(&text, '\0');
	int out = file_with("");
	start_on(&r, file_with(text.data), dup(out), -1, -1);
	expect_closed(&r);
	finish(&r);
	off_t size = (off_t)strlen(PONG("10000")) + 1;
	assert_int_equal(lseek(out, 0, SEEK_END), 20000 * size);
	assert_int_equal(pread(out, data, (size_t)size, 19999 * size), size);
	assert_memory_equal(data, PONG("29999") "\n", (size_t)size);
	(void)close(out);
	ks_buf_free(&text);
}

static void test_dev_null_and_closed(void **state)
{
	(void)state;
	int out[2];

	check_kind(open("/dev/null", O_RDONLY | O_CLOEXEC), open("/dev/null", O_WRONLY | O_CLOEXEC), -1, -1, false);
	check_kind(-1, -1, -1, -1, false);
	check_kind(4000, 4001, -1, -1, false); /* no such descriptors */
	check_kind(open("/", O_RDONLY | O_CLOEXEC), -1, -1, -1, false); /* EISDIR */
	/* stdin fine, nobody reads stdout any more */
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	int in[2];
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	(void)close(out[0]);
	check_kind(in[0], out[1], in[1], -1, false);
}

static void test_pseudoterminal(void **state)
{
	(void)state;
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), slave;
	struct rig r;

	if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0) {
		ks_close(&master);
		skip();
	}
	slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0) {
		ks_close(&master);
		skip();
	}
	int shared = dup(slave);
	start_on(&r, slave, dup(slave), master, dup(master));
	say(&r, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n");
	/* The terminal echoes, and ends lines in CR LF. */
	expect(&r, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r");
	expect(&r, PONG("1") "\r");
	assert_int_equal(fcntl(shared, F_GETFL) & O_NONBLOCK, 0);
	(void)close(shared);
	ks_close(&r.to);
	ks_close(&r.from); /* hang-up: reads fail with EIO or end */
	expect_closed(&r);
	finish(&r);
}

/* ---- the host process ---- */

static void test_named_process(void **state)
{
	(void)state;
	struct rig r;
	char more[64];
	int probe = (int)syscall(SYS_pidfd_open, getpid(), 0);

	if (probe < 0)
		skip(); /* before Linux 5.3, and under valgrind */
	(void)close(probe);
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* also when a check below fails */
		(void)pause();
		_exit(0);
	}
	start(&r);
	(void)snprintf(more, sizeof(more), ",\"processId\":%d", child);
	initialize(&r, more);
	expect_silence(&r);
	assert_int_equal(r.closed, 0);
	assert_int_equal(kill(child, SIGKILL), 0);
	expect_closed(&r);
	finish(&r);
	assert_int_equal(waitpid(child, NULL, 0), child);
	/* The same number again: no such process now, which counts as ended. The reply comes all the same. */
	start(&r);
	initialize(&r, more);
	expect_closed(&r);
	finish(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_eof_and_the_last_line),
		cmocka_unit_test(test_pipes_keep_their_flags),
		cmocka_unit_test(test_one_socket_for_both_keeps_its_flags),
		cmocka_unit_test(test_regular_files),
		cmocka_unit_test(test_dev_null_and_closed),
		cmocka_unit_test(test_pseudoterminal),
		cmocka_unit_test(test_named_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
