/* server_rig.h: what the tests of the server share: the server on real descriptors with fake handlers behind it, and a
 * client on their other ends. Both share one thread: the client writes, lets the loop turn, and reads. */
#pragma once

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
#include <sys/syscall.h>
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

#if defined(__SANITIZE_ADDRESS__)
#define KS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KS_ASAN 1
#endif
#endif
#ifndef KS_ASAN
#define KS_ASAN 0
#endif

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
	bool answer_cancel, watch_cancel, never_answer;
	size_t list_bytes; /* session/list answers that many */
	const struct ks_run_params *kept;
};

static struct rig *rig; /* the one under test */

/* ---- fake handlers ---- */

static inline void on_cancel(void *arg)
{
	struct ks_error err;

	rig->cancels++;
	rig->cancelled = arg;
	if (!rig->answer_cancel)
		return;
	(void)ks_fail(&err, KS_E_CANCELLED, "cancelled");
	ks_reply_error(arg, &err);
}

static inline void run_argv(void *arg, struct ks_request *request, const void *params)
{
	struct rig *r = arg;

	r->calls++;
	if (r->never_answer)
		return;
	assert_true(r->pending_count < PENDING_MAX);
	r->pending[r->pending_count++] = request;
	ks_request_keep_params(request);
	r->kept = params;
	if (r->watch_cancel)
		ks_request_on_cancel(request, on_cancel, request);
}

static inline void session_list(void *arg, struct ks_request *request, const void *params)
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

static inline void shutdown_now(void *arg, struct ks_request *request, const void *params)
{
	struct ks_buf json = { 0 };

	(void)arg;
	assert_int_equal(((const struct ks_shutdown_params *)params)->mode, KS_SHUTDOWN_KILL);
	ks_buf_str(&json, "{}");
	ks_reply(request, &json);
}

static inline void welcome(void *arg, enum ks_welcome part, struct ks_buf *members)
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

static inline void on_closed(void *arg)
{
	((struct rig *)arg)->closed++;
}

/* ---- the rig ---- */

/* Takes the server's ends; the client's are the test's. */
static inline void start_on(struct rig *r, int fd_in, int fd_out, int to, int from)
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

static inline void start(struct rig *r)
{
	int in[2], out[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, out), 0);
	start_on(r, in[1], out[1], in[0], out[0]);
	assert_int_equal(fcntl(r->to, F_SETFL, O_NONBLOCK), 0);
}

static inline void finish(struct rig *r)
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

static inline void turn(struct rig *r)
{
	static char data[1 << 16];
	ssize_t n;

	(void)uv_run(&r->loop, UV_RUN_NOWAIT);
	while (!r->deaf && r->from >= 0 && (n = read(r->from, data, sizeof(data))) > 0)
		ks_buf_add(&r->got, data, (size_t)n);
}

static inline void say_bytes(struct rig *r, const char *data, size_t len)
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

static inline void say(struct rig *r, const char *text)
{
	say_bytes(r, text, strlen(text));
}

static inline char *next_line(struct rig *r)
{
	char *line = r->got.data ? r->got.data + r->line_at : NULL;
	char *lf = line ? memchr(line, '\n', r->got.len - r->line_at) : NULL;

	if (!lf)
		return NULL;
	*lf = '\0';
	r->line_at += (size_t)(lf - line) + 1;
	return line;
}

#define RIG_PATIENCE_US 60000000 /* a machine may be busy, and valgrind is slow */

/* The next line of the server; valid until the next call. */
static inline const char *hear(struct rig *r)
{
	int64_t end = ks_now_us() + RIG_PATIENCE_US;
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

static inline void expect(struct rig *r, const char *want)
{
	assert_string_equal(hear(r), want);
}

static inline void expect_start(struct rig *r, const char *want)
{
	const char *line = hear(r);

	if (strncmp(line, want, strlen(want)) != 0)
		fail_msg("%.200s does not start with %s", line, want);
}

/* An error reply: its id, number and reason. */
static inline void expect_error(struct rig *r, const char *id, int code, const char *reason)
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

static inline void expect_silence(struct rig *r)
{
	for (int i = 0; i < 20; i++)
		turn(r);
	assert_int_equal(r->got.len, r->line_at);
}

static inline void expect_closed(struct rig *r)
{
	int64_t end = ks_now_us() + RIG_PATIENCE_US;

	while (!r->closed && ks_now_us() < end)
		turn(r);
	assert_int_equal(r->closed, 1);
	for (int i = 0; i < 10; i++)
		turn(r);
	assert_int_equal(r->closed, 1); /* once */
}

static inline void initialize(struct rig *r, const char *more)
{
	char line[512];

	(void)snprintf(line, sizeof(line),
		       "{\"jsonrpc\":\"2.0\",\"id\":\"init\",\"method\":\"initialize\",\"params\":{\"protocolVersion\":1,"
		       "\"client\":{\"name\":\"t\",\"version\":\"1\"}%s}}\n",
		       more);
	say(r, line);
	expect_start(r, "{\"jsonrpc\":\"2.0\",\"id\":\"init\",\"result\":{\"protocolVersion\":1,");
}

static inline void request(struct rig *r, const char *id, const char *method, const char *params)
{
	char line[512];

	(void)snprintf(line, sizeof(line), "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"%s\",\"params\":%s}\n", id, method,
		       params);
	say(r, line);
}

static inline void notify(struct rig *r, const char *method, const char *params)
{
	char line[512];

	(void)snprintf(line, sizeof(line), "{\"jsonrpc\":\"2.0\",\"method\":\"%s\",\"params\":%s}\n", method, params);
	say(r, line);
}

static inline void wait_pending(struct rig *r, size_t count)
{
	for (int i = 0; i < 1000 && r->pending_count < count; i++)
		turn(r);
	assert_int_equal(r->pending_count, count);
}

static inline void answer(struct ks_request *request, const char *json)
{
	struct ks_buf buf = { 0 };

	ks_buf_str(&buf, json);
	ks_reply(request, &buf);
}

#define ARGV "{\"argv\":[\"true\"]}"
#define PONG(id) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"result\":{}}"
