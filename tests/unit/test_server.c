/* test_server.c: the counter end to end: life cycle, lines, requests, blobs. */
#include "server_rig.h"

/* ---- life cycle ---- */

static void test_before_initialize(void **state)
{
	(void)state;
	struct rig r;

	start(&r);
	request(&r, "1", "ping", "{}");
	expect(&r, PONG("1"));
	request(&r, "2", "session/list", "{}");
	expect_error(&r, "2", -32002, "not_initialized");
	request(&r, "3", "run/argv", "{\"nonsense\":1}"); /* the phase is looked at before the params */
	expect_error(&r, "3", -32002, "not_initialized");
	notify(&r, "initialized", "{}");
	expect_silence(&r);
	ks_log(KS_LOG_ERROR, "early", "nobody is there to hear it");
	expect_silence(&r);
	assert_int_equal(r.calls, 0);
	finish(&r);
}

static void test_initialize(void **state)
{
	(void)state;
	struct rig r;
	char want[600];

	start(&r);
	say(&r, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":2,"
		"\"client\":{\"name\":\"t\",\"version\":\"1\"}}}\n");
	expect(&r, "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1002,\"message\":\"protocol version 2 is not supported\","
		   "\"data\":{\"reason\":\"unsupported_protocol\",\"path\":\"/protocolVersion\",\"hint\":\"ask for version 1\","
		   "\"retryable\":false,\"details\":{\"supported\":[1]}}}}");
	assert_false(ks_server_initialized(r.server));
	say(&r, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"initialize\",\"params\":{\"protocolVersion\":1,"
		"\"client\":{\"name\":\"t\",\"version\":\"1\"},\"capabilities\":{\"maxLineBytes\":65536},"
		"\"limits\":{\"runs\":3,\"queued\":0}}}\n");
	(void)snprintf(want, sizeof(want),
		       "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"protocolVersion\":1,\"protocolMinor\":0,"
		       "\"server\":{\"name\":\"kern-sidecar\",\"version\":\"" KS_VERSION "\",\"pid\":%d},"
		       "\"capabilities\":{\"localPaths\":true,\"features\":[]},"
		       "\"limits\":{\"maxLineInBytes\":8388608,\"maxLineBytes\":65536,\"runs\":3,\"queued\":0,"
		       "\"blobBytes\":4194304},\"host\":{}}}",
		       getpid());
	expect(&r, want);
	assert_int_equal(ks_server_max_line(r.server), 65536);
	assert_int_equal(ks_server_limits(r.server)->runs, 3);
	assert_int_equal(ks_server_limits(r.server)->queued, 0);
	notify(&r, "initialized", "{}");
	request(&r, "3", "initialize", "{\"protocolVersion\":1,\"client\":{\"name\":\"t\",\"version\":\"1\"}}");
	expect_error(&r, "3", -32600, "invalid_request");
	expect_silence(&r);
	finish(&r);
}

static void test_max_line_bounds(void **state)
{
	(void)state;
	static const struct {
		const char *more;
		bool fine;
	} cases[] = {
		{ ",\"capabilities\":{\"maxLineBytes\":4095}", false },
		{ ",\"capabilities\":{\"maxLineBytes\":4096}", true },
		{ ",\"capabilities\":{\"maxLineBytes\":16777216}", true },
		{ ",\"capabilities\":{\"maxLineBytes\":16777217}", false },
		{ ",\"limits\":{\"runs\":0}", false },
		{ ",\"limits\":{\"runs\":256,\"queued\":65536}", true },
		{ ",\"limits\":{\"runs\":257}", false },
		{ ",\"limits\":{\"queued\":65537}", false },
	};

	for (size_t i = 0; i < KS_COUNT(cases); i++) {
		struct rig r;
		char params[256];
		start(&r);
		if (cases[i].fine) {
			initialize(&r, cases[i].more);
		} else {
			(void)snprintf(params, sizeof(params),
				       "{\"protocolVersion\":1,\"client\":{\"name\":\"t\",\"version\":\"1\"}%s}", cases[i].more);
			request(&r, "1", "initialize", params);
			expect_error(&r, "1", -32602, "out_of_range");
		}
		finish(&r);
	}
}

static void test_shutdown_and_exit(void **state)
{
	(void)state;
	struct rig r;

	start(&r);
	initialize(&r, "");
	request(&r, "1", "shutdown", "{\"mode\":\"sometimes\"}"); /* refused, so nothing changes */
	expect_error(&r, "1", -32602, "invalid_value");
	request(&r, "2", "ping", "{}");
	expect(&r, PONG("2"));
	request(&r, "3", "shutdown", "{}");
	expect(&r, PONG("3"));
	request(&r, "4", "ping", "{}");
	expect_error(&r, "4", -32600, "invalid_request");
	request(&r, "5", "shutdown", "{}");
	expect_error(&r, "5", -32600, "invalid_request");
	assert_int_equal(r.closed, 0);
	notify(&r, "exit", "{}");
	say(&r, "{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"ping\"}\n");
	expect_closed(&r);
	expect_silence(&r); /* nothing is read after exit */
	finish(&r);
}

/* ---- lines ---- */

static void test_pieces_of_every_kind(void **state)
{
	(void)state;
	struct rig r;
	struct ks_buf all = { 0 };
	char want[64];

	start(&r);
	for (int i = 0; i < 200; i++)
		ks_buf_printf(&all, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"ping\"}%s", i, i % 2 ? "\r\n\n" : "\n");
	say_bytes(&r, all.data, all.len);
	for (int i = 0; i < 200; i++) {
		(void)snprintf(want, sizeof(want), PONG("%d"), i);
		expect(&r, want);
	}
	for (size_t i = 0; i < 1000; i++) {
		say_bytes(&r, all.data + i, 1);
		turn(&r);
	}
	for (int i = 0; i < 20; i++) {
		(void)snprintf(want, sizeof(want), PONG("%d"), i);
		expect(&r, want);
	}
	ks_buf_free(&all);
	finish(&r);
}

static void test_bad_lines_and_the_good_one_after(void **state)
{
	(void)state;
	static const struct {
		const char *line, *id;
		int code;
		const char *reason;
	} cases[] = {
		{ "nonsense", "null", -32700, "parse" },
		{ "\xef\xbb\xbf{}", "null", -32700, "parse" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"", "null", -32700, "parse" },
		{ "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", "null", -32600, "batch_unsupported" },
		{ "{\"jsonrpc\":\"1.0\",\"id\":5,\"method\":\"ping\"}", "5", -32600, "invalid_request" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", "null", -32600, "invalid_request" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":7}", "\"x\"", -32600, "invalid_request" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"ping\"}", "null", -32600, "invalid_request" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", "1", -32600, "invalid_request" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"no/such\"}", "1", -32601, "unknown_method" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"kernel/open\"}", "1", -32601, "unknown_method" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"pong\":1}}", "1", -32602, "unknown_option" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"exit\"}", "1", -32600, "invalid_request" },
	};
	struct rig r;

	start(&r);
	initialize(&r, "");
	for (size_t i = 0; i < KS_COUNT(cases); i++) {
		say(&r, cases[i].line);
		say(&r, "\n{\"jsonrpc\":\"2.0\",\"id\":99,\"method\":\"ping\"}\n");
		expect_error(&r, cases[i].id, cases[i].code, cases[i].reason);
		expect(&r, PONG("99"));
	}
	assert_int_equal(r.closed, 0);
	finish(&r);
}

static void test_line_too_long_then_a_good_one(void **state)
{
	(void)state;
	struct rig r;
	size_t len = KS_LINE_IN_MAX;
	char *line = malloc(len + 1);
	static const char head[] = "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}";

	assert_non_null(line);
	memset(line, ' ', len + 1);
	memcpy(line, head, sizeof(head) - 1);
	start(&r);
	say_bytes(&r, line, len); /* spaces behind the object, exactly at the cap: a good line */
	say(&r, "\n");
	expect(&r, PONG("7"));
	say_bytes(&r, line, len + 1);
	expect_error(&r, "null", 1005, "line_too_long"); /* before its end has come */
	say(&r, " and more of it\n{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"ping\"}\n");
	expect(&r, PONG("8"));
	expect_silence(&r);
	free(line);
	finish(&r);
}

static void test_notifications_get_no_reply(void **state)
{
	(void)state;
	struct rig r;

	start(&r);
	initialize(&r, "");
	notify(&r, "no/such", "{}");
	expect(&r, "{\"jsonrpc\":\"2.0\",\"method\":\"$/log\",\"params\":{\"level\":\"warn\",\"code\":\"notification_refused\","
		   "\"message\":\"no/such: unknown_method: there is no method \\\"no/such\\\"\"}}");
	notify(&r, "ping", "{}"); /* a request without id */
	expect_start(&r, "{\"jsonrpc\":\"2.0\",\"method\":\"$/log\"");
	notify(&r, "$/cancel", "{}");
	expect_start(&r, "{\"jsonrpc\":\"2.0\",\"method\":\"$/log\"");
	notify(&r, "initialized", "{}");
	expect_silence(&r);
	assert_int_equal(r.calls, 0);
	finish(&r);
}

/* ---- requests ---- */

static void test_duplicate_ids(void **state)
{
	(void)state;
	struct rig r;

	start(&r);
	initialize(&r, "");
	request(&r, "7", "run/argv", ARGV);
	request(&r, "\"a\"", "run/argv", ARGV);
	wait_pending(&r, 2);
	request(&r, "7", "ping", "{}");
	expect_error(&r, "7", -32600, "duplicate_id");
	request(&r, "\"\\u0061\"", "run/argv", ARGV); /* the same string */
	expect_error(&r, "\"a\"", -32600, "duplicate_id");
	request(&r, "\"7\"", "ping", "{}"); /* a string is not a number */
	expect(&r, PONG("\"7\""));
	assert_int_equal(r.pending_count, 2);
	assert_int_equal(ks_server_live(r.server), 2);
	assert_string_equal(ks_request_id(r.pending[1]), "\"a\"");
	answer(r.pending[0], "{\"n\":1}");
	answer(r.pending[1], "{\"n\":2}");
	expect(&r, "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"n\":1}}");
	expect(&r, "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":{\"n\":2}}");
	request(&r, "7", "ping", "{}"); /* free again */
	expect(&r, PONG("7"));
	assert_int_equal(ks_server_live(r.server), 0);
	finish(&r);
}

static void test_kept_params(void **state)
{
	(void)state;
	struct rig r;

	start(&r);
	initialize(&r, "");
	request(&r, "1", "run/argv", "{\"argv\":[\"echo\",\"hello\"],\"runId\":\"abc\"}");
	wait_pending(&r, 1);
	assert_int_equal(r.kept->argv.count, 2);
	assert_string_equal(r.kept->argv.items[1], "hello");
	assert_string_equal(r.kept->run_id, "abc");
	answer(r.pending[0], "{}");
	expect(&r, PONG("1"));
	finish(&r);
}

static void test_cancel(void **state)
{
	(void)state;
	struct rig r;

	start(&r);
	initialize(&r, "");
	r.watch_cancel = r.answer_cancel = true;
	notify(&r, "$/cancel", "{\"id\":1}"); /* before the request: nothing to cancel */
	request(&r, "1", "run/argv", ARGV);
	wait_pending(&r, 1);
	assert_int_equal(r.cancels, 0);
	notify(&r, "$/cancel", "{\"id\":2}");	  /* unknown */
	notify(&r, "$/cancel", "{\"id\":\"1\"}"); /* another id */
	notify(&r, "$/cancel", "{\"id\":1}");
	expect_error(&r, "1", -32800, "cancelled");
	assert_int_equal(r.cancels, 1);
	assert_ptr_equal(r.cancelled, r.pending[0]);
	notify(&r, "$/cancel", "{\"id\":1}"); /* answered by now */
	expect_silence(&r);
	assert_int_equal(r.cancels, 1);
	/* The handler may take its time and answer normally; a second cancel is not told. */
	r.answer_cancel = false;
	request(&r, "1", "run/argv", ARGV);
	notify(&r, "$/cancel", "{\"id\":1}");
	notify(&r, "$/cancel", "{\"id\":1}");
	wait_pending(&r, 2);
	expect_silence(&r);
	assert_int_equal(r.cancels, 2);
	answer(r.pending[1], "{\"late\":true}");
	expect(&r, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"late\":true}}");
	/* Whoever asks after the cancel came is told at once. */
	r.watch_cancel = false;
	request(&r, "1", "run/argv", ARGV);
	notify(&r, "$/cancel", "{\"id\":1}");
	wait_pending(&r, 3);
	expect_silence(&r);
	assert_int_equal(r.cancels, 2);
	ks_request_on_cancel(r.pending[2], on_cancel, r.pending[2]);
	assert_int_equal(r.cancels, 3);
	answer(r.pending[2], "{}");
	expect(&r, PONG("1"));
	expect_silence(&r);
	finish(&r);
}

/* 4096 with the LF is the last that leaves; one byte more is an error with a sentence, and logged. */
static void test_reply_that_does_not_fit(void **state)
{
	(void)state;
	struct rig r;

	start(&r);
	initialize(&r, ",\"capabilities\":{\"maxLineBytes\":4096}");
	r.list_bytes = 4096 - strlen("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":}\n");
	request(&r, "1", "session/list", "{}");
	assert_int_equal(strlen(hear(&r)) + 1, 4096);
	r.list_bytes++;
	request(&r, "1", "session/list", "{}");
	expect_error(&r, "1", -32603, "internal"); /* the reply's lane goes first */
	expect_start(&r, "{\"jsonrpc\":\"2.0\",\"method\":\"$/log\",\"params\":{\"level\":\"error\",\"code\":\"reply_too_long\"");
	expect_silence(&r);
	finish(&r);
}

static void test_error_with_everything_stays_below_the_cap(void **state)
{
	(void)state;
	struct rig r;
	struct ks_error err;
	char id[200] = "\"";

	start(&r);
	initialize(&r, ",\"capabilities\":{\"maxLineBytes\":4096}");
	memset(id + 1, 'i', 128);
	id[129] = '"';
	request(&r, id, "run/argv", ARGV);
	wait_pending(&r, 1);
	(void)ks_fail(&err, KS_E_START_FAILED, "%s", "");
	memset(err.text, 1, sizeof(err.text) - 1);
	memset(err.hint, 1, sizeof(err.hint) - 1);
	memset(err.pointer, 1, sizeof(err.pointer) - 1);
	memset(err.step, 1, sizeof(err.step) - 1);
	err.sys_errno = 2147483647;
	ks_reply_error(r.pending[0], &err);
	const char *line = hear(&r);
	assert_true(strlen(line) < 4096);
	assert_non_null(strstr(line, "\"errno\":2147483647"));
	assert_null(strstr(line, "\"hint\""));
	finish(&r);
}

static void test_log_and_notifications(void **state)
{
	(void)state;
	struct rig r;
	struct ks_buf params = { 0 }, big = { 0 };

	start(&r);
	initialize(&r, "");
	ks_log(KS_LOG_WARN, "some_code", "a \"text\" of %d\n words \xff", 5);
	expect(&r, "{\"jsonrpc\":\"2.0\",\"method\":\"$/log\",\"params\":{\"level\":\"warn\",\"code\":\"some_code\","
		   "\"message\":\"a \\\"text\\\" of 5? words \xef\xbf\xbd\"}}");
	ks_buf_str(&params, "{\"sessionId\":\"s\",\"reason\":\"test\"}");
	ks_notify(r.server, KS_LANE_EVENT, KS_LINE_NOTE, "session/closed", &params);
	expect(&r, "{\"jsonrpc\":\"2.0\",\"method\":\"session/closed\",\"params\":{\"sessionId\":\"s\",\"reason\":\"test\"}}");
	ks_buf_str(&params, "{\"kernelId\":\"k\",\"state\":\"idle\"}"); /* may wait for company, but not for ever */
	ks_notify(r.server, KS_LANE_EVENT, KS_LINE_PATIENT, "kernel/state", &params);
	expect(&r, "{\"jsonrpc\":\"2.0\",\"method\":\"kernel/state\",\"params\":{\"kernelId\":\"k\",\"state\":\"idle\"}}");
	ks_write_open(&big, '{');
	ks_write_key(&big, "x");
	(void)ks_buf_reserve(&big, 40000);
	ks_buf_char(&big, '"');
	memset(big.data + big.len, 'x', 33000);
	big.len += 33000;
	ks_buf_str(&big, "\"}");
	ks_notify(r.server, KS_LANE_EVENT, KS_LINE_NOTE, "session/closed", &big);
	assert_null(big.data);
	expect_start(&r, "{\"jsonrpc\":\"2.0\",\"method\":\"$/log\",\"params\":{\"level\":\"error\",\"code\":\"notification_lost\"");
	expect_silence(&r);
	finish(&r);
}

/* ---- blobs and the schema ---- */

static void test_blob_methods(void **state)
{
	(void)state;
	struct rig r;
	char id[64], params[128], want[128];

	start(&r);
	initialize(&r, "");
	request(&r, "1", "blob/write", "{\"text\":\"h\\u20ac\"}");
	const char *line = hear(&r), *at = strstr(line, "\"id\":\"");
	assert_non_null(at);
	assert_int_equal(sscanf(at, "\"id\":\"%32[0-9a-f]\"", id), 1);
	(void)snprintf(want, sizeof(want), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"id\":\"%s\",\"bytes\":4}}", id);
	assert_string_equal(line, want);
	(void)snprintf(params, sizeof(params), "{\"id\":\"%s\",\"base64\":\"/w==\"}", id);
	request(&r, "2", "blob/write", params);
	(void)snprintf(want, sizeof(want), "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"id\":\"%s\",\"bytes\":5}}", id);
	expect(&r, want);
	static const struct {
		const char *range, *want;
	} reads[] = {
		{ "", "{\"base64\":\"aOKCrP8=\",\"nextOffset\":5,\"eof\":true}" },
		{ ",\"length\":4", "{\"text\":\"h\xe2\x82\xac\",\"nextOffset\":4,\"eof\":false}" },
		{ ",\"length\":3", "{\"text\":\"h\",\"nextOffset\":1,\"eof\":false}" },
		{ ",\"offset\":1,\"length\":2", "{\"base64\":\"4oI=\",\"nextOffset\":3,\"eof\":false}" },
		{ ",\"offset\":4,\"length\":100", "{\"base64\":\"/w==\",\"nextOffset\":5,\"eof\":true}" },
		{ ",\"offset\":5", "{\"text\":\"\",\"nextOffset\":5,\"eof\":true}" },
	};
	for (size_t i = 0; i < KS_COUNT(reads); i++) {
		(void)snprintf(params, sizeof(params), "{\"id\":\"%s\"%s}", id, reads[i].range);
		request(&r, "3", "blob/read", params);
		(void)snprintf(want, sizeof(want), "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":%s}", reads[i].want);
		expect(&r, want);
	}
	(void)snprintf(params, sizeof(params), "{\"id\":\"%s\",\"offset\":6}", id);
	request(&r, "4", "blob/read", params);
	expect_error(&r, "4", -32602, "out_of_range");
	(void)snprintf(params, sizeof(params), "{\"id\":\"%s\"}", id);
	request(&r, "5", "blob/free", params);
	expect(&r, PONG("5"));
	request(&r, "6", "blob/free", params);
	expect_error(&r, "6", 1106, "gone");
	request(&r, "7", "blob/read", "{\"id\":\"never-was\"}");
	expect_error(&r, "7", 1100, "unknown_handle");
	finish(&r);
}

/* The document does not fit a line: it comes as a blob, whose pieces together are the document. */
static void test_schema_through_a_blob(void **state)
{
	(void)state;
	struct rig r;
	struct ks_buf document = { 0 }, got = { 0 };
	struct json_object *root, *result, *value;
	char id[64], params[128];
	bool eof = false;

	ks_schema_print(&document);
	start(&r);
	request(&r, "1", "rpc/schema", "{}"); /* also before initialize */
	const char *line = hear(&r);
	assert_true(document.len > KS_LINE_OUT_DEFAULT);
	assert_int_equal(sscanf(line, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"schema\":{\"blob\":{\"id\":\"%32[0-9a-f]\"", id), 1);
	initialize(&r, "");
	while (!eof) {
		(void)snprintf(params, sizeof(params), "{\"id\":\"%s\",\"offset\":%zu}", id, got.len);
		request(&r, "2", "blob/read", params);
		line = hear(&r);
		assert_true(strlen(line) < KS_LINE_OUT_DEFAULT);
		assert_true(strlen(line) > KS_LINE_OUT_DEFAULT / 2 || strstr(line, "\"eof\":true"));
		root = json_tokener_parse(line);
		assert_true(json_object_object_get_ex(root, "result", &result));
		assert_true(json_object_object_get_ex(result, "text", &value));
		ks_buf_add(&got, json_object_get_string(value), (size_t)json_object_get_string_len(value));
		assert_true(json_object_object_get_ex(result, "nextOffset", &value));
		assert_int_equal(json_object_get_int64(value), got.len);
		assert_true(json_object_object_get_ex(result, "eof", &value));
		eof = json_object_get_boolean(value);
		json_object_put(root);
	}
	assert_int_equal(got.len, document.len);
	assert_memory_equal(got.data, document.data, document.len);
	ks_buf_free(&got);
	finish(&r);
	/* With room for it, it comes as it is. */
	start(&r);
	initialize(&r, ",\"capabilities\":{\"maxLineBytes\":16777216}");
	request(&r, "1", "rpc/schema", "{}");
	ks_buf_str(&got, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"schema\":");
	ks_buf_add(&got, document.data, document.len);
	ks_buf_add(&got, "}}", 3);
	expect(&r, got.data);
	ks_buf_free(&got);
	ks_buf_free(&document);
	finish(&r);
}

static void test_free_with_live_requests(void **state)
{
	(void)state;
	struct rig r;

	start(&r);
	initialize(&r, "");
	request(&r, "1", "run/argv", ARGV);
	request(&r, "2", "run/argv", ARGV);
	say(&r, "{\"half a line");
	wait_pending(&r, 2);
	finish(&r); /* valgrind and ASan see what is left */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_before_initialize),
		cmocka_unit_test(test_initialize),
		cmocka_unit_test(test_max_line_bounds),
		cmocka_unit_test(test_shutdown_and_exit),
		cmocka_unit_test(test_pieces_of_every_kind),
		cmocka_unit_test(test_bad_lines_and_the_good_one_after),
		cmocka_unit_test(test_line_too_long_then_a_good_one),
		cmocka_unit_test(test_notifications_get_no_reply),
		cmocka_unit_test(test_duplicate_ids),
		cmocka_unit_test(test_kept_params),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_reply_that_does_not_fit),
		cmocka_unit_test(test_error_with_everything_stays_below_the_cap),
		cmocka_unit_test(test_log_and_notifications),
		cmocka_unit_test(test_blob_methods),
		cmocka_unit_test(test_schema_through_a_blob),
		cmocka_unit_test(test_free_with_live_requests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
