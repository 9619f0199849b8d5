#include "cli/bridge.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "session/call.h"

#define IDLE_MS 100 /* then text without a marker is a command */
#define MARKER "__LC_SHELL_DONE__"
#define MARKER_BYTES (sizeof(MARKER) - 1 + 32)
#define TEXT_MAX ((size_t)64 << 20) /* of one command */

struct ks_bridge_item {
	struct ks_list node;
	struct ks_buf text;
	char marker[MARKER_BYTES + 1]; /* "": the input had none */
};

static void pump(struct ks_bridge *bridge);

static void finish(struct ks_bridge *bridge, int status)
{
	if (bridge->over)
		return;
	bridge->over = true;
	(void)uv_poll_stop(&bridge->in);
	(void)uv_timer_stop(&bridge->idle);
	(void)uv_timer_stop(&bridge->soon);
	bridge->ended(bridge->arg, status);
}

/* To the program that drives us: it reads, or it is gone, and then so are we. */
static void write_all(struct ks_bridge *bridge, int fd, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, data, len);
		if (n < 0 && errno == EAGAIN) {
			struct pollfd out = { .fd = fd, .events = POLLOUT };
			(void)poll(&out, 1, -1);
		} else if (n < 0 && errno != EINTR) {
			finish(bridge, 125);
			return;
		} else if (n > 0) {
			data += n;
			len -= (size_t)n;
		}
	}
}

__attribute__((format(printf, 2, 3))) static void note(struct ks_bridge *bridge, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	int n = vsnprintf(text, sizeof(text) - 1, format, args);
	va_end(args);
	if (n < 0)
		return;
	size_t len = (size_t)n < sizeof(text) - 2 ? (size_t)n : sizeof(text) - 2;
	text[len++] = '\n';
	write_all(bridge, STDERR_FILENO, text, len);
}

/* ---- one command ---- */

static void free_item(struct ks_bridge_item *item)
{
	ks_buf_free(&item->text);
	free(item);
}

static void on_soon(uv_timer_t *timer)
{
	pump(timer->data);
}

/* The item is done: its marker with the status, and the next one, but not from within the call that ends. */
static void item_done(struct ks_bridge *bridge)
{
	struct ks_bridge_item *item = KS_TAKE_PTR(bridge->running);
	char line[MARKER_BYTES + 16];

	if (item->marker[0]) {
		int n = snprintf(line, sizeof(line), "%s%s %d\n", bridge->midline ? "\n" : "", item->marker, bridge->status);
		bridge->midline = false;
		write_all(bridge, STDOUT_FILENO, line, (size_t)n);
	}
	free_item(item);
	if (!bridge->over)
		(void)uv_timer_start(&bridge->soon, on_soon, 0, 0);
}

static void on_started(void *arg)
{
	(void)arg;
}

static void on_output(void *arg, enum ks_output which, const void *data, size_t len)
{
	struct ks_bridge *bridge = arg;

	if (len > 0 && which == KS_STDOUT)
		bridge->midline = ((const char *)data)[len - 1] != '\n';
	write_all(bridge, which == KS_STDOUT ? STDOUT_FILENO : STDERR_FILENO, data, len);
}

static size_t on_room(void *arg)
{
	(void)arg;
	return SIZE_MAX;
}

static void on_done(void *arg)
{
	struct ks_bridge *bridge = arg;
	struct ks_call *call = KS_TAKE_PTR(bridge->call);
	const struct ks_outcome *outcome = &call->outcome;

	bridge->status = outcome->exit_code;
	if (outcome->fault)
		note(bridge, "kern-sidecar: %s", outcome->message);
	if (call->cell_status == KS_CELL_DEAD)
		note(bridge, "kern-sidecar: the shell has ended, and its state with it; the next command has a new one");
	ks_call_finish(call);
	item_done(bridge);
}

static void on_failed(void *arg, const struct ks_error *err)
{
	struct ks_bridge *bridge = arg;

	bridge->call = NULL;
	bridge->status = 125;
	note(bridge, "kern-sidecar: %s", err->text);
	item_done(bridge);
}

static const struct ks_call_ops ops = { on_started, on_output, NULL, on_room, NULL, on_done, on_failed };

static bool blank(const struct ks_buf *text)
{
	return text->len == 0 || strspn(text->data, " \t\r\n") == text->len;
}

static void run(struct ks_bridge *bridge, struct ks_bridge_item *item)
{
	struct ks_error err;

	bridge->running = item;
	if (blank(&item->text)) {
		item_done(bridge);
		return;
	}
	bridge->params = (struct ks_run_params)KS_RUN_PARAMS_ABSENT;
	bridge->params.max_output_bytes = 1; /* nobody asks for it later */
	bridge->params.track_files = 0;
	if (ks_call_new_cell(bridge->shell, &bridge->params, item->text.data, item->text.len, &ops, bridge, &bridge->call, &err) < 0)
		on_failed(bridge, &err);
	else
		ks_calls_start_queued(bridge->local->core);
}

static void on_restarted(void *arg, struct ks_kernel *shell, const struct ks_error *err)
{
	struct ks_bridge *bridge = arg;

	bridge->starting = false;
	if (bridge->over)
		return;
	if (!shell) {
		note(bridge, "kern-sidecar: no new shell: %s", err->text);
		finish(bridge, 125);
		return;
	}
	pump(bridge);
}

/* The next item, when nothing runs and there is a shell for it. */
static void pump(struct ks_bridge *bridge)
{
	struct ks_error err;

	if (bridge->over || bridge->running || bridge->starting)
		return;
	if (ks_list_empty(&bridge->items)) {
		if (bridge->eof)
			finish(bridge, bridge->status);
		return;
	}
	if (!bridge->shell->host) {
		bridge->starting = true;
		if (ks_kernel_restart(bridge->shell, on_restarted, bridge, &err) < 0)
			on_restarted(bridge, NULL, &err);
		return;
	}
	struct ks_bridge_item *item = KS_ENTRY(bridge->items.next, struct ks_bridge_item, node);
	ks_list_remove(&item->node);
	run(bridge, item);
}

/* ---- the input ---- */

static bool is_marker(const char *line, size_t len, char ret[static MARKER_BYTES + 1])
{
	static const char before[] = "printf '" MARKER, after[] = " %s\\n' $?";
	const size_t hex = 32, head = sizeof(before) - 1, tail = sizeof(after) - 1;

	if (len != head + hex + tail || memcmp(line, before, head) != 0 || memcmp(line + head + hex, after, tail) != 0 ||
	    strspn(line + head, "0123456789abcdef") != hex)
		return false;
	memcpy(ret, line + strlen("printf '"), MARKER_BYTES);
	ret[MARKER_BYTES] = '\0';
	return true;
}

/* The first `len` bytes of what is pending, and then `skip` are gone. */
static void add_item(struct ks_bridge *bridge, size_t len, size_t skip, const char *marker)
{
	struct ks_bridge_item *item = calloc(1, sizeof(*item));

	if (!item)
		abort();
	ks_buf_add(&item->text, bridge->pending.data, len);
	(void)snprintf(item->marker, sizeof(item->marker), "%s", marker);
	ks_buf_drop(&bridge->pending, len + skip);
	bridge->scanned = 0;
	ks_list_append(&bridge->items, &item->node);
}

static void take_lines(struct ks_bridge *bridge)
{
	struct ks_buf *pending = &bridge->pending;
	char marker[MARKER_BYTES + 1];

	for (;;) {
		const char *line = pending->data + bridge->scanned;
		const char *end = pending->len > bridge->scanned ? memchr(line, '\n', pending->len - bridge->scanned) : NULL;
		if (!end)
			return;
		const size_t len = (size_t)(end - line);
		if (is_marker(line, len, marker))
			add_item(bridge, bridge->scanned, len + 1, marker);
		else
			bridge->scanned += len + 1;
	}
}

/* "exit" or "exit N", alone: what ends a shell. */
static bool is_exit(const struct ks_buf *pending, int *status)
{
	char text[16] = "", rest = 0;
	int number;

	if (pending->len >= sizeof(text))
		return false;
	memcpy(text, pending->data, pending->len);
	text[pending->len] = '\0';
	const int n = sscanf(text, "exit %d %c", &number, &rest);
	if (n == 1)
		*status = number & 0xff;
	return n == 1 || strcmp(text, "exit\n") == 0 || strcmp(text, "exit") == 0;
}

static void on_idle(uv_timer_t *timer)
{
	struct ks_bridge *bridge = timer->data;

	if (bridge->pending.len == 0)
		return;
	if (is_exit(&bridge->pending, &bridge->status)) {
		finish(bridge, bridge->status);
		return;
	}
	add_item(bridge, bridge->pending.len, 0, "");
	pump(bridge);
}

/* A program that has gone away does not wait for the end of its command; a file of commands does. */
static void on_eof(struct ks_bridge *bridge)
{
	bridge->eof = true;
	(void)uv_poll_stop(&bridge->in);
	(void)uv_timer_stop(&bridge->idle);
	if (bridge->running && bridge->running->marker[0]) {
		finish(bridge, bridge->status);
		return;
	}
	on_idle(&bridge->idle);
	pump(bridge);
}

static void on_input(uv_poll_t *poll_handle, int status, int events)
{
	static char buffer[65536];
	struct ks_bridge *bridge = poll_handle->data;

	(void)status;
	(void)events;
	ssize_t n = read(STDIN_FILENO, buffer, sizeof(buffer));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		on_eof(bridge);
		return;
	}
	ks_buf_add(&bridge->pending, buffer, (size_t)n);
	if (bridge->pending.failed || bridge->pending.len > TEXT_MAX) {
		note(bridge, "kern-sidecar: a command of more than %zu bytes", TEXT_MAX);
		finish(bridge, 125);
		return;
	}
	take_lines(bridge);
	(void)uv_timer_start(&bridge->idle, on_idle, IDLE_MS, 0);
	pump(bridge);
}

void ks_bridge_start(struct ks_bridge *bridge)
{
	uv_loop_t *loop = &bridge->local->loop;

	ks_list_init(&bridge->items);
	(void)uv_timer_init(loop, &bridge->idle);
	(void)uv_timer_init(loop, &bridge->soon);
	bridge->idle.data = bridge->soon.data = bridge->in.data = bridge;
	if (uv_poll_init(loop, &bridge->in, STDIN_FILENO) < 0) { /* a file: it is all there */
		while (!bridge->over && !bridge->eof)
			on_input(&bridge->in, 0, 0);
		return;
	}
	(void)uv_poll_start(&bridge->in, UV_READABLE | UV_DISCONNECT, on_input);
}
