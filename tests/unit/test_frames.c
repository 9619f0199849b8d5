/* The result channel: frames put together from datagrams, hostile ones included, and the results that they become. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/buf.h"
#include "plugins/frames.h"
#include "plugins/results.h"

static void put(struct ks_buf *buf, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		ks_buf_char(buf, (char)(value >> 8 * i));
}

static void put_header(struct ks_buf *buf, unsigned type, uint32_t id, size_t total, size_t offset)
{
	ks_buf_str(buf, "KRN1");
	put(buf, 1, 1);
	put(buf, type, 1);
	put(buf, 0, 2);
	put(buf, 7, 4); /* the call */
	put(buf, id, 4);
	put(buf, total, 4);
	put(buf, offset, 4);
}

static void put_part(struct ks_buf *buf, const char *key, const void *data, size_t len)
{
	put(buf, strlen(key) + 1, 2);
	put(buf, len, 4);
	ks_buf_add(buf, key, strlen(key) + 1);
	ks_buf_add(buf, data, len);
}

/* Feeds a payload in pieces of `size`; the status of the last one. */
static enum ks_frames_status feed(struct ks_frames *frames, unsigned type, uint32_t id, const struct ks_buf *payload,
				  size_t size, struct kern_frame *ret)
{
	enum ks_frames_status status = KS_FRAMES_MORE;
	size_t offset = 0;

	do {
		KS_AUTOBUF struct ks_buf datagram = { 0 };
		size_t piece = payload->len - offset < size ? payload->len - offset : size;
		put_header(&datagram, type, id, payload->len, offset);
		ks_buf_add(&datagram, payload->data + offset, piece);
		assert_int_equal(status, KS_FRAMES_MORE);
		status = ks_frames_feed(frames, datagram.data, datagram.len, ret);
		offset += piece;
	} while (offset < payload->len && status != KS_FRAMES_CORRUPT);
	return status;
}

static void test_one_piece_and_many(void **state)
{
	(void)state;
	static const size_t sizes[] = { 1, 5, 6, 7, 100, KS_FRAME_PIECE };
	struct ks_frames frames = { 0 };
	KS_AUTOBUF struct ks_buf payload = { 0 };
	struct kern_frame frame;

	put_part(&payload, "text/plain", "42", 2);
	put_part(&payload, "image/png", "\x89PNG\0x", 6);
	put_part(&payload, "id", "", 0);
	for (uint32_t i = 0; i < KS_COUNT(sizes); i++) {
		assert_int_equal(feed(&frames, KERN_FRAME_VALUE, i + 1, &payload, sizes[i], &frame), KS_FRAMES_COMPLETE);
		assert_int_equal(frame.type, KERN_FRAME_VALUE);
		assert_int_equal(frame.call, 7);
		assert_int_equal(frame.id, i + 1);
		assert_int_equal(frame.part_count, 3);
		assert_string_equal(frame.parts[0].key, "text/plain");
		assert_int_equal(frame.parts[0].len, 2);
		assert_memory_equal(frame.parts[0].data, "42", 2);
		assert_string_equal(frame.parts[1].key, "image/png");
		assert_memory_equal(frame.parts[1].data, "\x89PNG\0x", 6);
		assert_int_equal(frame.parts[2].len, 0);
	}
	payload.len = 0;
	assert_int_equal(feed(&frames, KERN_FRAME_CLEAR, 100, &payload, 1, &frame), KS_FRAMES_COMPLETE);
	assert_int_equal(frame.part_count, 0);
	ks_frames_free(&frames);
}

static void test_interrupted_sender(void **state)
{
	(void)state;
	struct ks_frames frames = { 0 };
	KS_AUTOBUF struct ks_buf first = { 0 }, payload = { 0 };
	struct kern_frame frame;

	put_header(&first, KERN_FRAME_DISPLAY, 1, 100, 0);
	ks_buf_str(&first, "abc");
	assert_int_equal(ks_frames_feed(&frames, first.data, first.len, &frame), KS_FRAMES_MORE);
	put_part(&payload, "text/plain", "x", 1);
	assert_int_equal(feed(&frames, KERN_FRAME_DISPLAY, 2, &payload, 4, &frame), KS_FRAMES_COMPLETE);
	assert_int_equal(frame.id, 2);
	assert_int_equal(frame.part_count, 1);
	ks_frames_free(&frames);
}

/* One datagram, or two, that break a rule: the reason must be the one named, and it must last. */
struct violation {
	const char *reason;
	size_t cut; /* not 0: only so many bytes of the first datagram */
	unsigned at, value; /* a byte of the header to set */
	uint32_t total, offset2, id2, total2;
	unsigned type2;
	const char *piece, *piece2;
};

static const struct violation violations[] = {
	{ "a datagram shorter than its header", .cut = 23, .piece = "" },
	{ "a datagram shorter than its header", .cut = 1, .piece = "" },
	{ "not a frame of version 1", .at = 0, .value = 'X', .piece = "" },
	{ "not a frame of version 1", .at = 4, .value = 2, .piece = "" },
	{ "a type that the box may not send", .at = 5, .value = 0, .piece = "" },
	{ "a type that the box may not send", .at = 5, .value = 7, .piece = "" },
	{ "unknown flags", .at = 6, .value = 1, .piece = "" },
	{ "unknown flags", .at = 7, .value = 1, .piece = "" },
	{ "a frame number that does not grow", .at = 12, .value = 0, .piece = "" },
	{ "a frame that is too large", .total = (64u << 20) + 1, .piece = "x" },
	{ "a frame that is too large", .total = UINT32_MAX, .piece = "x" },
	{ "an empty piece", .total = 9, .piece = "" },
	{ "a piece longer than its frame", .total = 2, .piece = "abc" },
	{ "a piece of no frame", .total = 9, .at = 20, .value = 1, .piece = "abc" },
	{ "a piece out of order", .total = 9, .piece = "abc", .offset2 = 4, .id2 = 1, .total2 = 9, .type2 = 1, .piece2 = "d" },
	{ "a piece out of order", .total = 9, .piece = "abc", .offset2 = 2, .id2 = 1, .total2 = 9, .type2 = 1, .piece2 = "d" },
	{ "a piece of no frame", .total = 9, .piece = "abc", .offset2 = 3, .id2 = 2, .total2 = 9, .type2 = 1, .piece2 = "d" },
	{ "a frame number that does not grow", .total = 9, .piece = "abc", .id2 = 1, .total2 = 9, .type2 = 1, .piece2 = "d" },
	{ "pieces that disagree about their frame", .total = 9, .piece = "abc", .offset2 = 3, .id2 = 1, .total2 = 8, .type2 = 1,
	  .piece2 = "d" },
	{ "pieces that disagree about their frame", .total = 9, .piece = "abc", .offset2 = 3, .id2 = 1, .total2 = 9, .type2 = 2,
	  .piece2 = "d" },
	{ "a piece longer than its frame", .total = 4, .piece = "abc", .offset2 = 3, .id2 = 1, .total2 = 4, .type2 = 1,
	  .piece2 = "de" },
	{ "an empty piece", .total = 4, .piece = "abc", .offset2 = 3, .id2 = 1, .total2 = 4, .type2 = 1, .piece2 = "" },
	{ "a part shorter than its header", .total = 5, .piece = "\2\0\0\0" },
};

static void test_violations(void **state)
{
	(void)state;
	for (size_t i = 0; i < KS_COUNT(violations); i++) {
		const struct violation *v = &violations[i];
		struct ks_frames frames = { 0 };
		KS_AUTOBUF struct ks_buf one = { 0 }, two = { 0 };
		struct kern_frame frame;

		put_header(&one, 1, 1, v->total, 0);
		ks_buf_str(&one, v->piece);
		if (v->total == 5) /* the piece has NULs */
			put(&one, 0, 1), one.len = KS_FRAME_HEADER, ks_buf_add(&one, "\2\0\0\0\0", 5);
		if (v->at || v->value)
			one.data[v->at] = (char)v->value;
		if (v->cut)
			one.len = v->cut;
		enum ks_frames_status status = ks_frames_feed(&frames, one.data, one.len, &frame);
		if (v->piece2) {
			assert_int_equal(status, KS_FRAMES_MORE);
			put_header(&two, v->type2, v->id2, v->total2, v->offset2);
			ks_buf_str(&two, v->piece2);
			status = ks_frames_feed(&frames, two.data, two.len, &frame);
		}
		assert_int_equal(status, KS_FRAMES_CORRUPT);
		assert_string_equal(frames.reason, v->reason);
		one.len = 0; /* a good frame comes too late */
		put_header(&one, 1, 50, 0, 0);
		assert_int_equal(ks_frames_feed(&frames, one.data, one.len, &frame), KS_FRAMES_CORRUPT);
		assert_string_equal(frames.reason, v->reason);
		ks_frames_free(&frames);
	}
}

static const char *reason_of_payload(const void *data, size_t len)
{
	static const char *reason;
	struct ks_frames frames = { 0 };
	KS_AUTOBUF struct ks_buf payload = { 0 };
	struct kern_frame frame;

	ks_buf_add(&payload, data, len);
	enum ks_frames_status status = feed(&frames, 1, 1, &payload, KS_FRAME_PIECE, &frame);
	reason = status == KS_FRAMES_CORRUPT ? frames.reason : "good";
	ks_frames_free(&frames);
	return reason;
}

static void test_parts(void **state)
{
	(void)state;
	KS_AUTOBUF struct ks_buf long_key = { 0 }, parts = { 0 };
	char key[KS_FRAME_KEY + 2];

	assert_string_equal(reason_of_payload("\2\0\0\0\0\0a\0", 8), "good");
	assert_string_equal(reason_of_payload("\2\0\1\0\0\0a\0", 8), "a part longer than its frame");
	assert_string_equal(reason_of_payload("\2\0\xff\xff\xff\xff" "a\0", 8), "a part longer than its frame");
	assert_string_equal(reason_of_payload("\xff\xff\0\0\0\0a\0", 8), "a part longer than its frame");
	assert_string_equal(reason_of_payload("\2\0\0\0\0\0ab", 8), "a bad key");
	assert_string_equal(reason_of_payload("\1\0\0\0\0\0\0", 7), "a bad key");
	assert_string_equal(reason_of_payload("\0\0\0\0\0\0", 6), "a bad key");
	assert_string_equal(reason_of_payload("\3\0\0\0\0\0\0a\0", 9), "a bad key");
	assert_string_equal(reason_of_payload("\3\0\0\0\0\0a \0", 9), "a bad key");
	assert_string_equal(reason_of_payload("\3\0\0\0\0\0a\xff\0", 9), "a bad key");
	memset(key, 'k', sizeof(key));
	key[KS_FRAME_KEY] = '\0';
	put_part(&long_key, key, "", 0);
	assert_string_equal(reason_of_payload(long_key.data, long_key.len), "good");
	long_key.len = 0;
	key[KS_FRAME_KEY] = 'k';
	key[KS_FRAME_KEY + 1] = '\0';
	put_part(&long_key, key, "", 0);
	assert_string_equal(reason_of_payload(long_key.data, long_key.len), "a bad key");
	for (int i = 0; i < KS_FRAME_PARTS; i++)
		put_part(&parts, "k", "v", 1);
	assert_string_equal(reason_of_payload(parts.data, parts.len), "good");
	put_part(&parts, "k", "v", 1);
	assert_string_equal(reason_of_payload(parts.data, parts.len), "too many parts");
}

static void test_datagram_and_frame_size(void **state)
{
	(void)state;
	struct ks_frames frames = { 0 };
	struct kern_frame frame;
	KS_AUTOBUF struct ks_buf datagram = { 0 }, payload = { 0 };
	KS_AUTOFREE char *data = calloc(1, KS_FRAME_BYTES);

	put_header(&datagram, 1, 1, KS_FRAME_PIECE + 1, 0);
	assert_non_null(ks_buf_reserve(&datagram, KS_FRAME_PIECE + 1));
	memset(datagram.data + datagram.len, 'x', KS_FRAME_PIECE + 1);
	datagram.len += KS_FRAME_PIECE;
	assert_int_equal(datagram.len, KS_FRAME_DATAGRAM);
	assert_int_equal(ks_frames_feed(&frames, datagram.data, datagram.len, &frame), KS_FRAMES_MORE);
	assert_int_equal(ks_frames_feed(&frames, datagram.data, datagram.len + 1, &frame), KS_FRAMES_CORRUPT);
	assert_string_equal(frames.reason, "a datagram that is too long");
	ks_frames_free(&frames);

	/* A frame of exactly the cap: 64 MiB with its one part's header of 6 + 2 bytes. */
	put_part(&payload, "a", data, KS_FRAME_BYTES - 8);
	assert_int_equal(payload.len, KS_FRAME_BYTES);
	assert_int_equal(feed(&frames, 1, 1, &payload, KS_FRAME_PIECE, &frame), KS_FRAMES_COMPLETE);
	assert_int_equal(frame.parts[0].len, KS_FRAME_BYTES - 8);
	ks_frames_free(&frames);
}

/* A header that announces the cap must not cost the cap. */
static void test_memory_follows_arrival(void **state)
{
	(void)state;
	struct ks_frames frames = { 0 };
	struct kern_frame frame;
	KS_AUTOBUF struct ks_buf datagram = { 0 };

	put_header(&datagram, 1, 1, KS_FRAME_BYTES, 0);
	ks_buf_str(&datagram, "x");
	assert_int_equal(ks_frames_feed(&frames, datagram.data, datagram.len, &frame), KS_FRAMES_MORE);
	assert_true(frames.payload.cap < 4096);
	ks_frames_free(&frames);
}

static void test_limit(void **state)
{
	(void)state;
	struct ks_frames frames = { 0 };
	KS_AUTOBUF struct ks_buf payload = { 0 };
	struct kern_frame frame;
	uint32_t id = 0;

	put_part(&payload, "text/plain", "x", 1);
	for (int i = 0; i < KS_FRAMES_PER_CALL; i++)
		assert_int_equal(feed(&frames, KERN_FRAME_DISPLAY, ++id, &payload, 100, &frame), KS_FRAMES_COMPLETE);
	assert_false(frames.limit);
	assert_int_equal(feed(&frames, KERN_FRAME_DISPLAY, ++id, &payload, 100, &frame), KS_FRAMES_DROPPED);
	assert_int_equal(frame.id, KS_FRAMES_PER_CALL + 1);
	assert_int_equal(frame.part_count, 0);
	assert_true(frames.limit);
	assert_int_equal(feed(&frames, KERN_FRAME_VALUE, ++id, &payload, 100, &frame), KS_FRAMES_COMPLETE);
	assert_int_equal(feed(&frames, KERN_FRAME_ERROR, ++id, &payload, 100, &frame), KS_FRAMES_COMPLETE);
	ks_frames_next_call(&frames);
	assert_int_equal(feed(&frames, KERN_FRAME_DISPLAY, ++id, &payload, 100, &frame), KS_FRAMES_COMPLETE);
	assert_false(frames.limit);
	ks_frames_free(&frames);
}

static void test_ack(void **state)
{
	(void)state;
	uint8_t ack[KS_FRAME_HEADER];

	ks_frames_ack(0x01020304, 0x05060708, ack);
	assert_memory_equal(ack, "KRN1\1\7\0\0\4\3\2\1\10\7\6\5\0\0\0\0\0\0\0\0", KS_FRAME_HEADER);
}

/* ---- results ---- */

static bool json_stand_in(const char *text, size_t len, bool object)
{
	return len > 0 && text[len] == '\0' && text[0] == (object ? '{' : text[0]) && !strstr(text, "NaN");
}

struct seen {
	char text[256];
};

static void note(void *arg, enum ks_result_op op, const struct ks_result *result, bool wait, uint64_t seq)
{
	struct seen *seen = arg;
	size_t at = strlen(seen->text);
	const char *text = result && result->content->data_count ? result->content->data[0].data : "-";

	(void)snprintf(seen->text + at, sizeof(seen->text) - at, "%d:%s%s@%d ", op, text ? text : "?", wait ? "w" : "",
		       (int)seq);
}

static int emit(struct ks_results *results, int kind, const char *id, const char *mime, const char *text)
{
	const struct kern_part part = { mime, text, strlen(text) };
	const struct kern_result result = { .size = sizeof(result), .kind = kind, .id = id, .id_len = id ? strlen(id) : 0,
					    .data = &part, .data_count = 1 };

	return ks_results_emit(results, &result);
}

static const struct ks_result *nth(const struct ks_results *results, int n)
{
	const struct ks_list *node = results->list.next;

	while (n-- > 0)
		node = node->next;
	assert_ptr_not_equal(node, &results->list);
	return (const struct ks_result *)(const void *)node;
}

static void test_results_view(void **state)
{
	(void)state;
	struct ks_results r;
	struct seen seen = { "" };

	ks_results_init(&r);
	r.event = note;
	r.event_arg = &seen;
	r.at_stdout = 10;
	assert_int_equal(emit(&r, KERN_DISPLAY, "a", "text/plain", "one"), 0);
	r.at_stdout = 20;
	r.at_stderr = 5;
	assert_int_equal(emit(&r, KERN_DISPLAY, "a", "text/plain", "two"), 0);
	assert_int_equal(emit(&r, KERN_DISPLAY, NULL, "text/plain", "three"), 0);
	assert_int_equal(emit(&r, KERN_UPDATE, "a", "text/html", "new"), 0);
	assert_int_equal(emit(&r, KERN_UPDATE, "b", "text/html", "nobody"), 0);
	assert_int_equal(r.count, 3);
	assert_string_equal(nth(&r, 0)->content->data[0].data, "new");
	assert_ptr_equal(nth(&r, 0)->content, nth(&r, 1)->content);
	assert_string_equal(nth(&r, 1)->content->data[0].mime, "text/html");
	assert_string_equal(nth(&r, 2)->content->data[0].data, "three");
	assert_int_equal(nth(&r, 0)->at_stdout, 10);
	assert_int_equal(nth(&r, 1)->at_stdout, 20);
	assert_int_equal(nth(&r, 1)->at_stderr, 5);
	assert_int_equal(nth(&r, 2)->seq, 2);
	assert_int_equal(r.bytes, 1 + 1 + 3 + 5);
	assert_int_equal(ks_results_clear(&r, true), 0);
	assert_int_equal(r.count, 3);
	assert_int_equal(emit(&r, KERN_VALUE, NULL, "text/plain", "last"), 0);
	assert_int_equal(r.count, 1);
	assert_int_equal(r.bytes, 4);
	assert_int_equal(ks_results_clear(&r, false), 0);
	assert_int_equal(r.count, 0);
	assert_int_equal(r.bytes, 0);
	assert_string_equal(seen.text, "0:one@0 0:two@1 0:three@2 1:new@3 2:-w@4 3:last@5 2:-@6 ");
	ks_results_free(&r);
}

static void test_results_refused(void **state)
{
	(void)state;
	struct ks_results r;
	char id[KS_RESULT_ID + 2];
	struct kern_part same[2] = { { "text/plain", "a", 1 }, { "text/plain", "b", 1 } };
	struct kern_result twice = { .size = sizeof(twice), .kind = KERN_DISPLAY, .data = same, .data_count = 2 };

	ks_results_init(&r);
	assert_int_equal(emit(&r, 0, NULL, "text/plain", "x"), -1);
	assert_int_equal(emit(&r, 5, NULL, "text/plain", "x"), -1);
	assert_int_equal(emit(&r, KERN_UPDATE, NULL, "text/plain", "x"), -1);
	assert_int_equal(emit(&r, KERN_DISPLAY, "", "text/plain", "x"), -1);
	memset(id, 'i', sizeof(id));
	id[KS_RESULT_ID + 1] = '\0';
	assert_int_equal(emit(&r, KERN_DISPLAY, id, "text/plain", "x"), -1);
	id[KS_RESULT_ID] = '\0';
	assert_int_equal(emit(&r, KERN_DISPLAY, id, "text/plain", "x"), 0);
	assert_int_equal(ks_results_emit(&r, &twice), -1);
	twice.data_count = KS_RESULT_MIMES + 1;
	assert_int_equal(ks_results_emit(&r, &twice), -1);
	assert_int_equal(r.count, 1);
	ks_results_free(&r);
}

static void test_mime_names(void **state)
{
	(void)state;
	static const char *const good[] = { "text/plain", "image/svg+xml", "application/vnd.vegalite.v5+json", "a/b", "X-y/1" };
	static const char *const bad[] = { "", "text", "/", "text/", "/plain", "text/plain; charset=x", "text/pl ain", "a/b/c",
					   "text/pl\xc3\xa4in", "-a/b", "a/+b", "text/\nx" };
	char longest[129] = "a/";

	for (size_t i = 0; i < KS_COUNT(good); i++)
		assert_true(ks_mime_valid(good[i]));
	for (size_t i = 0; i < KS_COUNT(bad); i++)
		assert_false(ks_mime_valid(bad[i]));
	memset(longest + 2, 'b', 126);
	assert_false(ks_mime_valid(longest));
	longest[127] = '\0';
	assert_true(ks_mime_valid(longest));
}

static void test_results_json(void **state)
{
	(void)state;
	struct ks_results r;
	struct kern_part parts[3] = { { "text/plain", "x", 1 }, { "application/json", "[NaN]", 5 }, { "a/b+json", "[1]", 3 } };
	struct kern_result result = { .size = sizeof(result), .kind = KERN_DISPLAY, .data = parts, .data_count = 3,
				      .metadata = "{\"a\":1}", .metadata_len = 7 };

	ks_results_init(&r);
	assert_int_equal(ks_results_emit(&r, &result), 0); /* nobody can say what is JSON: nothing is kept of it */
	assert_null(nth(&r, 0)->content->data[2].data);
	assert_null(nth(&r, 0)->content->metadata);
	r.json_valid = json_stand_in;
	assert_int_equal(ks_results_emit(&r, &result), 0);
	const struct ks_result_content *content = nth(&r, 1)->content;
	assert_int_equal(content->data_count, 3);
	assert_string_equal(content->data[0].data, "x");
	assert_null(content->data[1].data);
	assert_string_equal(content->data[1].dropped, "not valid JSON");
	assert_string_equal(content->data[2].data, "[1]");
	assert_string_equal(content->metadata, "{\"a\":1}");
	result.metadata = "[1]";
	result.metadata_len = 3;
	assert_int_equal(ks_results_emit(&r, &result), 0);
	assert_string_equal(nth(&r, 2)->content->metadata_dropped, "not valid JSON");
	KS_AUTOFREE char *large = calloc(1, KS_RESULT_METADATA + 1);
	memset(large, '{', KS_RESULT_METADATA + 1);
	result.metadata = large;
	result.metadata_len = KS_RESULT_METADATA;
	assert_int_equal(ks_results_emit(&r, &result), 0);
	assert_int_equal(nth(&r, 3)->content->metadata_len, KS_RESULT_METADATA);
	result.metadata_len++;
	assert_int_equal(ks_results_emit(&r, &result), 0);
	assert_string_equal(nth(&r, 4)->content->metadata_dropped, "larger than 64 KiB");
	ks_results_free(&r);
}

static void test_results_caps(void **state)
{
	(void)state;
	struct ks_results r;
	KS_AUTOFREE char *data = calloc(1, KS_RESULTS_BYTES);
	struct kern_part part = { "image/png", data, KS_RESULTS_BYTES };
	struct kern_result result = { .size = sizeof(result), .kind = KERN_DISPLAY, .data = &part, .data_count = 1 };

	ks_results_init(&r);
	assert_int_equal(ks_results_emit(&r, &result), 0);
	assert_false(r.limit);
	assert_int_equal(r.bytes, KS_RESULTS_BYTES);
	assert_int_equal(emit(&r, KERN_DISPLAY, NULL, "text/plain", "x"), 0);
	assert_true(r.limit);
	assert_null(nth(&r, 1)->content->data[0].data);
	assert_string_equal(nth(&r, 1)->content->data[0].dropped, "the results of the call are larger than 64 MiB");
	assert_int_equal(emit(&r, KERN_DISPLAY, "id", "text/plain", ""), 0); /* not even room for the id */
	assert_int_equal(r.count, 2);
	ks_results_free(&r);

	for (int i = 0; i < KS_RESULTS_MAX; i++)
		assert_int_equal(emit(&r, KERN_DISPLAY, NULL, "text/plain", "x"), 0);
	assert_false(r.limit);
	assert_int_equal(emit(&r, KERN_DISPLAY, NULL, "text/plain", "x"), 0);
	assert_int_equal(r.count, KS_RESULTS_MAX);
	assert_true(r.limit);
	assert_int_equal(emit(&r, KERN_VALUE, NULL, "text/plain", "value"), 0);
	assert_int_equal(emit(&r, KERN_VALUE, NULL, "text/plain", "another"), 0);
	assert_int_equal(r.count, KS_RESULTS_MAX + 1);
	assert_string_equal(nth(&r, KS_RESULTS_MAX)->content->data[0].data, "value");
	ks_results_free(&r);
}

static void test_error_frame(void **state)
{
	(void)state;
	struct ks_results r;
	static const char place[] = "12\0" "5\0" "main.py\0" "f\0" "  x = 1/0", odd[] = "12x\0" "9999999999";
	KS_AUTOFREE char *message = calloc(1, KS_ERROR_MESSAGE + 1);
	struct kern_part parts[6 + KS_ERROR_FRAMES] = {
		{ "name", "ZeroDivisionError", 17 }, { "message", message, KS_ERROR_MESSAGE + 1 }, { "phase", "run", 3 },
		{ "frame", place, sizeof(place) - 1 }, { "frame", odd, sizeof(odd) - 1 }, { "unknown", "x", 1 } };
	struct kern_frame frame = { sizeof(frame), KERN_FRAME_ERROR, 0, 1, parts, 6 };

	memset(message, 'm', KS_ERROR_MESSAGE + 1);
	memcpy(message + KS_ERROR_MESSAGE - 1, "\xc3\xa4", 2); /* the cut must not split it */
	ks_results_init(&r);
	assert_int_equal(ks_results_frame(&r, &frame), 0);
	assert_true(r.has_error);
	assert_string_equal(r.error.name, "ZeroDivisionError");
	assert_int_equal(strlen(r.error.message), KS_ERROR_MESSAGE - 1);
	assert_string_equal(r.error.phase, "run");
	assert_null(r.error.traceback);
	assert_null(r.error.cause);
	assert_int_equal(r.error.frame_count, 2);
	assert_int_equal(r.error.frames[0].line, 12);
	assert_int_equal(r.error.frames[0].column, 5);
	assert_string_equal(r.error.frames[0].file, "main.py");
	assert_string_equal(r.error.frames[0].function, "f");
	assert_string_equal(r.error.frames[0].source, "  x = 1/0");
	assert_int_equal(r.error.frames[1].line, 0);
	assert_int_equal(r.error.frames[1].column, 0);
	assert_null(r.error.frames[1].file);
	frame.part_count = 1;
	parts[0].data = "Second";
	parts[0].len = 6;
	assert_int_equal(ks_results_frame(&r, &frame), 0);
	assert_string_equal(r.error.name, "Second");
	assert_int_equal(r.error.frame_count, 0);
	for (size_t i = 0; i <= KS_ERROR_FRAMES; i++)
		parts[1 + i] = (struct kern_part){ "frame", place, sizeof(place) - 1 };
	frame.part_count = 1 + KS_ERROR_FRAMES;
	assert_int_equal(ks_results_frame(&r, &frame), 0);
	assert_int_equal(r.error.frame_count, KS_ERROR_FRAMES);
	frame.part_count++;
	assert_int_equal(ks_results_frame(&r, &frame), -1);
	parts[0].len = 0;
	frame.part_count = 1;
	assert_int_equal(ks_results_frame(&r, &frame), -1); /* an error without a name */
	ks_results_free(&r);
}

static void test_standard_frames(void **state)
{
	(void)state;
	struct ks_results r;
	struct kern_part parts[4] = { { "text/plain", "x", 1 }, { "id", "a", 1 }, { "metadata", "{}", 2 }, { "figure", "", 0 } };
	struct kern_frame frame = { sizeof(frame), KERN_FRAME_DISPLAY, 0, 1, parts, 4 };

	ks_results_init(&r);
	r.json_valid = json_stand_in;
	assert_int_equal(ks_results_frame(&r, &frame), 0);
	assert_int_equal(nth(&r, 0)->kind, KERN_FIGURE);
	assert_string_equal(nth(&r, 0)->id, "a");
	assert_string_equal(nth(&r, 0)->content->metadata, "{}");
	frame.type = KERN_FRAME_VALUE;
	assert_int_equal(ks_results_frame(&r, &frame), 0);
	assert_int_equal(nth(&r, 1)->kind, KERN_VALUE);
	frame.type = KERN_FRAME_UPDATE;
	parts[0].data = "y";
	assert_int_equal(ks_results_frame(&r, &frame), 0);
	assert_string_equal(nth(&r, 0)->content->data[0].data, "y");
	frame.type = KERN_FRAME_STATE;
	assert_int_equal(ks_results_frame(&r, &frame), 0);
	frame.type = 200;
	assert_int_equal(ks_results_frame(&r, &frame), 0);
	assert_int_equal(r.count, 2);
	frame.type = KERN_FRAME_CLEAR;
	frame.part_count = 0;
	assert_int_equal(ks_results_frame(&r, &frame), 0);
	assert_int_equal(r.count, 0);
	parts[0].key = "text/pl ain";
	frame.type = KERN_FRAME_DISPLAY;
	frame.part_count = 1;
	assert_int_equal(ks_results_frame(&r, &frame), -1);
	ks_results_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_piece_and_many),
		cmocka_unit_test(test_interrupted_sender),
		cmocka_unit_test(test_violations),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_datagram_and_frame_size),
		cmocka_unit_test(test_memory_follows_arrival),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_ack),
		cmocka_unit_test(test_results_view),
		cmocka_unit_test(test_results_refused),
		cmocka_unit_test(test_mime_names),
		cmocka_unit_test(test_results_json),
		cmocka_unit_test(test_results_caps),
		cmocka_unit_test(test_error_frame),
		cmocka_unit_test(test_standard_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
