/* test_server_load.c: clients that ask and do not read. */
#include "memcheck.h"
#include "server_rig.h"

static void test_cancel_reaches_a_deaf_clients_run(void **state)
{
	(void)state;
	struct rig r;
	struct ks_error err;
	static char chunk[16384];

	start(&r);
	initialize(&r, "");
	r.deaf = r.watch_cancel = true;
	request(&r, "1", "run/argv", ARGV);
	wait_pending(&r, 1);
	struct ks_stream_options options = { .mode = KS_STREAM_LIVE, .encoding = KS_ENCODING_UTF8, .run_id = "r" };
	struct ks_stream *stream = ks_stream_new(ks_server_streams(r.server), &options, &err);
	memset(chunk, 'x', sizeof(chunk));
	for (int i = 0; i < 2000; i++) {
		ks_stream_feed(stream, KS_STDOUT, chunk, sizeof(chunk)); /* 32 MiB */
		turn(&r);
	}
	assert_in_range(ks_stream_flow(stream)->bytes, KS_STREAM_WINDOW - 20000, KS_STREAM_WINDOW);
	assert_true(ks_server_streams(r.server)->chunks_dropped > 1900);
	request(&r, "2", "ping", "{}");
	notify(&r, "$/cancel", "{\"id\":1}");
	for (int i = 0; i < 100; i++)
		turn(&r);
	assert_int_equal(r.cancels, 1);
	struct ks_buf json = { 0 };
	ks_buf_str(&json, "{\"end\":true}");
	ks_stream_finish(stream, NULL, NULL);
	ks_reply_behind(r.pending[0], stream, &json);
	ks_stream_free(stream);
	/* Awake again: the output that is left, in order, the ping's reply long before the run's, nothing after. */
	r.deaf = false;
	int outputs = 0, pongs = 0, outputs_at_pong = 0;
	const char *line;
	while (strcmp(line = hear(&r), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"end\":true}}") != 0) {
		if (strcmp(line, PONG("2")) == 0) {
			pongs++;
			outputs_at_pong = outputs;
		} else {
			char want[32];
			(void)snprintf(want, sizeof(want), "\"seq\":%d,", ++outputs);
			assert_non_null(strstr(line, want));
		}
	}
	assert_int_equal(pongs, 1);
	assert_true(outputs_at_pong + 10 < outputs); /* only what was in the socket came before it */
	expect_silence(&r);
	finish(&r);
}

static void test_overloaded_then_served_again(void **state)
{
	(void)state;
	struct rig r;
	char id[16];
	int replies = 0, refused = 0;

	start(&r);
	initialize(&r, ",\"capabilities\":{\"maxLineBytes\":2000000}");
	r.deaf = true;
	r.list_bytes = 1 << 20;
	for (int i = 0; i < 20; i++) {
		(void)snprintf(id, sizeof(id), "%d", i);
		request(&r, id, "session/list", "{}"); /* control: still served */
	}
	for (int i = 0; i < 100; i++)
		turn(&r);
	assert_int_equal(r.calls, 20);
	request(&r, "100", "run/argv", ARGV);
	for (int i = 0; i < 100; i++)
		turn(&r);
	assert_int_equal(r.pending_count, 0);
	r.deaf = false;
	for (int i = 0; i < 20; i++)
		if (strlen(hear(&r)) > 1 << 20)
			replies++;
	expect_error(&r, "100", 1003, "overloaded");
	assert_int_equal(replies, 20);
	assert_int_equal(refused, 0);
	request(&r, "101", "run/argv", ARGV);
	wait_pending(&r, 1);
	assert_int_equal(r.closed, 0);
	finish(&r);
}

static long resident_kib(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
	return usage.ru_maxrss;
}

/* A client that only ever asks: bounded memory, then it is lost. */
static void test_flood_without_reading(void **state)
{
	(void)state;
	struct rig r;
	static const char ping[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
	struct ks_buf many = { 0 };
	long before = resident_kib();
	int rounds = 0;

	if (under_memcheck())
		skip();
	for (int i = 0; i < 2000; i++)
		ks_buf_add(&many, ping, sizeof(ping) - 1);
	start(&r);
	r.deaf = true;
	for (; rounds < 2000 && !r.closed; rounds++) {
		size_t left = many.len;
		while (left > 0 && !r.closed) {
			ssize_t n = write(r.to, many.data + (many.len - left), left);
			if (n > 0)
				left -= (size_t)n;
			turn(&r);
		}
	}
	assert_int_equal(r.closed, 1);
	assert_in_range(rounds, 200, 500); /* 64 MiB at about a hundred bytes a reply */
#if !KS_ASAN /* its red zones cost more than the lines that they are around */
	assert_true(resident_kib() - before < 256L * 1024);
#endif
	(void)before;
	ks_buf_free(&many);
	finish(&r);
}

static void test_too_many_requests_without_a_reply(void **state)
{
	(void)state;
	struct rig r;
	struct ks_buf many = { 0 };

	start(&r);
	initialize(&r, "");
	r.never_answer = true;
	for (int i = 0; i < KS_LIVE_REQUESTS_MAX; i++) {
		ks_buf_printf(&many, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"run/argv\",\"params\":" ARGV "}\n", i);
		if (many.len > 100000) {
			say_bytes(&r, many.data, many.len);
			ks_buf_clear(&many);
		}
	}
	say_bytes(&r, many.data, many.len);
	ks_buf_free(&many);
	expect_silence(&r);
	assert_int_equal(r.calls, KS_LIVE_REQUESTS_MAX);
	assert_int_equal(ks_server_live(r.server), KS_LIVE_REQUESTS_MAX);
	request(&r, "\"one more\"", "run/argv", ARGV);
	expect_error(&r, "\"one more\"", 1003, "overloaded");
	request(&r, "5", "ping", "{}");
	expect_error(&r, "5", -32600, "duplicate_id");
	finish(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flood_without_reading), /* first: it looks at the peak of the memory */
		cmocka_unit_test(test_cancel_reaches_a_deaf_clients_run),
		cmocka_unit_test(test_overloaded_then_served_again),
		cmocka_unit_test(test_too_many_requests_without_a_reply),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
