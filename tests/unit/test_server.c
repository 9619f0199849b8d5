/* test_server.c: the whole counter end to end, with fake handlers behind it and a client on the other end of real
 * descriptors. Server and client share one thread: the client writes, lets the loop turn, and reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <json-c/json.h>

#include "base/clock.h"
#include "base/log.h"
#include "proto/messages.h"
#include "proto/schema.h"
#include "proto/write.h"
#include "rpc/methods.h"
#include "rpc/server.h"

#define PENDING_MAX 64

struct rig {
	uv_loop_t loop;
	struct ks_server *server;
	struct ks_blobs *blobs;
	int to, from; /* the client's ends */
	struct ks_buf got;
	size_t line_at; /* where the next unread line begins */
	bool deaf;	/* the client does not read */
	int closed;
	/* run/argv: requests that wait for the test to answer them */
	struct ks_request *pending[PENDING_MAX];
	size_t pending_count, calls;
	int cancels;
	struct ks_request *cancelled;
	bool answer_cancel, watch_cancel;
	size_t list_bytes; /* session/list answers that many */
	const struct ks_run_params *kept;
};

static struct rig *rig; /* the one under test */

/* ---- fake handlers ---- */

static void on_cancel(void *arg)
{
	struct ks_error err;

	rig->cancels++;
	rig->cancelled = arg;
	if (!rig->answer_cancel)
		return;
	(void)ks_fail(&err, KS_E_CANCELLED, "cancelled");
	ks_reply_error(arg, &err);
}

static void run_argv(void *arg, struct ks_request *request, const void *params)
{
	struct rig *r = arg;

	r->calls++;
	assert_true(r->pending_count < PENDING_MAX);
	r->pending[r->pending_count++] = request;
	ks_request_keep_params(request);
	r->kept = params;
	if (r->watch_cancel)
		ks_request_on_cancel(request, on_cancel, request);
}

static void session_list(void *arg, struct ks_request *request, const void *params)
{
	struct rig *r = arg;
	struct ks_buf json = { 0 };

	(void)params;
	r->calls++;
	ks_buf_str(&json, "{\"x\":\"");
	for (size_t i = 8; i < r->list_bytes; i++)
		ks_buf_char(&json, 'x');
	ks_buf_str(&json, "\"}");
	ks_reply(request, &json);
}

static void shutdown_now(void *arg, struct ks_request *request, const void *params)
{
	struct ks_buf json = { 0 };

	(void)arg;
	assert_int_equal(((const struct ks_shutdown_params *)params)->mode, KS_SHUTDOWN_KILL);
	ks_buf_str(&json, "{}");
	ks_reply(request, &json);
}

static void welcome(void *arg, enum ks_welcome part, struct ks_buf *members)
{
	(void)arg;
	if (part == KS_WELCOME_CAPABILITIES) {
		ks_write_key(members, "features");
		ks_write_open(members, '[');
		ks_write_close(members, ']');
	} else if (part == KS_WELCOME_TOP) {
		ks_write_key(members, "host");
		ks_write_open(members, '{');
		ks_write_close(members, '}');
	}
}

static void on_closed(void *arg)
{
	((struct rig *)arg)->closed++;
}

/* ---- the rig ---- */

/* Takes the server's ends; the client's are the test's. */
static void start_on(struct rig *r, int fd_in, int fd_out, int to, int from)
{
	struct ks_error err;

	*r = (struct rig){ .to = to, .from = from };
	rig = r;
	(void)signal(SIGPIPE, SIG_IGN);
	ks_log_set_fd(-1);
	assert_int_equal(uv_loop_init(&r->loop), 0);
	assert_int_equal(ks_blobs_new(4 << 20, &r->blobs, &err), 0);
	assert_int_equal(ks_server_new(&r->loop, fd_in, fd_out, &r->server, &err), 0);
	ks_server_on_closed(r->server, on_closed, r);
	ks_methods_base(r->server, r->blobs);
	ks_methods_blob(r->server, r->blobs);
	ks_server_set_welcome(r->server, welcome, r);
	ks_server_handle(r->server, "run/argv", run_argv, r);
	ks_server_handle(r->server, "session/list", session_list, r);
	ks_server_handle(r->server, "shutdown", shutdown_now, r);
	if (from >= 0)
		assert_int_equal(fcntl(from, F_SETFL, O_NONBLOCK), 0);
}

static void start(struct rig *r)
{
	int in[2], out[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, out), 0);
	start_on(r, in[1], out[1], in[0], out[0]);
	assert_int_equal(fcntl(r->to, F_SETFL, O_NONBLOCK), 0);
}

static void finish(struct rig *r)
{
	ks_server_free(r->server);
	while (uv_run(&r->loop, UV_RUN_NOWAIT))
		;
	assert_int_equal(uv_loop_close(&r->loop), 0);
	ks_blobs_free(r->blobs);
	ks_close(&r->to);
	ks_close(&r->from);
	ks_buf_free(&r->got);
}

static void turn(struct rig *r)
{
	static char data[1 << 16];
	ssize_t n;

	(void)uv_run(&r->loop, UV_RUN_NOWAIT);
	while (!r->deaf && r->from >= 0 && (n = read(r->from, data, sizeof(data))) > 0)
		ks_buf_add(&r->got, data, (size_t)n);
}

static void say_bytes(struct rig *r, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = write(r->to, data, len);
		if (n < 0) {
			assert_int_equal(errno, EAGAIN);
			turn(r);
			continue;
		}
		data += n;
		len -= (size_t)n;
	}
}

static void say(struct rig *r, const char *text)
{
	say_bytes(r, text, strlen(text));
}

static char *next_line(struct rig *r)
{
	char *line = r->got.data ? r->got.data + r->line_at : NULL;
	char *lf = line ? memchr(line, '\n', r->got.len - r->line_at) : NULL;

	if (!lf)
		return NULL;
	*lf = '\0';
	r->line_at += (size_t)(lf - line) + 1;
	return line;
}

/* The next line of the server; valid until the next call. Fails after five seconds. */
static const char *hear(struct rig *r)
{
	int64_t end = ks_now_us() + 5000000;
	char *line;

	if (r->line_at == r->got.len) {
		ks_buf_clear(&r->got);
		r->line_at = 0;
	}
	while (!(line = next_line(r))) {
		if (ks_now_us() > end)
			fail_msg("no line from the server");
		turn(r);
	}
	return line;
}

static void expect(struct rig *r, const char *want)
{
	assert_string_equal(hear(r), want);
}

/* An error reply: its id, number and reason. */
static void expect_error(struct rig *r, const char *id, int code, const char *reason)
{
	struct json_object *root = json_tokener_parse(hear(r)), *error, *data, *value;

	assert_true(json_object_object_get_ex(root, "id", &value));
	assert_string_equal(json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN), id);
	assert_true(json_object_object_get_ex(root, "error", &error));
	assert_true(json_object_object_get_ex(error, "code", &value));
	assert_int_equal(json_object_get_int(value), code);
	assert_true(json_object_object_get_ex(error, "data", &data));
	assert_true(json_object_object_get_ex(data, "reason", &value));
	assert_string_equal(json_object_get_string(value), reason);
	assert_true(json_object_object_get_ex(error, "message", &value));
	assert_true(json_object_get_string_len(value) > 0);
	json_object_put(root);
}

static void expect_silence(struct rig *r)
{
	for (int i = 0; i < 20; i++)
		turn(r);
	assert_int_equal(r->got.len, r->line_at);
}

static void expect_closed(struct rig *r)
{
	int64_t end = ks_now_us() + 5000000;

	while (!r->closed && ks_now_us() < end)
		turn(r);
	assert_int_equal(r->closed, 1);
	for (int i = 0; i < 10; i++)
		turn(r);
	assert_int_equal(r->closed, 1); /* once */
}

static void initialize(struct rig *r, const char *more)
{
	char line[512];

	(void)snprintf(line, sizeof(line),
		       "{\"jsonrpc\":\"2.0\",\"id\":\"init\",\"method\":\"initialize\",\"params\":{\"protocolVersion\":1,"
		       "\"client\":{\"name\":\"t\",\"version\":\"1\"}%s}}\n",
		       more);
	say(r, line);
	assert_memory_equal(hear(r), "{\"jsonrpc\":\"2.0\",\"id\":\"init\",\"result\":{\"protocolVersion\":1,", 60);
}

static void request(struct rig *r, const char *id, const char *method, const char *params)
{
	char line[512];

	(void)snprintf(line, sizeof(line), "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"%s\",\"params\":%s}\n", id, method,
		       params);
	say(r, line);
}

static void notify(struct rig *r, const char *method, const char *params)
{
	char line[512];

	(void)snprintf(line, sizeof(line), "{\"jsonrpc\":\"2.0\",\"method\":\"%s\",\"params\":%s}\n", method, params);
	say(r, line);
}

static void wait_pending(struct rig *r, size_t count)
{
	for (int i = 0; i < 1000 && r->pending_count < count; i++)
		turn(r);
	assert_int_equal(r->pending_count, count);
}

static void answer(struct ks_request *request, const char *json)
{
	struct ks_buf buf = { 0 };

	ks_buf_str(&buf, json);
	ks_reply(request, &buf);
}

#define ARGV "{\"argv\":[\"true\"]}"
#define PONG(id) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"result\":{}}"

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
		   "\"message\":\"no/such: unknown_method: there is no method no/such\"}}");
	notify(&r, "ping", "{}"); /* a request without id */
	assert_memory_equal(hear(&r), "{\"jsonrpc\":\"2.0\",\"method\":\"$/log\"", 34);
	notify(&r, "$/cancel", "{}");
	assert_memory_equal(hear(&r), "{\"jsonrpc\":\"2.0\",\"method\":\"$/log\"", 34);
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
	assert_memory_equal(hear(&r), "{\"jsonrpc\":\"2.0\",\"method\":\"$/log\",\"params\":{\"level\":\"error\",\"code\":\"reply_too_long\"", 82);
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
	ks_notify(r.server, KS_LANE_EVENT, "session/closed", &params);
	expect(&r, "{\"jsonrpc\":\"2.0\",\"method\":\"session/closed\",\"params\":{\"sessionId\":\"s\",\"reason\":\"test\"}}");
	ks_write_open(&big, '{');
	ks_write_key(&big, "x");
	(void)ks_buf_reserve(&big, 40000);
	ks_buf_char(&big, '"');
	memset(big.data + big.len, 'x', 33000);
	big.len += 33000;
	ks_buf_str(&big, "\"}");
	ks_notify(r.server, KS_LANE_EVENT, "session/closed", &big);
	assert_null(big.data);
	assert_memory_equal(hear(&r), "{\"jsonrpc\":\"2.0\",\"method\":\"$/log\",\"params\":{\"level\":\"error\",\"code\":\"notification_lost\"", 85);
	expect_silence(&r);
	finish(&r);
}

/* ---- a client that does not read ---- */

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
	assert_true(resident_kib() - before < 256L * 1024); /* also with a sanitizer's red zones around each line */
	ks_buf_free(&many);
	finish(&r);
}

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
		cmocka_unit_test(test_cancel_reaches_a_deaf_clients_run),
		cmocka_unit_test(test_overloaded_then_served_again),
		cmocka_unit_test(test_flood_without_reading),
		cmocka_unit_test(test_eof_and_the_last_line),
		cmocka_unit_test(test_pipes_keep_their_flags),
		cmocka_unit_test(test_one_socket_for_both_keeps_its_flags),
		cmocka_unit_test(test_regular_files),
		cmocka_unit_test(test_dev_null_and_closed),
		cmocka_unit_test(test_pseudoterminal),
		cmocka_unit_test(test_named_process),
		cmocka_unit_test(test_blob_methods),
		cmocka_unit_test(test_schema_through_a_blob),
		cmocka_unit_test(test_free_with_live_requests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
