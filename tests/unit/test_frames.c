/* The result channel: frames put together from datagrams, hostile ones included. */
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
		assert_int_equal(feed(&frames, KERN_FRAME_VALUE, i + 1, &payload, sizes[i], &frame),
				 KS_FRAMES_COMPLETE);
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
	size_t cut;	    /* not 0: only so many bytes of the first datagram */
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
	{ "unknown flags", .at = 6, .value = 2, .piece = "" },
	{ "unknown flags", .at = 6, .value = 3, .piece = "" },
	{ "unknown flags", .at = 7, .value = 1, .piece = "" },
	{ "a frame number that does not grow", .at = 12, .value = 0, .piece = "" },
	{ "a frame that is too large", .total = (64u << 20) + 1, .piece = "x" },
	{ "a frame that is too large", .total = UINT32_MAX, .piece = "x" },
	{ "an empty piece", .total = 9, .piece = "" },
	{ "a piece longer than its frame", .total = 2, .piece = "abc" },
	{ "a piece of no frame", .total = 9, .at = 20, .value = 1, .piece = "abc" },
	{ "a piece out of order", .total = 9, .piece = "abc", .offset2 = 4, .id2 = 1, .total2 = 9, .type2 = 1,
	  .piece2 = "d" },
	{ "a piece out of order", .total = 9, .piece = "abc", .offset2 = 2, .id2 = 1, .total2 = 9, .type2 = 1,
	  .piece2 = "d" },
	{ "a piece of no frame", .total = 9, .piece = "abc", .offset2 = 3, .id2 = 2, .total2 = 9, .type2 = 1,
	  .piece2 = "d" },
	{ "a frame number that does not grow", .total = 9, .piece = "abc", .id2 = 1, .total2 = 9, .type2 = 1,
	  .piece2 = "d" },
	{ "pieces that disagree about their frame", .total = 9, .piece = "abc", .offset2 = 3, .id2 = 1, .total2 = 8,
	  .type2 = 1, .piece2 = "d" },
	{ "pieces that disagree about their frame", .total = 9, .piece = "abc", .offset2 = 3, .id2 = 1, .total2 = 9,
	  .type2 = 2, .piece2 = "d" },
	{ "pieces that disagree about their frame", .total = 9, .at = 6, .value = KS_FRAME_NO_ACK, .piece = "abc", .offset2 = 3, .id2 = 1,
	  .total2 = 9, .type2 = 1, .piece2 = "d" },
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
	assert_string_equal(reason_of_payload("\2\0\xff\xff\xff\xff"
					      "a\0",
					      8),
			    "a part longer than its frame");
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
	struct ks_frames frames = { 0 };
	struct kern_frame frame;

	for (uint32_t i = 1; i < 4; i++) { /* wanted, not wanted, wanted */
		KS_AUTOBUF struct ks_buf one = { 0 };
		put_header(&one, 1, i, 0, 0);
		one.data[6] = i == 2 ? KS_FRAME_NO_ACK : 0;
		assert_int_equal(ks_frames_feed(&frames, one.data, one.len, &frame), KS_FRAMES_COMPLETE);
		assert_int_equal(frames.no_ack, i == 2);
	}
	ks_frames_free(&frames);

	ks_frames_ack(0x01020304, 0x05060708, ack);
	assert_memory_equal(ack, "KRN1\1\7\0\0\4\3\2\1\10\7\6\5\0\0\0\0\0\0\0\0", KS_FRAME_HEADER);
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
