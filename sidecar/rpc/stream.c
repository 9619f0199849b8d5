#include "stream.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "proto/write.h"
#include "session/text.h"

/* More than a run/output line needs around its text or base64, with a handle of 64 bytes and numbers of 20 digits. */
#define OVERHEAD ((size_t)256)

struct part {
	struct ks_buf held; /* fed and not in a line yet */
	uint64_t offset;    /* of its first byte, in the box's output */
	int64_t first_us;   /* when that byte came */
};

/* A display that waits for bytes that were fed before it. */
struct waiting_display {
	struct ks_list node;
	struct ks_buf members;
	uint64_t at[2]; /* of each stream */
};

struct ks_stream {
	struct ks_streams *streams;
	struct ks_list node; /* in streams->waiting while due_us is set */
	struct ks_flow *flow;
	char *run_id;
	int mode, encoding;
	uint64_t seq;
	size_t credit; /* raw bytes that may still be sent */
	struct part parts[2];
	struct ks_list displays; /* struct waiting_display */
	int64_t due_us;	   /* next flush; 0: none */
	int64_t finish_us; /* when waiting for credit ends; 0: not finishing */
	bool ended;
	bool starved; /* the caller was told that there is no room */
	void (*room)(void *arg);
	void *room_arg;
	void (*done)(void *arg);
	void *done_arg;
};

void ks_streams_init(struct ks_streams *streams)
{
	ks_list_init(&streams->waiting);
}

static void wait_until(struct ks_stream *stream, int64_t at_us)
{
	if (stream->due_us && stream->due_us <= at_us)
		return;
	stream->due_us = at_us;
	ks_list_remove(&stream->node);
	ks_list_append(&stream->streams->waiting, &stream->node);
	stream->streams->alarm(stream->streams->arg, at_us);
}

static void wait_no_more(struct ks_stream *stream)
{
	stream->due_us = 0;
	ks_list_remove(&stream->node);
}

static bool output_is_busy(const struct ks_stream *stream)
{
	return stream->streams->out->lane_bytes[KS_LANE_OUTPUT] > KS_OUTPUT_BUSY;
}

static void check_room(struct ks_stream *stream)
{
	if (!stream->starved || stream->ended)
		return;
	if (ks_stream_room(stream) == 0)
		return;
	stream->starved = false;
	if (stream->room)
		stream->room(stream->room_arg);
}

static void on_drained(void *arg);

struct ks_stream *ks_stream_new(struct ks_streams *streams, const struct ks_stream_options *options,
				struct ks_error *err)
{
	struct ks_stream *stream = calloc(1, sizeof(*stream));
	if (!stream)
		goto no_memory;
	stream->run_id = strdup(options->run_id);
	stream->flow = ks_flow_new();
	if (!stream->run_id || !stream->flow)
		goto no_memory;
	stream->streams = streams;
	ks_list_init(&stream->node);
	ks_list_init(&stream->displays);
	stream->mode = options->mode;
	stream->encoding = options->encoding;
	stream->room = options->room;
	stream->room_arg = options->arg;
	stream->credit = KS_STREAM_WINDOW;
	stream->flow->drained = on_drained;
	stream->flow->arg = stream;
	return stream;
no_memory:
	if (stream) {
		free(stream->run_id);
		ks_flow_release(stream->flow);
		free(stream);
	}
	(void)ks_fail(err, KS_E_INTERNAL, "no memory for the run's output stream");
	return NULL;
}

static void drop_displays(struct ks_stream *stream)
{
	while (!ks_list_empty(&stream->displays)) {
		struct waiting_display *display = KS_ENTRY(stream->displays.next, struct waiting_display, node);
		ks_list_remove(&display->node);
		ks_buf_free(&display->members);
		free(display);
	}
}

void ks_stream_free(struct ks_stream *stream)
{
	if (!stream)
		return;
	ks_list_remove(&stream->node);
	drop_displays(stream);
	ks_flow_release(stream->flow);
	ks_buf_free(&stream->parts[0].held);
	ks_buf_free(&stream->parts[1].held);
	free(stream->run_id);
	free(stream);
}

struct ks_flow *ks_stream_flow(struct ks_stream *stream)
{
	return stream->flow;
}

/* `line` lacks its last bracket. False: the line was not queued. */
static bool push(struct ks_stream *stream, enum ks_line_kind kind, struct ks_buf *line)
{
	ks_buf_char(line, '}');
	if (line->failed)
		return false;
	struct ks_piece piece = { line->data, line->len };
	return ks_outgoing_push(stream->streams->out, KS_LANE_OUTPUT, stream->flow, kind, &piece, 1) == 0;
}

void ks_stream_started(struct ks_stream *stream, const char *request_id, const char *session_id, const char *kernel_id,
		       const char *shell_id)
{
	KS_AUTOBUF struct ks_buf line = { 0 };

	if (stream->streams->silent)
		return;
	ks_buf_str(&line, "{\"jsonrpc\":\"2.0\",\"method\":\"run/started\",\"params\":");
	ks_write_open(&line, '{');
	ks_write_key_string(&line, "runId", stream->run_id);
	ks_write_key(&line, "id");
	ks_write_raw(&line, request_id, strlen(request_id));
	ks_write_key_string(&line, "sessionId", session_id);
	ks_write_key_string(&line, "kernelId", kernel_id);
	ks_write_key_string(&line, "shellId", shell_id);
	ks_write_close(&line, '}');
	(void)push(stream, KS_LINE_PATIENT, &line);
}

static void send_chunk(struct ks_stream *stream, enum ks_output which, const char *data, size_t len, bool base64)
{
	KS_AUTOBUF struct ks_buf line = { 0 };
	bool live = stream->mode == KS_STREAM_LIVE;

	if (live && (stream->flow->bytes >= KS_STREAM_WINDOW || output_is_busy(stream))) {
		stream->streams->chunks_dropped++;
		return;
	}
	ks_buf_str(&line, "{\"jsonrpc\":\"2.0\",\"method\":\"run/output\",\"params\":");
	ks_write_open(&line, '{');
	ks_write_key_string(&line, "runId", stream->run_id);
	ks_write_key_int(&line, "seq", (int64_t)stream->seq + 1);
	ks_write_key_string(&line, "stream", which == KS_STDOUT ? "stdout" : "stderr");
	ks_write_key_int(&line, "offset", (int64_t)stream->parts[which].offset);
	ks_write_key_int(&line, "bytes", (int64_t)len);
	ks_write_key(&line, base64 ? "base64" : "text");
	if (base64)
		ks_write_base64(&line, data, len);
	else
		ks_write_utf8_lossy(&line, data, len);
	ks_write_close(&line, '}');
	if ((live && stream->flow->bytes + line.len + 2 > KS_STREAM_WINDOW) || !push(stream, KS_LINE_NOTE, &line))
		stream->streams->chunks_dropped++;
	else
		stream->seq++;
}

static void send_display(struct ks_stream *stream, struct ks_buf *members)
{
	KS_AUTOBUF struct ks_buf line = { 0 };
	bool live = stream->mode == KS_STREAM_LIVE;

	ks_buf_str(&line, "{\"jsonrpc\":\"2.0\",\"method\":\"run/display\",\"params\":");
	ks_write_open(&line, '{');
	ks_write_key_string(&line, "runId", stream->run_id);
	ks_write_key_int(&line, "seq", (int64_t)stream->seq + 1);
	ks_buf_char(&line, ',');
	ks_buf_add(&line, members->data, members->len);
	ks_write_close(&line, '}');
	ks_buf_free(members);
	if ((live && (stream->flow->bytes + line.len + 2 > KS_STREAM_WINDOW || output_is_busy(stream))) ||
	    !push(stream, KS_LINE_NOTE, &line))
		stream->streams->chunks_dropped++;
	else
		stream->seq++;
}

/* How much of `data` goes into the next line, and in which form. 0: wait for more bytes or for credit. */
static size_t next_chunk(const struct ks_stream *stream, const char *data, size_t len, bool last, bool *ret_base64)
{
	size_t budget = stream->streams->max_line - OVERHEAD;
	size_t limit = len < KS_STREAM_CHUNK ? len : KS_STREAM_CHUNK;

	if (stream->mode == KS_STREAM_LOSSLESS) {
		if (limit > stream->credit)
			limit = stream->credit;
		if (output_is_busy(stream)) {
			size_t queued = stream->flow->bytes;
			size_t window = queued < KS_STREAM_WINDOW_BUSY ? KS_STREAM_WINDOW_BUSY - queued : 0;
			limit = limit < window ? limit : window;
		}
	}
	*ret_base64 = stream->encoding == KS_ENCODING_BASE64;
	if (*ret_base64)
		return ks_base64_fit(limit, budget);
	size_t n = ks_text_fit(data, limit, budget);
	if (n == 0 && last && limit == len)
		n = len; /* the beginning of a code point that never came whole */
	if (stream->encoding == KS_ENCODING_AUTO && !ks_utf8_valid(data, n)) {
		*ret_base64 = true;
		size_t fit = ks_base64_fit(n, budget);
		n = fit < n ? ks_utf8_complete_prefix(data, fit) : n;
	}
	return n;
}

static struct waiting_display *next_display(const struct ks_stream *stream)
{
	return ks_list_empty(&stream->displays) ? NULL : KS_ENTRY(stream->displays.next, struct waiting_display, node);
}

/* Makes lines of what is held: of all of it, or only of full chunks. */
static void flush_part(struct ks_stream *stream, enum ks_output which, bool all)
{
	struct part *part = &stream->parts[which];
	const struct waiting_display *next = next_display(stream);
	/* what was fed behind a display comes behind it */
	const size_t limit =
		next && next->at[which] < part->offset + part->held.len ? (size_t)(next->at[which] - part->offset) : part->held.len;
	size_t at = 0;

	while (limit > at && (all || limit - at >= KS_STREAM_CHUNK)) {
		bool base64;
		size_t n = next_chunk(stream, part->held.data + at, limit - at, stream->ended || next, &base64);
		if (n == 0)
			break;
		send_chunk(stream, which, part->held.data + at, n, base64);
		if (stream->mode == KS_STREAM_LOSSLESS)
			stream->credit -= n;
		part->offset += n;
		at += n;
	}
	if (at == 0)
		return;
	ks_buf_drop(&part->held, at);
	part->first_us = ks_now_us();
	if (part->held.len == 0 && part->held.cap > 4 * KS_STREAM_CHUNK)
		ks_buf_free(&part->held);
}

static size_t held_bytes(const struct ks_stream *stream)
{
	return stream->parts[0].held.len + stream->parts[1].held.len;
}

/* The part whose first byte came first goes first; a display when all that was fed before it has gone. */
static void flush_all(struct ks_stream *stream)
{
	struct part *parts = stream->parts;
	enum ks_output first = parts[KS_STDERR].held.len > 0 && (parts[KS_STDOUT].held.len == 0 ||
			       parts[KS_STDERR].first_us < parts[KS_STDOUT].first_us) ? KS_STDERR : KS_STDOUT;

	for (;;) {
		flush_part(stream, first, true);
		flush_part(stream, first == KS_STDOUT ? KS_STDERR : KS_STDOUT, true);
		struct waiting_display *display = next_display(stream);
		if (!display || parts[0].offset < display->at[0] || parts[1].offset < display->at[1])
			return;
		ks_list_remove(&display->node);
		send_display(stream, &display->members);
		free(display);
	}
}


/* Gives up the first bytes of a part; the next chunk's offset shows it. */
static void skip(struct part *part, size_t count)
{
	if (count > part->held.len)
		count = part->held.len;
	for (int i = 0; i < 3 && count < part->held.len && (part->held.data[count] & 0xc0) == 0x80; i++)
		count++; /* not into the middle of a code point */
	part->offset += count;
	ks_buf_drop(&part->held, count);
}

void ks_stream_input_wanted(struct ks_stream *stream, const char *prompt, size_t len, bool password)
{
	KS_AUTOBUF struct ks_buf line = { 0 };

	flush_all(stream);
	ks_buf_str(&line, "{\"jsonrpc\":\"2.0\",\"method\":\"run/inputWanted\",\"params\":");
	ks_write_open(&line, '{');
	ks_write_key_string(&line, "runId", stream->run_id);
	ks_write_key(&line, "prompt");
	ks_write_utf8_lossy(&line, prompt, len);
	ks_write_key_bool(&line, "password", password);
	ks_write_close(&line, '}');
	if (stream->ended || stream->flow->bytes + line.len > KS_STREAM_WINDOW || !push(stream, KS_LINE_NOTE, &line))
		stream->streams->chunks_dropped++;
}

void ks_stream_display(struct ks_stream *stream, struct ks_buf *members)
{
	struct waiting_display *display = NULL;

	if (stream->mode != KS_STREAM_OFF && !stream->ended && !members->failed)
		display = calloc(1, sizeof(*display));
	if (!display) {
		ks_buf_free(members);
		return;
	}
	display->members = *members;
	*members = (struct ks_buf){ 0 };
	for (int i = 0; i < 2; i++)
		display->at[i] = stream->parts[i].offset + stream->parts[i].held.len;
	ks_list_append(&stream->displays, &display->node);
	flush_all(stream);
}

void ks_stream_feed(struct ks_stream *stream, enum ks_output which, const void *data, size_t len)
{
	struct part *part = &stream->parts[which];

	if (stream->mode == KS_STREAM_OFF || stream->ended || len == 0)
		return;
	if (part->held.len == 0)
		part->first_us = ks_now_us();
	ks_buf_add(&part->held, data, len);
	if (part->held.failed) {
		part->offset += part->held.len + len;
		ks_buf_free(&part->held);
		return;
	}
	flush_part(stream, which, false);
	if (held_bytes(stream) > KS_STREAM_HELD_MAX)
		skip(part, held_bytes(stream) - KS_STREAM_HELD_MAX);
	if (part->held.len > 0)
		wait_until(stream, part->first_us + KS_STREAM_FLUSH_US);
}

size_t ks_stream_room(struct ks_stream *stream)
{
	if (stream->mode != KS_STREAM_LOSSLESS)
		return SIZE_MAX;
	size_t window = output_is_busy(stream) ? KS_STREAM_WINDOW_BUSY : KS_STREAM_WINDOW;
	size_t held = held_bytes(stream), queued = stream->flow->bytes + held;
	size_t credit = stream->credit > held ? stream->credit - held : 0;
	size_t room = window > queued ? window - queued : 0;

	room = room < credit ? room : credit;
	stream->starved = room == 0;
	return room;
}

/* After the end of the run: all is queued, or it is time to give up. */
static void finish_if_done(struct ks_stream *stream, int64_t now_us)
{
	if (!stream->finish_us)
		return;
	if (held_bytes(stream) > 0 && now_us < stream->finish_us) {
		wait_until(stream, stream->finish_us);
		return;
	}
	wait_no_more(stream);
	stream->finish_us = 0;
	skip(&stream->parts[0], SIZE_MAX);
	skip(&stream->parts[1], SIZE_MAX);
	flush_all(stream);
	if (stream->done)
		stream->done(stream->done_arg); /* may free the stream */
}

/* Lossless only: there is more credit, or lines of this run went out. */
static void go_on(struct ks_stream *stream)
{
	bool alarm_does_it = stream->due_us != 0 && !stream->finish_us;

	if (!alarm_does_it && held_bytes(stream) > 0)
		flush_all(stream);
	check_room(stream);
	finish_if_done(stream, ks_now_us());
}

static void on_drained(void *arg)
{
	struct ks_stream *stream = arg;

	if (stream->mode == KS_STREAM_LOSSLESS)
		go_on(stream);
}

void ks_stream_credit(struct ks_stream *stream, uint64_t bytes)
{
	if (stream->mode != KS_STREAM_LOSSLESS)
		return;
	if (bytes > KS_STREAM_CREDIT_MAX - stream->credit)
		bytes = KS_STREAM_CREDIT_MAX - stream->credit;
	stream->credit += (size_t)bytes;
	go_on(stream);
}

void ks_stream_finish(struct ks_stream *stream, void (*done)(void *arg), void *arg)
{
	if (stream->ended)
		return;
	stream->ended = true;
	stream->done = done;
	stream->done_arg = arg;
	wait_no_more(stream);
	flush_all(stream);
	int64_t now_us = ks_now_us();
	stream->finish_us = now_us + KS_STREAM_FINISH_US;
	finish_if_done(stream, now_us);
}

void ks_streams_tick(struct ks_streams *streams, int64_t now_us)
{
	struct ks_list *node = streams->waiting.next;
	int64_t next_us = 0;

	/* Callbacks may free any stream, so the walk starts anew after each one that was due. */
	while (node != &streams->waiting) {
		struct ks_stream *stream = KS_ENTRY(node, struct ks_stream, node);
		if (stream->due_us > now_us) {
			next_us = next_us && next_us < stream->due_us ? next_us : stream->due_us;
			node = node->next;
			continue;
		}
		wait_no_more(stream);
		flush_all(stream);
		finish_if_done(stream, now_us);
		node = streams->waiting.next;
		next_us = 0;
	}
	if (next_us)
		streams->alarm(streams->arg, next_us);
}
