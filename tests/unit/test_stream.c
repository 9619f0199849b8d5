/* test_stream.c: run/output chunks: where they are cut, what a slow client loses, and what lossless means. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "rpc/stream.h"

struct world {
	struct ks_outgoing out;
	struct ks_streams streams;
	struct ks_stream *stream;
	struct ks_buf got;
	size_t room;	  /* what the client's end takes */
	size_t longest;	  /* line, with its LF */
	int64_t alarm_us; /* the last one that was asked for */
	int rooms, done;
	uint64_t seq, sent[2]; /* as the notifications tell */
	size_t text_lines, base64_lines;
	struct ks_buf bytes[2]; /* what they carried */
};

static ssize_t take(void *arg, const struct ks_piece *pieces, size_t count)
{
	struct world *w = arg;
	size_t taken = 0;

	for (size_t i = 0; i < count && taken < w->room; i++) {
		size_t len = pieces[i].len < w->room - taken ? pieces[i].len : w->room - taken;
		ks_buf_add(&w->got, pieces[i].data, len);
		taken += len;
	}
	w->room -= taken;
	return taken > 0 ? (ssize_t)taken : -EAGAIN;
}

static void on_alarm(void *arg, int64_t at_us)
{
	((struct world *)arg)->alarm_us = at_us;
}

static void on_room(void *arg)
{
	((struct world *)arg)->rooms++;
}

static void on_done(void *arg)
{
	((struct world *)arg)->done++;
}

static void start(struct world *w, int mode, int encoding, size_t max_line)
{
	struct ks_stream_options options = { .mode = mode, .encoding = encoding, .run_id = "r1", .room = on_room, .arg = w };
	struct ks_error err;

	*w = (struct world){ 0 };
	ks_outgoing_init(&w->out);
	w->out.write = take;
	w->out.arg = w;
	ks_streams_init(&w->streams);
	w->streams.out = &w->out;
	w->streams.max_line = max_line;
	w->streams.alarm = on_alarm;
	w->streams.arg = w;
	w->stream = ks_stream_new(&w->streams, &options, &err);
	assert_non_null(w->stream);
}

static void end(struct world *w)
{
	ks_stream_free(w->stream);
	ks_outgoing_free(&w->out);
	ks_buf_free(&w->got);
	ks_buf_free(&w->bytes[0]);
	ks_buf_free(&w->bytes[1]);
}

static struct json_object *member(struct json_object *object, const char *name)
{
	struct json_object *value;

	return json_object_object_get_ex(object, name, &value) ? value : NULL;
}

static void add_base64(struct ks_buf *to, const char *text)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	unsigned bits = 0, value = 0;

	for (; *text && *text != '='; text++) {
		const char *at = strchr(digits, *text);
		assert_non_null(at);
		value = value << 6 | (unsigned)(at - digits);
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			ks_buf_char(to, (char)(value >> bits & 0xff));
		}
	}
}

/* Checks one run/output line against what came before it, and keeps its bytes. */
static void check_line(struct world *w, const char *line)
{
	struct json_object *root = json_tokener_parse(line), *params = member(root, "params");

	assert_non_null(params);
	assert_string_equal(json_object_get_string(member(root, "method")), "run/output");
	assert_string_equal(json_object_get_string(member(params, "runId")), "r1");
	assert_int_equal(json_object_get_int64(member(params, "seq")), w->seq + 1);
	w->seq++;
	bool is_err = strcmp(json_object_get_string(member(params, "stream")), "stderr") == 0;
	uint64_t offset = (uint64_t)json_object_get_int64(member(params, "offset"));
	uint64_t bytes = (uint64_t)json_object_get_int64(member(params, "bytes"));
	assert_true(offset >= w->sent[is_err]);
	assert_in_range(bytes, 1, KS_STREAM_CHUNK);
	w->sent[is_err] = offset + bytes;
	struct json_object *text = member(params, "text"), *base64 = member(params, "base64");
	assert_true(!text != !base64);
	if (text) {
		ks_buf_add(&w->bytes[is_err], json_object_get_string(text), (size_t)json_object_get_string_len(text));
		w->text_lines++;
	} else {
		size_t before = w->bytes[is_err].len;
		add_base64(&w->bytes[is_err], json_object_get_string(base64));
		assert_int_equal(w->bytes[is_err].len - before, bytes);
		w->base64_lines++;
	}
	json_object_put(root);
}

/* The client reads all that is queued. */
static void read_all(struct world *w)
{
	w->room = SIZE_MAX;
	while (ks_outgoing_flush(&w->out, SIZE_MAX))
		;
	w->room = 0;
	char *line = w->got.data, *lf;
	for (size_t left = w->got.len; left > 0 && (lf = memchr(line, '\n', left)); line = lf + 1) {
		*lf = '\0';
		size_t len = (size_t)(lf - line) + 1;
		w->longest = len > w->longest ? len : w->longest;
		left -= len;
		if (*line == '{') /* else what a test put in between */
			check_line(w, line);
	}
	ks_buf_clear(&w->got);
}

static void tick(struct world *w)
{
	ks_streams_tick(&w->streams, w->alarm_us);
}

static void feed(struct world *w, enum ks_output which, const char *text)
{
	ks_stream_feed(w->stream, which, text, strlen(text));
}

static void assert_bytes(const struct ks_buf *buf, const char *want, size_t len)
{
	assert_int_equal(buf->len, len);
	assert_memory_equal(buf->data, want, len);
}

static void test_exact_lines(void **state)
{
	(void)state;
	struct world w;

	start(&w, KS_STREAM_LIVE, KS_ENCODING_UTF8, 32768);
	ks_stream_started(w.stream, "\"id 1\"", "s1", NULL, NULL);
	feed(&w, KS_STDOUT, "hello\n");
	feed(&w, KS_STDERR, "oh\x01");
	feed(&w, KS_STDOUT, "world\n");
	assert_true(w.alarm_us != 0);
	ks_streams_tick(&w.streams, w.alarm_us - KS_STREAM_FLUSH_US); /* too early: only run/started is there */
	assert_int_equal(w.out.lane_bytes[KS_LANE_OUTPUT], 94);
	tick(&w);
	ks_stream_finish(w.stream, on_done, &w);
	assert_int_equal(w.done, 1);
	w.room = SIZE_MAX;
	assert_false(ks_outgoing_flush(&w.out, SIZE_MAX));
	ks_buf_char(&w.got, '\0');
	assert_string_equal(
		w.got.data,
		"{\"jsonrpc\":\"2.0\",\"method\":\"run/started\",\"params\":{\"runId\":\"r1\",\"id\":\"id 1\",\"sessionId\":\"s1\"}}\n"
		"{\"jsonrpc\":\"2.0\",\"method\":\"run/output\",\"params\":{\"runId\":\"r1\",\"seq\":1,\"stream\":\"stdout\","
		"\"offset\":0,\"bytes\":12,\"text\":\"hello\\nworld\\n\"}}\n"
		"{\"jsonrpc\":\"2.0\",\"method\":\"run/output\",\"params\":{\"runId\":\"r1\",\"seq\":2,\"stream\":\"stderr\","
		"\"offset\":0,\"bytes\":3,\"text\":\"oh\\u0001\"}}\n");
	end(&w);
}

static void test_off_sends_nothing(void **state)
{
	(void)state;
	struct world w;

	start(&w, KS_STREAM_OFF, KS_ENCODING_UTF8, 32768);
	feed(&w, KS_STDOUT, "hello");
	assert_int_equal(ks_stream_room(w.stream), SIZE_MAX);
	assert_int_equal(w.alarm_us, 0);
	ks_stream_finish(w.stream, on_done, &w);
	assert_int_equal(w.done, 1);
	assert_true(ks_outgoing_empty(&w.out));
	end(&w);
}

static void test_full_chunk_goes_at_once(void **state)
{
	(void)state;
	struct world w;
	char data[KS_STREAM_CHUNK + 1];

	memset(data, 'x', sizeof(data));
	start(&w, KS_STREAM_LIVE, KS_ENCODING_UTF8, 32768);
	ks_stream_feed(w.stream, KS_STDOUT, data, KS_STREAM_CHUNK - 1);
	assert_true(ks_outgoing_empty(&w.out));
	ks_stream_feed(w.stream, KS_STDOUT, data, 2);
	read_all(&w);
	assert_int_equal(w.seq, 1);
	assert_int_equal(w.sent[0], KS_STREAM_CHUNK);
	tick(&w);
	read_all(&w);
	assert_int_equal(w.sent[0], KS_STREAM_CHUNK + 1);
	end(&w);
}

/* stderr's byte came first, so its chunk is first. */
static void test_first_come_first_sent(void **state)
{
	(void)state;
	struct world w;

	start(&w, KS_STREAM_LIVE, KS_ENCODING_UTF8, 32768);
	feed(&w, KS_STDERR, "1");
	for (int64_t now = ks_now_us(); ks_now_us() == now;)
		;
	feed(&w, KS_STDOUT, "2");
	tick(&w);
	w.room = SIZE_MAX;
	assert_false(ks_outgoing_flush(&w.out, SIZE_MAX));
	ks_buf_char(&w.got, '\0');
	assert_non_null(strstr(w.got.data, "\"seq\":1,\"stream\":\"stderr\""));
	assert_non_null(strstr(w.got.data, "\"seq\":2,\"stream\":\"stdout\""));
	end(&w);
}

/* One byte at a time, each with a flush: whole code points come out, whatever the encoding. */
static void test_code_points_are_not_split(void **state)
{
	(void)state;
	static const char text[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z"; /* a, e acute, euro, a face, z */

	for (int encoding = KS_ENCODING_UTF8; encoding <= KS_ENCODING_AUTO; encoding++) {
		struct world w;
		start(&w, KS_STREAM_LIVE, encoding, 32768);
		for (size_t i = 0; i < sizeof(text) - 1; i++) {
			ks_stream_feed(w.stream, KS_STDOUT, text + i, 1);
			tick(&w);
		}
		read_all(&w);
		assert_int_equal(w.seq, 5);
		assert_int_equal(w.text_lines, 5);
		assert_bytes(&w.bytes[0], text, sizeof(text) - 1);
		end(&w);
	}
}

static void test_code_point_across_a_full_chunk(void **state)
{
	(void)state;
	struct world w;
	char data[KS_STREAM_CHUNK + 2];

	memset(data, 'x', sizeof(data));
	memcpy(data + KS_STREAM_CHUNK - 1, "\xe2\x82\xac", 3);
	start(&w, KS_STREAM_LIVE, KS_ENCODING_UTF8, 32768);
	ks_stream_feed(w.stream, KS_STDOUT, data, sizeof(data));
	read_all(&w);
	assert_int_equal(w.sent[0], KS_STREAM_CHUNK - 1);
	ks_stream_finish(w.stream, NULL, NULL);
	read_all(&w);
	assert_bytes(&w.bytes[0], data, sizeof(data));
	end(&w);
}

/* What never became a code point: replaced in utf8, bytes in auto, and in both the text before it stays text. */
static void test_unfinished_code_point_at_the_end(void **state)
{
	(void)state;
	struct world w;

	start(&w, KS_STREAM_LIVE, KS_ENCODING_UTF8, 32768);
	feed(&w, KS_STDOUT, "ab\xf0\x9f\x98");
	tick(&w);
	read_all(&w);
	assert_int_equal(w.sent[0], 2);
	ks_stream_finish(w.stream, NULL, NULL);
	read_all(&w);
	assert_int_equal(w.sent[0], 5);
	assert_bytes(&w.bytes[0], "ab\xef\xbf\xbd", 5);
	end(&w);

	start(&w, KS_STREAM_LIVE, KS_ENCODING_AUTO, 32768);
	feed(&w, KS_STDOUT, "ab\xf0\x9f\x98");
	ks_stream_finish(w.stream, NULL, NULL);
	read_all(&w);
	assert_int_equal(w.text_lines, 1);
	assert_int_equal(w.base64_lines, 1);
	assert_bytes(&w.bytes[0], "ab\xf0\x9f\x98", 5);
	end(&w);
}

static void test_encodings_of_invalid_bytes(void **state)
{
	(void)state;
	struct world w;

	start(&w, KS_STREAM_LIVE, KS_ENCODING_UTF8, 32768);
	feed(&w, KS_STDOUT, "a\xff\xfe" "b");
	tick(&w);
	read_all(&w);
	assert_bytes(&w.bytes[0], "a\xef\xbf\xbd\xef\xbf\xbd" "b", 8);
	assert_int_equal(w.sent[0], 4); /* `bytes` counts raw ones */
	end(&w);

	start(&w, KS_STREAM_LIVE, KS_ENCODING_AUTO, 32768);
	feed(&w, KS_STDOUT, "a\xff\xfe" "b");
	tick(&w);
	feed(&w, KS_STDOUT, "fine");
	tick(&w);
	read_all(&w);
	assert_bytes(&w.bytes[0], "a\xff\xfe" "bfine", 8);
	assert_int_equal(w.base64_lines, 1);
	assert_int_equal(w.text_lines, 1);
	end(&w);

	start(&w, KS_STREAM_LIVE, KS_ENCODING_BASE64, 32768);
	feed(&w, KS_STDOUT, "plain\xe2\x82");
	tick(&w);
	read_all(&w);
	assert_bytes(&w.bytes[0], "plain\xe2\x82", 7); /* bytes have no code points: nothing is held back */
	assert_int_equal(w.base64_lines, 1);
	end(&w);
}

/* The worst text (six bytes for one), the smallest line that a client may ask for, the longest run id. */
static void test_lines_stay_below_the_cap(void **state)
{
	(void)state;
	static const size_t caps[] = { 4096, 4097, 32768 };
	static const char *const patterns[] = {
		"\x01", "x", "\xff", "\xe2\x80\xa8", "\xf0\x9f\x98\x80", "\"\\\n", "a\x01\xff\xe2\x82\xac"
	};

	for (size_t c = 0; c < KS_COUNT(caps); c++)
		for (size_t p = 0; p < KS_COUNT(patterns); p++)
			for (int encoding = KS_ENCODING_UTF8; encoding <= KS_ENCODING_BASE64; encoding++) {
				struct world w;
				size_t unit = strlen(patterns[p]), total = 40000 / unit * unit;
				start(&w, KS_STREAM_LIVE, encoding, caps[c]);
				for (size_t i = 0; i < total; i += unit)
					ks_stream_feed(w.stream, KS_STDERR, patterns[p], unit);
				tick(&w);
				ks_stream_finish(w.stream, NULL, NULL);
				read_all(&w);
				assert_int_equal(w.sent[1], total);
				assert_true(w.longest <= caps[c]);
				assert_int_equal(w.streams.chunks_dropped, 0);
				end(&w);
			}
}

static void test_overhead_of_the_longest_names(void **state)
{
	(void)state;
	char run_id[65], zeros[8192] = { 0 };
	struct world w;
	struct ks_error err;

	memset(run_id, 'r', 64);
	run_id[64] = '\0';
	start(&w, KS_STREAM_LIVE, KS_ENCODING_UTF8, 4096);
	ks_stream_free(w.stream);
	struct ks_stream_options options = { .mode = KS_STREAM_LIVE, .encoding = KS_ENCODING_UTF8, .run_id = run_id };
	w.stream = ks_stream_new(&w.streams, &options, &err);
	assert_non_null(w.stream);
	ks_stream_feed(w.stream, KS_STDOUT, zeros, sizeof(zeros));
	ks_stream_finish(w.stream, NULL, NULL);
	w.room = SIZE_MAX;
	assert_false(ks_outgoing_flush(&w.out, SIZE_MAX));
	for (char *line = w.got.data, *lf; line < w.got.data + w.got.len; line = lf + 1) {
		lf = memchr(line, '\n', w.got.len);
		assert_non_null(lf);
		assert_in_range(lf + 1 - line, 1, 4096 - 64); /* numbers may still grow by some 30 digits */
	}
	end(&w);
}

/* The client sleeps: the window fills, chunks are dropped, the box is never held up, offsets show the gap. */
static void test_live_drops_when_the_window_is_full(void **state)
{
	(void)state;
	struct world w;
	char data[KS_STREAM_CHUNK];

	memset(data, 'x', sizeof(data));
	start(&w, KS_STREAM_LIVE, KS_ENCODING_UTF8, 32768);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(ks_stream_room(w.stream), SIZE_MAX);
		ks_stream_feed(w.stream, KS_STDOUT, data, sizeof(data));
		assert_true(ks_stream_flow(w.stream)->bytes <= KS_STREAM_WINDOW);
	}
	/* A line is the chunk and 122 to 127 bytes around it: 15 fit into 256 KiB. */
	assert_int_equal(w.streams.chunks_dropped, 1000 - 15);
	read_all(&w);
	assert_int_equal(w.seq, 15);
	assert_int_equal(w.sent[0], 15 * KS_STREAM_CHUNK);
	feed(&w, KS_STDOUT, "after the gap");
	tick(&w);
	assert_int_equal(w.out.lane_bytes[KS_LANE_OUTPUT] > 0, 1);
	read_all(&w);
	assert_int_equal(w.seq, 16);
	assert_int_equal(w.sent[0], 1000 * KS_STREAM_CHUNK + 13);
	end(&w);
}

static void test_lossless_stops_at_its_credit(void **state)
{
	(void)state;
	struct world w;
	char data[4096];
	size_t fed = 0, room;

	memset(data, 'x', sizeof(data));
	start(&w, KS_STREAM_LOSSLESS, KS_ENCODING_UTF8, 32768);
	assert_int_equal(ks_stream_room(w.stream), KS_STREAM_WINDOW);
	while ((room = ks_stream_room(w.stream)) > 0) {
		room = room < sizeof(data) ? room : sizeof(data);
		ks_stream_feed(w.stream, KS_STDOUT, data, room);
		fed += room;
		tick(&w);
		read_all(&w); /* the client reads but gives no credit */
	}
	assert_int_equal(fed, KS_STREAM_WINDOW);
	assert_int_equal(w.sent[0], KS_STREAM_WINDOW);
	assert_int_equal(w.rooms, 0);
	ks_stream_credit(w.stream, 1);
	assert_int_equal(w.rooms, 1);
	assert_int_equal(ks_stream_room(w.stream), 1);
	ks_stream_feed(w.stream, KS_STDERR, data, 1); /* one credit for both streams */
	assert_int_equal(ks_stream_room(w.stream), 0);
	tick(&w);
	read_all(&w);
	assert_int_equal(w.sent[1], 1);
	ks_stream_credit(w.stream, UINT64_MAX); /* capped, and the room by the window */
	assert_int_equal(w.rooms, 2);
	assert_int_equal(ks_stream_room(w.stream), KS_STREAM_WINDOW);
	end(&w);
}

/* Credit for a gigabyte does not mean that a gigabyte is queued for a client that does not read. */
static void test_lossless_stops_at_its_window(void **state)
{
	(void)state;
	struct world w;
	char data[4096];
	size_t fed = 0, room;

	memset(data, 'x', sizeof(data));
	start(&w, KS_STREAM_LOSSLESS, KS_ENCODING_UTF8, 32768);
	ks_stream_credit(w.stream, (uint64_t)1 << 40);
	while ((room = ks_stream_room(w.stream)) > 0) {
		room = room < sizeof(data) ? room : sizeof(data);
		ks_stream_feed(w.stream, KS_STDOUT, data, room);
		fed += room;
	}
	assert_in_range(fed, KS_STREAM_WINDOW - 4096, KS_STREAM_WINDOW);
	assert_true(ks_stream_flow(w.stream)->bytes <= KS_STREAM_WINDOW + 4096);
	assert_int_equal(w.rooms, 0);
	read_all(&w);
	tick(&w);
	read_all(&w);
	assert_true(w.rooms >= 1);
	assert_int_equal(w.sent[0], fed);
	assert_int_equal(w.streams.chunks_dropped, 0);
	end(&w);
}

/* 1 MiB goes through a lossless stream whole, with a client that reads in small bites and gives credit as it reads. */
static void test_lossless_loses_nothing(void **state)
{
	(void)state;
	struct world w;
	struct ks_buf want = { 0 };
	uint64_t granted = KS_STREAM_WINDOW;
	size_t at = 0, room;

	for (unsigned i = 0; want.len < 1 << 20; i++)
		ks_buf_printf(&want, "line %u \xe2\x82\xac\n", i * 2654435761u);
	start(&w, KS_STREAM_LOSSLESS, KS_ENCODING_UTF8, 8192);
	for (int round = 0; at < want.len && round < 100000; round++) {
		if ((room = ks_stream_room(w.stream)) > 0) {
			size_t n = want.len - at < 5000 ? want.len - at : 5000;
			n = n < room ? n : room;
			ks_stream_feed(w.stream, KS_STDOUT, want.data + at, n);
			at += n;
		} else {
			tick(&w);
			read_all(&w);
			ks_stream_credit(w.stream, w.sent[0] + 100000 - granted);
			granted = w.sent[0] + 100000;
		}
	}
	assert_int_equal(at, want.len);
	ks_stream_finish(w.stream, on_done, &w);
	read_all(&w);
	assert_int_equal(w.done, 1);
	assert_bytes(&w.bytes[0], want.data, want.len);
	ks_buf_free(&want);
	end(&w);
}

/* After the exit: output beyond the credit waits, credit releases it; without, it is given up after a second. */
static void test_lossless_finish_waits_for_credit(void **state)
{
	(void)state;
	static char data[KS_STREAM_WINDOW + 1000];

	memset(data, 'x', sizeof(data));
	for (int with_credit = 0; with_credit < 2; with_credit++) {
		struct world w;
		int64_t before = ks_now_us();
		start(&w, KS_STREAM_LOSSLESS, KS_ENCODING_UTF8, 32768);
		ks_stream_feed(w.stream, KS_STDOUT, data, sizeof(data));
		ks_stream_finish(w.stream, on_done, &w);
		read_all(&w);
		assert_int_equal(w.sent[0], KS_STREAM_WINDOW);
		assert_int_equal(w.done, 0);
		assert_in_range(w.alarm_us - before, KS_STREAM_FINISH_US, KS_STREAM_FINISH_US + 500000);
		ks_streams_tick(&w.streams, w.alarm_us - 1);
		assert_int_equal(w.done, 0);
		if (with_credit) {
			ks_stream_credit(w.stream, 999);
			assert_int_equal(w.done, 0);
			ks_stream_credit(w.stream, 1);
		} else {
			tick(&w);
		}
		assert_int_equal(w.done, 1);
		read_all(&w);
		assert_int_equal(w.sent[0], with_credit ? KS_STREAM_WINDOW + 1000 : KS_STREAM_WINDOW);
		assert_true(ks_list_empty(&w.streams.waiting));
		end(&w);
	}
}

/* Nobody gives credit and the caller feeds on: memory stays bounded, and what was given up shows as a gap. */
static void test_lossless_held_bytes_are_bounded(void **state)
{
	(void)state;
	struct world w;
	char data[32768];

	memset(data, 'x', sizeof(data));
	start(&w, KS_STREAM_LOSSLESS, KS_ENCODING_UTF8, 32768);
	for (int i = 0; i < 128; i++) /* 4 MiB */
		ks_stream_feed(w.stream, KS_STDOUT, data, sizeof(data));
	read_all(&w);
	assert_int_equal(w.sent[0], KS_STREAM_WINDOW);
	assert_int_equal(w.bytes[0].len, KS_STREAM_WINDOW);
	ks_stream_credit(w.stream, 8 << 20);
	ks_stream_finish(w.stream, on_done, &w);
	read_all(&w);
	assert_int_equal(w.done, 1);
	assert_int_equal(w.sent[0], 4 << 20);
	assert_int_equal(w.bytes[0].len, KS_STREAM_WINDOW + KS_STREAM_HELD_MAX);
	end(&w);
}

static void free_stream(void *arg)
{
	struct world *w = arg;

	w->done++;
	ks_stream_free(w->stream);
	w->stream = NULL;
}

static void test_done_may_free_the_stream(void **state)
{
	(void)state;
	struct world w;
	static char data[KS_STREAM_WINDOW + 1];

	memset(data, 'x', sizeof(data));
	start(&w, KS_STREAM_LOSSLESS, KS_ENCODING_UTF8, 32768);
	ks_stream_feed(w.stream, KS_STDOUT, data, sizeof(data));
	ks_stream_finish(w.stream, free_stream, &w);
	tick(&w);
	assert_int_equal(w.done, 1);
	assert_null(w.stream);
	read_all(&w);
	assert_int_equal(w.sent[0], KS_STREAM_WINDOW); /* queued lines outlive the stream */
	end(&w);
}

static void test_several_streams_share_the_alarm(void **state)
{
	(void)state;
	struct world w;
	struct ks_stream *more[50];
	struct ks_error err;

	start(&w, KS_STREAM_LIVE, KS_ENCODING_UTF8, 32768);
	struct ks_stream_options options = { .mode = KS_STREAM_LIVE, .run_id = "r2" };
	for (size_t i = 0; i < KS_COUNT(more); i++) {
		more[i] = ks_stream_new(&w.streams, &options, &err);
		assert_non_null(more[i]);
		ks_stream_feed(more[i], KS_STDOUT, "x", 1);
	}
	tick(&w); /* w.alarm_us is the last stream's time: all are due */
	assert_true(ks_list_empty(&w.streams.waiting));
	for (size_t i = 0; i < KS_COUNT(more); i++) {
		assert_true(ks_stream_flow(more[i])->bytes > 0);
		ks_stream_free(more[i]);
	}
	end(&w);
}

/* Other runs have filled the connection: live drops, lossless goes on in small steps, and nothing gets stuck. */
static void test_connection_full_of_output(void **state)
{
	(void)state;
	size_t len = KS_OUTPUT_BUSY;
	char *filler = malloc(len), data[KS_STREAM_CHUNK];

	assert_non_null(filler);
	memset(filler, ' ', len);
	memset(data, 'x', sizeof(data));
	for (int mode = KS_STREAM_LIVE; mode <= KS_STREAM_LOSSLESS; mode++) {
		struct world w;
		struct ks_piece exactly = { filler, len - 1 }, more = { filler, 0 };
		struct ks_flow *other = ks_flow_new();
		start(&w, mode, KS_ENCODING_UTF8, 32768);
		size_t room = mode == KS_STREAM_LIVE ? SIZE_MAX : KS_STREAM_WINDOW;
		assert_int_equal(ks_outgoing_push(&w.out, KS_LANE_OUTPUT, other, KS_LINE_NOTE, &exactly, 1), 0);
		assert_int_equal(ks_stream_room(w.stream), room); /* full, not too full */
		assert_int_equal(ks_outgoing_push(&w.out, KS_LANE_OUTPUT, other, KS_LINE_NOTE, &more, 1), 0);
		ks_flow_release(other);
		assert_int_equal(ks_stream_room(w.stream), mode == KS_STREAM_LIVE ? SIZE_MAX : KS_STREAM_WINDOW_BUSY);
		ks_stream_feed(w.stream, KS_STDOUT, data, sizeof(data));
		tick(&w);
		assert_int_equal(w.streams.chunks_dropped, mode == KS_STREAM_LIVE);
		size_t queued = ks_stream_flow(w.stream)->bytes;
		if (mode == KS_STREAM_LIVE)
			assert_int_equal(queued, 0);
		else
			assert_in_range(queued, KS_STREAM_WINDOW_BUSY, KS_STREAM_WINDOW_BUSY + 256);
		read_all(&w); /* the client wakes up */
		assert_int_equal(w.sent[0], mode == KS_STREAM_LIVE ? 0 : KS_STREAM_CHUNK);
		end(&w);
	}
	free(filler);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exact_lines),
		cmocka_unit_test(test_off_sends_nothing),
		cmocka_unit_test(test_full_chunk_goes_at_once),
		cmocka_unit_test(test_first_come_first_sent),
		cmocka_unit_test(test_code_points_are_not_split),
		cmocka_unit_test(test_code_point_across_a_full_chunk),
		cmocka_unit_test(test_unfinished_code_point_at_the_end),
		cmocka_unit_test(test_encodings_of_invalid_bytes),
		cmocka_unit_test(test_lines_stay_below_the_cap),
		cmocka_unit_test(test_overhead_of_the_longest_names),
		cmocka_unit_test(test_live_drops_when_the_window_is_full),
		cmocka_unit_test(test_lossless_stops_at_its_credit),
		cmocka_unit_test(test_lossless_stops_at_its_window),
		cmocka_unit_test(test_lossless_loses_nothing),
		cmocka_unit_test(test_lossless_finish_waits_for_credit),
		cmocka_unit_test(test_lossless_held_bytes_are_bounded),
		cmocka_unit_test(test_done_may_free_the_stream),
		cmocka_unit_test(test_several_streams_share_the_alarm),
		cmocka_unit_test(test_connection_full_of_output),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
