#include "server.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "proto/write.h"
#include "server_private.h"

#define READ_BYTES ((size_t)64 << 10)	  /* one read */
#define READ_TURN_BYTES ((size_t)256 << 10) /* then the rest of the loop has its turn */
#define WRITE_TURN_BYTES ((size_t)1 << 20)
#define LAST_WAIT_MS 100 /* at the end for a client that reads nothing */
#define LAST_US 2000000	 /* and for one that reads slowly */

/* ---- closing ---- */

static void stop_reading(struct ks_server *server)
{
	if (server->in.ready_fd >= 0)
		(void)uv_poll_stop(&server->in_poll);
	(void)uv_idle_stop(&server->in_idle);
}

static void on_closed_timer(uv_timer_t *timer)
{
	struct ks_server *server = timer->data;

	if (server->on_closed)
		server->on_closed(server->closed_arg);
}

/* From the loop, not from here: the caller may be deep inside a handler. */
void ks_server_close_soon(struct ks_server *server)
{
	if (server->closed)
		return;
	server->closed = true;
	stop_reading(server);
	(void)uv_timer_start(&server->closed_timer, on_closed_timer, 0, 0);
}

void ks_server_on_closed(struct ks_server *server, void (*fn)(void *arg), void *arg)
{
	server->on_closed = fn;
	server->closed_arg = arg;
}

/* ---- reading ---- */

static void on_line(void *arg, const char *line, size_t len)
{
	struct ks_server *server = arg;

	if (!server->face)
		ks_dispatch_line(server, line, len);
	else if (!server->closed)
		server->face->line(server->face_arg, line, len);
}

static void on_too_long(void *arg)
{
	struct ks_server *server = arg;

	if (!server->face)
		ks_dispatch_too_long(server);
	else if (!server->closed)
		server->face->too_long(server->face_arg);
}

static void read_turn(struct ks_server *server)
{
	char data[READ_BYTES];
	size_t left = READ_TURN_BYTES;

	while (left > 0 && !server->closed) {
		ssize_t n = ks_channel_read(&server->in, data, sizeof(data));
		if (n == -EAGAIN)
			return;
		if (n <= 0) {
			if (n < 0)
				ks_log(KS_LOG_INFO, "stdin_failed", "reading requests: %s", strerror((int)-n));
			ks_lines_end(&server->lines);
			ks_server_close_soon(server);
			return;
		}
		ks_lines_feed(&server->lines, data, (size_t)n);
		if ((size_t)n < sizeof(data))
			return; /* that was all; the loop says when there is more */
		left -= left < (size_t)n ? left : (size_t)n;
	}
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	read_turn(poll->data);
}

static void on_read_idle(uv_idle_t *idle)
{
	read_turn(idle->data);
}

/* ---- writing ---- */

static ssize_t write_out(void *arg, const struct ks_piece *pieces, size_t count)
{
	struct ks_server *server = arg;
	struct iovec parts[KS_LINES_TOGETHER];

	for (size_t i = 0; i < count; i++) {
		parts[i].iov_len = pieces[i].len;
		memcpy(&parts[i].iov_base, &pieces[i].data, sizeof(parts[i].iov_base)); /* writev(2) only reads */
	}
	return ks_channel_write(&server->out, parts, count);
}

static void on_lost(void *arg)
{
	struct ks_server *server = arg;

	ks_log(KS_LOG_INFO, "client_lost", "the client's end of stdout is closed, or it does not read its replies");
	ks_server_close_soon(server);
}

static void on_writable(uv_poll_t *poll, int status, int events);

static void write_turn(struct ks_server *server)
{
	bool polled = server->out.ready_fd >= 0; /* what cannot be polled always has room */
	bool more = ks_outgoing_flush(&server->outgoing, polled ? WRITE_TURN_BYTES : SIZE_MAX);

	if (!polled || server->freed || more == server->out_waiting)
		return;
	server->out_waiting = more;
	if (more)
		(void)uv_poll_start(&server->out_poll, UV_READABLE, on_writable);
	else
		(void)uv_poll_stop(&server->out_poll);
}

static void on_writable(uv_poll_t *poll, int status, int events)
{
	struct ks_server *server = poll->data;

	(void)status;
	(void)events;
	write_turn(server);
}

void ks_server_write(struct ks_server *server)
{
	if (!server->out_waiting)
		write_turn(server);
}

static void on_patience(uv_timer_t *timer)
{
	ks_server_write(timer->data);
}

/* Everything that was queued in this turn of the loop goes out before it sleeps. */
static void on_prepare(uv_prepare_t *prepare)
{
	struct ks_server *server = prepare->data;

	ks_dispatch_deliver(server);
	if (server->outgoing.urgent || ks_outgoing_empty(&server->outgoing))
		ks_server_write(server);
	else if (!uv_is_active((uv_handle_t *)&server->patience_timer))
		(void)uv_timer_start(&server->patience_timer, on_patience, KS_PATIENCE_MS, 0);
}

/* ---- streams ---- */

static void on_stream_timer(uv_timer_t *timer)
{
	struct ks_server *server = timer->data;

	server->alarm_us = 0;
	ks_streams_tick(&server->streams, ks_now_us());
}

static void on_alarm(void *arg, int64_t at_us)
{
	struct ks_server *server = arg;
	int64_t left_us = at_us - ks_now_us();

	if (server->freed || (server->alarm_us && server->alarm_us <= at_us))
		return;
	server->alarm_us = at_us;
	uv_update_time(server->loop);
	(void)uv_timer_start(&server->stream_timer, on_stream_timer,
			     left_us > 0 ? (uint64_t)((left_us + 999) / 1000) : 0, 0);
}

/* ---- $/log ---- */

/* What happens on the way of a log line to the client must not make another one. */
static void on_log(void *arg, enum ks_log_level level, const char *code, const char *text)
{
	struct ks_server *server = arg;
	struct ks_buf params = { 0 };

	if (server->logging || server->freed || server->phase == KS_PHASE_NEW)
		return;
	server->logging = true;
	ks_write_open(&params, '{');
	ks_write_key_string(&params, "level", ks_log_level_name(level));
	ks_write_key_string(&params, "code", code);
	ks_write_key_string(&params, "message", text);
	ks_write_close(&params, '}');
	ks_notify(server, KS_LANE_EVENT, KS_LINE_DROPPABLE, "$/log", &params);
	server->logging = false;
}

/* ---- the host process ---- */

static void on_host_gone(uv_poll_t *poll, int status, int events)
{
	struct ks_server *server = poll->data;

	(void)status;
	(void)events;
	(void)uv_poll_stop(poll);
	ks_log(KS_LOG_INFO, "host_gone", "the process that initialize named has ended");
	ks_server_close_soon(server);
}

void ks_server_watch_host(struct ks_server *server, int64_t pid)
{
	/* CLOEXEC is always set on a pidfd (pidfd_open(2)). */
	int fd = pid > 0 && pid <= INT32_MAX ? (int)syscall(SYS_pidfd_open, (pid_t)pid, 0) : (errno = ESRCH, -1);

	if (fd < 0 && errno == ESRCH) {
		ks_log(KS_LOG_INFO, "host_gone", "the process %lld that initialize named does not exist",
		       (long long)pid);
		ks_server_close_soon(server);
		return;
	}
	if (fd < 0 || uv_poll_init(server->loop, &server->host_poll, fd) < 0) {
		ks_log(KS_LOG_WARN, "host_unwatched", "cannot watch process %lld; only the end of stdin will be noticed",
		       (long long)pid);
		ks_close(&fd);
		return;
	}
	server->open_handles++;
	server->host_fd = fd;
	server->host_poll.data = server;
	(void)uv_poll_start(&server->host_poll, UV_READABLE, on_host_gone);
	uv_unref((uv_handle_t *)&server->host_poll);
}

/* ---- life ---- */

static void init_handles(struct ks_server *server)
{
	(void)uv_idle_init(server->loop, &server->in_idle);
	(void)uv_prepare_init(server->loop, &server->prepare);
	(void)uv_timer_init(server->loop, &server->stream_timer);
	(void)uv_timer_init(server->loop, &server->closed_timer);
	(void)uv_timer_init(server->loop, &server->patience_timer);
	server->in_idle.data = server->prepare.data = server;
	server->stream_timer.data = server->closed_timer.data = server->patience_timer.data = server;
	server->open_handles = 5;
	(void)uv_prepare_start(&server->prepare, on_prepare);
	uv_unref((uv_handle_t *)&server->prepare);
}

static int init_poll(struct ks_server *server, uv_poll_t *poll, const struct ks_channel *channel, struct ks_error *err)
{
	if (channel->ready_fd < 0)
		return 0;
	int failed = uv_poll_init(server->loop, poll, channel->ready_fd);
	if (failed)
		return ks_fail_errno(err, KS_E_INTERNAL, -failed, "cannot watch the protocol's descriptor");
	poll->data = server;
	server->open_handles++;
	return 0;
}

static void init_parts(struct ks_server *server)
{
	server->max_line = server->streams.max_line = KS_LINE_OUT_DEFAULT;
	server->limits = (struct ks_limits){ .runs = 64, .queued = 1024 };
	server->lines = (struct ks_lines){ .max = KS_LINE_IN_MAX, .line = on_line, .too_long = on_too_long, .arg = server };
	ks_outgoing_init(&server->outgoing);
	server->outgoing.write = write_out;
	server->outgoing.lost = on_lost;
	server->outgoing.arg = server;
	ks_streams_init(&server->streams);
	server->streams.out = &server->outgoing;
	server->streams.alarm = on_alarm;
	server->streams.arg = server;
	ks_list_init(&server->answers);
	for (size_t i = 0; i < KS_ID_BUCKETS; i++)
		ks_list_init(&server->live[i]);
}

int ks_server_new(uv_loop_t *loop, int fd_in, int fd_out, struct ks_server **ret, struct ks_error *err)
{
	struct ks_server *server = calloc(1, sizeof(*server));
	if (!server) {
		ks_close(&fd_in);
		ks_close(&fd_out);
		return ks_fail(err, KS_E_INTERNAL, "no memory for the protocol's server");
	}
	server->loop = loop;
	server->host_fd = -1;
	init_parts(server);
	init_handles(server);
	int failed_in = ks_channel_open(&server->in, fd_in, false, err);
	int failed_out = ks_channel_open(&server->out, fd_out, true, err);
	if (failed_in || failed_out || init_poll(server, &server->in_poll, &server->in, err) < 0 ||
	    init_poll(server, &server->out_poll, &server->out, err) < 0) {
		ks_server_free(server);
		return -1;
	}
	if (server->in.ready_fd >= 0)
		(void)uv_poll_start(&server->in_poll, UV_READABLE, on_readable);
	else
		(void)uv_idle_start(&server->in_idle, on_read_idle);
	ks_log_set_sink(on_log, server);
	*ret = server;
	return 0;
}

static void on_handle_closed(uv_handle_t *handle)
{
	struct ks_server *server = handle->data;

	if (--server->open_handles > 0)
		return;
	ks_buf_free(&server->lines.held);
	free(server);
}

/* Handles that were never initialised have no data. */
static void close_handle(uv_handle_t *handle)
{
	if (handle->data)
		uv_close(handle, on_handle_closed);
}

/* The last lines, whole, for a client that reads them. */
static void write_rest(struct ks_server *server)
{
	struct pollfd room = { .fd = server->out.fd, .events = POLLOUT };
	const int64_t end = ks_now_us() + LAST_US;

	while (ks_outgoing_flush(&server->outgoing, SIZE_MAX) && ks_now_us() < end && poll(&room, 1, LAST_WAIT_MS) > 0)
		;
}

void ks_server_free(struct ks_server *server)
{
	if (!server || server->freed)
		return;
	write_rest(server);
	server->closed = server->freed = true;
	ks_log_set_sink(NULL, NULL);
	ks_outgoing_free(&server->outgoing);
	ks_dispatch_free(server);
	close_handle((uv_handle_t *)&server->in_poll);
	close_handle((uv_handle_t *)&server->out_poll);
	close_handle((uv_handle_t *)&server->host_poll);
	close_handle((uv_handle_t *)&server->in_idle);
	close_handle((uv_handle_t *)&server->prepare);
	close_handle((uv_handle_t *)&server->stream_timer);
	close_handle((uv_handle_t *)&server->closed_timer);
	close_handle((uv_handle_t *)&server->patience_timer);
	/* libuv has let go of them in uv_close(). */
	ks_channel_close(&server->in);
	ks_channel_close(&server->out);
	ks_close(&server->host_fd);
}

void ks_server_set_face(struct ks_server *server, const struct ks_face *face, void *arg, size_t max_line)
{
	server->face = face;
	server->face_arg = arg;
	server->phase = KS_PHASE_READY;
	server->max_line = server->streams.max_line = max_line;
	server->streams.silent = true;
}

size_t ks_server_max_line(const struct ks_server *server)
{
	return server->max_line;
}

struct ks_streams *ks_server_streams(struct ks_server *server)
{
	return &server->streams;
}

const struct ks_outgoing *ks_server_outgoing(const struct ks_server *server)
{
	return &server->outgoing;
}

size_t ks_server_live(const struct ks_server *server)
{
	return server->live_count;
}

bool ks_server_initialized(const struct ks_server *server)
{
	return server->phase != KS_PHASE_NEW;
}

const struct ks_limits *ks_server_limits(const struct ks_server *server)
{
	return &server->limits;
}
