/* test_outgoing.c: what leaves, in which order, and what happens when the client does not read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "rpc/outgoing.h"

/* A reader that takes `room` bytes, at most `slice` in one write. */
struct reader {
	struct ks_outgoing out;
	struct ks_buf got;
	size_t room, slice;
	int error, lost, drained, writes;
};

static ssize_t take(void *arg, const struct ks_piece *pieces, size_t count)
{
	struct reader *reader = arg;
	size_t limit = reader->room < reader->slice ? reader->room : reader->slice, taken = 0;

	if (reader->error)
		return -reader->error;
	reader->writes++;
	for (size_t i = 0; i < count && taken < limit; i++) {
		size_t len = pieces[i].len < limit - taken ? pieces[i].len : limit - taken;
		ks_buf_add(&reader->got, pieces[i].data, len);
		taken += len;
	}
	reader->room -= taken;
	return taken > 0 ? (ssize_t)taken : -EAGAIN;
}

static void on_lost(void *arg)
{
	((struct reader *)arg)->lost++;
}

static void on_drained(void *arg)
{
	((struct reader *)arg)->drained++;
}

static void start(struct reader *reader, size_t room, size_t slice)
{
	*reader = (struct reader){ .room = room, .slice = slice };
	ks_outgoing_init(&reader->out);
	reader->out.write = take;
	reader->out.lost = on_lost;
	reader->out.arg = reader;
}

static void push(struct reader *reader, enum ks_lane lane, struct ks_flow *flow, enum ks_line_kind kind, const char *text)
{
	struct ks_piece piece = { text, strlen(text) };

	assert_int_equal(ks_outgoing_push(&reader->out, lane, flow, kind, &piece, 1), 0);
}

static void reply(struct reader *reader, const char *text)
{
	push(reader, KS_LANE_CONTROL, NULL, KS_LINE_REPLY, text);
}

static void output(struct reader *reader, struct ks_flow *flow, const char *text)
{
	push(reader, KS_LANE_OUTPUT, flow, KS_LINE_NOTE, text);
}

static void finish(struct reader *reader, const char *want)
{
	reader->room = reader->slice = SIZE_MAX;
	assert_false(ks_outgoing_flush(&reader->out, SIZE_MAX));
	assert_true(ks_outgoing_empty(&reader->out));
	ks_buf_char(&reader->got, '\0');
	assert_string_equal(reader->got.data, want);
	for (int lane = 0; lane < KS_LANES; lane++)
		assert_int_equal(reader->out.lane_bytes[lane], 0);
	assert_int_equal(reader->out.reply_cost, 0);
	assert_int_equal(reader->out.event_cost, 0);
	ks_outgoing_free(&reader->out);
	ks_buf_free(&reader->got);
}

static void test_lanes_go_before_each_other(void **state)
{
	(void)state;
	struct reader reader;
	struct ks_flow *flow = ks_flow_new();

	start(&reader, 0, SIZE_MAX);
	output(&reader, flow, "out 1");
	output(&reader, flow, "out 2");
	push(&reader, KS_LANE_EVENT, NULL, KS_LINE_DROPPABLE, "log");
	reply(&reader, "reply 1");
	push(&reader, KS_LANE_CONTROL, NULL, KS_LINE_NOTE, "control");
	push(&reader, KS_LANE_EVENT, NULL, KS_LINE_NOTE, "state");
	reply(&reader, "reply 2");
	assert_int_equal(reader.out.lane_bytes[KS_LANE_CONTROL], 8 + 8 + 8);
	assert_int_equal(reader.out.lane_bytes[KS_LANE_EVENT], 4 + 6);
	assert_int_equal(reader.out.lane_bytes[KS_LANE_OUTPUT], 6 + 6);
	assert_int_equal(flow->bytes, 12);
	ks_flow_release(flow);
	finish(&reader, "reply 1\ncontrol\nreply 2\nlog\nstate\nout 1\nout 2\n");
}

/* Wherever a line was cut by a full pipe, its rest comes next, then the lane that goes first. */
static void test_partial_write_at_every_offset(void **state)
{
	(void)state;
	static const char first[] = "output line one\n";

	for (size_t cut = 0; cut < sizeof(first); cut++) {
		struct reader reader;
		struct ks_flow *flow = ks_flow_new();
		char want[128];

		start(&reader, cut, SIZE_MAX);
		output(&reader, flow, "output line one");
		output(&reader, flow, "output line two");
		assert_true(ks_outgoing_flush(&reader.out, SIZE_MAX));
		assert_int_equal(reader.got.len, cut);
		assert_int_equal(flow->bytes, 32 - cut);
		assert_int_equal(reader.out.lane_bytes[KS_LANE_OUTPUT], 32 - cut);
		reply(&reader, "reply");
		ks_flow_release(flow);
		/* A write that took nothing has begun nothing. */
		(void)snprintf(want, sizeof(want), "%s%s%s", cut == 0 ? "reply\n" : "", first,
			       cut == 0 ? "output line two\n" : "reply\noutput line two\n");
		finish(&reader, want);
	}
}

/* What waits goes in one write, as far as its order is known; a line that somebody queues when he is told comes after it. */
static void test_lines_together(void **state)
{
	(void)state;
	struct reader reader;
	struct ks_flow *flow = ks_flow_new();
	char want[KS_LINES_TOGETHER * 16 + 64] = "r\ncontrol\nstate\nout 1\nout 2\n";

	start(&reader, SIZE_MAX, SIZE_MAX);
	output(&reader, flow, "out 1");
	output(&reader, flow, "out 2");
	push(&reader, KS_LANE_EVENT, NULL, KS_LINE_NOTE, "state");
	reply(&reader, "r");
	push(&reader, KS_LANE_CONTROL, NULL, KS_LINE_NOTE, "control");
	assert_false(ks_outgoing_flush(&reader.out, SIZE_MAX));
	assert_int_equal(reader.writes, 1);
	for (int i = 0; i < KS_LINES_TOGETHER + 1; i++) {
		char text[16];
		(void)snprintf(text, sizeof(text), "reply %02d", i);
		reply(&reader, text);
		(void)snprintf(want + strlen(want), sizeof(want) - strlen(want), "%s\n", text);
	}
	assert_false(ks_outgoing_flush(&reader.out, SIZE_MAX));
	assert_int_equal(reader.writes, 3);
	assert_int_equal(reader.out.lines_sent, 5 + KS_LINES_TOGETHER + 1);
	ks_flow_release(flow);
	finish(&reader, want);
}

static void test_patient_lines(void **state)
{
	(void)state;
	static const enum ks_line_kind others[] = { KS_LINE_REPLY, KS_LINE_NOTE, KS_LINE_DROPPABLE };
	struct reader reader;
	struct ks_flow *flow = ks_flow_new();

	start(&reader, SIZE_MAX, SIZE_MAX);
	for (size_t i = 0; i < KS_COUNT(others); i++) {
		push(&reader, KS_LANE_EVENT, NULL, KS_LINE_PATIENT, "state");
		push(&reader, KS_LANE_OUTPUT, flow, KS_LINE_PATIENT, "started");
		assert_false(reader.out.urgent);
		push(&reader, KS_LANE_EVENT, NULL, others[i], "other");
		assert_true(reader.out.urgent);
		assert_false(ks_outgoing_flush(&reader.out, SIZE_MAX));
		assert_false(reader.out.urgent);
	}
	assert_int_equal(reader.writes, 3);
	ks_flow_release(flow);
	finish(&reader, "state\nother\nstarted\nstate\nother\nstarted\nstate\nother\nstarted\n");
}

static void queue_more(void *arg)
{
	struct reader *reader = arg;

	if (reader->drained++ == 0)
		for (int i = 0; i < 8000; i++) /* more than the event lane keeps: the oldest go */
			push(reader, KS_LANE_EVENT, NULL, KS_LINE_DROPPABLE, "queued when the output was out, and again and again");
}

/* Those who are told that output is out may drop lines; the ones of the same write are out already. */
static void test_told_after_the_write(void **state)
{
	(void)state;
	struct reader reader;
	struct ks_flow *flow = ks_flow_new();

	start(&reader, 4, SIZE_MAX);
	flow->drained = queue_more;
	flow->arg = &reader;
	output(&reader, flow, "output");
	assert_true(ks_outgoing_flush(&reader.out, SIZE_MAX)); /* four bytes of it */
	reader.drained = 0;
	ks_buf_clear(&reader.got);
	push(&reader, KS_LANE_EVENT, NULL, KS_LINE_DROPPABLE, "log");
	push(&reader, KS_LANE_EVENT, NULL, KS_LINE_NOTE, "state");
	reader.room = SIZE_MAX;
	assert_false(ks_outgoing_flush(&reader.out, SIZE_MAX));
	assert_true(reader.got.len > 20 && memcmp(reader.got.data, "ut\n", 3) == 0);
	assert_true(reader.out.lines_dropped > 0);
	ks_flow_release(flow);
	ks_outgoing_free(&reader.out);
	ks_buf_free(&reader.got);
}

static void test_one_byte_writes(void **state)
{
	(void)state;
	struct reader reader;
	struct ks_flow *flow = ks_flow_new();

	start(&reader, SIZE_MAX, 1);
	flow->drained = on_drained;
	flow->arg = &reader;
	output(&reader, flow, "abc");
	reply(&reader, "r");
	assert_false(ks_outgoing_flush(&reader.out, SIZE_MAX));
	assert_int_equal(reader.drained, 4);
	assert_int_equal(reader.out.lines_sent, 2);
	assert_int_equal(reader.out.bytes_sent, 6);
	ks_flow_release(flow);
	finish(&reader, "r\nabc\n");
}

static void test_budget_of_a_turn(void **state)
{
	(void)state;
	struct reader reader;

	start(&reader, SIZE_MAX, 4);
	reply(&reader, "1234567");
	reply(&reader, "x");
	assert_true(ks_outgoing_flush(&reader.out, 5));
	assert_int_equal(reader.got.len, 8);
	finish(&reader, "1234567\nx\n");
}

/* A run's reply waits for its own output, not for that of others; others' output waits for it. */
static void test_reply_behind_its_output(void **state)
{
	(void)state;
	struct reader reader;
	struct ks_flow *a = ks_flow_new(), *b = ks_flow_new(), *c = ks_flow_new();

	start(&reader, 0, SIZE_MAX);
	output(&reader, a, "a1");
	output(&reader, b, "b1");
	output(&reader, a, "a2");
	output(&reader, b, "b2");
	output(&reader, a, "a3");
	push(&reader, KS_LANE_OUTPUT, b, KS_LINE_REPLY, "b reply");
	push(&reader, KS_LANE_OUTPUT, c, KS_LINE_REPLY, "c reply"); /* nothing to wait for */
	assert_int_equal(reader.out.lane_bytes[KS_LANE_CONTROL], 8);
	ks_flow_release(b);
	ks_flow_release(c);
	ks_flow_release(a);
	finish(&reader, "c reply\nb1\nb2\nb reply\na1\na2\na3\n");
}

/* The run's last output line is half out: its reply must not overtake the rest. */
static void test_reply_behind_half_a_line(void **state)
{
	(void)state;
	struct reader reader;
	struct ks_flow *flow = ks_flow_new();

	start(&reader, 2, SIZE_MAX);
	output(&reader, flow, "last");
	assert_true(ks_outgoing_flush(&reader.out, SIZE_MAX));
	push(&reader, KS_LANE_OUTPUT, flow, KS_LINE_REPLY, "reply");
	ks_flow_release(flow);
	finish(&reader, "last\nreply\n");
}

static void test_flows_take_turns(void **state)
{
	(void)state;
	struct reader reader;
	struct ks_flow *a = ks_flow_new(), *b = ks_flow_new();

	start(&reader, 0, SIZE_MAX);
	output(&reader, a, "a1");
	output(&reader, a, "a2");
	output(&reader, a, "a3");
	output(&reader, b, "b1");
	output(&reader, b, "b2");
	ks_flow_release(a);
	ks_flow_release(b);
	reader.room = SIZE_MAX;
	assert_false(ks_outgoing_flush(&reader.out, SIZE_MAX));
	assert_int_equal(reader.writes, 5); /* of flows that take turns one line at a time */
	finish(&reader, "a1\nb1\na2\nb2\na3\n");
}

/* Each line here costs a fixed amount of memory, which the test takes from the counter. */
static void test_event_lane_drops_the_oldest_log_lines(void **state)
{
	(void)state;
	struct reader reader;
	char text[1000], want[64];

	start(&reader, 0, SIZE_MAX);
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	push(&reader, KS_LANE_EVENT, NULL, KS_LINE_NOTE, "state, never dropped");
	size_t state_cost = reader.out.event_cost;
	push(&reader, KS_LANE_EVENT, NULL, KS_LINE_DROPPABLE, text);
	size_t cost = reader.out.event_cost - state_cost;
	size_t fit = (KS_EVENT_DROPPABLE_MAX - state_cost) / cost;
	for (size_t i = 1; i < fit; i++)
		push(&reader, KS_LANE_EVENT, NULL, KS_LINE_DROPPABLE, text);
	assert_int_equal(reader.out.lines_dropped, 0);
	assert_true(reader.out.event_cost <= KS_EVENT_DROPPABLE_MAX);
	for (int i = 0; i < 5000; i++) {
		(void)snprintf(text, sizeof(text), "%0998d", i);
		push(&reader, KS_LANE_EVENT, NULL, KS_LINE_DROPPABLE, text);
		assert_true(reader.out.event_cost <= KS_EVENT_DROPPABLE_MAX);
	}
	assert_true(reader.out.lines_dropped == 5000 || reader.out.lines_dropped == 4999);
	reader.room = SIZE_MAX;
	assert_false(ks_outgoing_flush(&reader.out, SIZE_MAX));
	assert_memory_equal(reader.got.data, "state, never dropped\n", 21);
	(void)snprintf(want, sizeof(want), "%04d\n", 4999);
	assert_memory_equal(reader.got.data + reader.got.len - 5, want, 5); /* the newest is there */
	assert_int_equal(reader.lost, 0);
	ks_outgoing_free(&reader.out);
	ks_buf_free(&reader.got);
}

static void test_unread_replies_busy_then_lost(void **state)
{
	(void)state;
	struct reader reader;
	size_t len = 1 << 16, pushed = 0;
	char *text = malloc(len + 1);

	assert_non_null(text);
	memset(text, 'x', len);
	text[len] = '\0';
	start(&reader, 0, SIZE_MAX);
	reply(&reader, text);
	size_t cost = reader.out.reply_cost;
	for (pushed = 1; (pushed + 1) * cost <= KS_REPLIES_BUSY; pushed++)
		reply(&reader, text);
	assert_false(ks_outgoing_busy(&reader.out));
	reply(&reader, text);
	pushed++;
	assert_true(ks_outgoing_busy(&reader.out));
	for (; (pushed + 1) * cost <= KS_UNSENT_LOST; pushed++)
		reply(&reader, text);
	assert_int_equal(reader.lost, 0);
	assert_int_equal(reader.out.reply_cost, pushed * cost);
	reply(&reader, text);
	assert_int_equal(reader.lost, 1);
	assert_int_equal(reader.out.reply_cost, 0); /* all thrown away */
	assert_true(ks_outgoing_empty(&reader.out));
	reply(&reader, text); /* and nothing is taken any more */
	assert_true(ks_outgoing_empty(&reader.out));
	assert_int_equal(reader.lost, 1);
	ks_outgoing_free(&reader.out);
	free(text);
}

/* Small lines must not hold more memory than large ones: the cap counts what a line costs, not what it carries. */
static void test_flood_of_small_replies_is_bounded(void **state)
{
	(void)state;
	struct reader reader;
	size_t count = 0;

	start(&reader, 0, SIZE_MAX);
	while (!reader.lost && count < 10000000) {
		reply(&reader, "{}");
		count++;
	}
	assert_int_equal(reader.lost, 1);
	assert_in_range(count, KS_UNSENT_LOST / 128, KS_UNSENT_LOST / 32);
	ks_outgoing_free(&reader.out);
}

static void test_write_error_loses_the_client(void **state)
{
	(void)state;
	struct reader reader;
	struct ks_flow *flow = ks_flow_new();

	start(&reader, 3, SIZE_MAX);
	output(&reader, flow, "output");
	assert_true(ks_outgoing_flush(&reader.out, SIZE_MAX));
	output(&reader, flow, "more");
	push(&reader, KS_LANE_OUTPUT, flow, KS_LINE_REPLY, "reply");
	reply(&reader, "reply");
	reader.error = EPIPE;
	assert_false(ks_outgoing_flush(&reader.out, SIZE_MAX));
	assert_int_equal(reader.lost, 1);
	assert_int_equal(flow->bytes, 0);
	assert_true(ks_outgoing_empty(&reader.out));
	output(&reader, flow, "ignored");
	assert_int_equal(flow->bytes, 0);
	ks_flow_release(flow);
	ks_outgoing_free(&reader.out);
	ks_buf_free(&reader.got);
}

static void test_unread_output_is_busy(void **state)
{
	(void)state;
	struct reader reader;
	struct ks_flow *flow = ks_flow_new();
	size_t len = 1 << 20;
	char *text = malloc(len);

	assert_non_null(text);
	memset(text, 'x', len - 1);
	text[len - 1] = '\0';
	start(&reader, 0, SIZE_MAX);
	for (size_t i = 0; i < KS_OUTPUT_BUSY / len; i++)
		output(&reader, flow, text);
	assert_int_equal(reader.out.lane_bytes[KS_LANE_OUTPUT], KS_OUTPUT_BUSY);
	assert_false(ks_outgoing_busy(&reader.out));
	output(&reader, flow, "");
	assert_true(ks_outgoing_busy(&reader.out));
	assert_int_equal(reader.lost, 0);
	ks_outgoing_free(&reader.out);
	ks_flow_release(flow);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lanes_go_before_each_other),
		cmocka_unit_test(test_partial_write_at_every_offset),
		cmocka_unit_test(test_lines_together),
		cmocka_unit_test(test_patient_lines),
		cmocka_unit_test(test_told_after_the_write),
		cmocka_unit_test(test_one_byte_writes),
		cmocka_unit_test(test_budget_of_a_turn),
		cmocka_unit_test(test_reply_behind_its_output),
		cmocka_unit_test(test_reply_behind_half_a_line),
		cmocka_unit_test(test_flows_take_turns),
		cmocka_unit_test(test_event_lane_drops_the_oldest_log_lines),
		cmocka_unit_test(test_unread_replies_busy_then_lost),
		cmocka_unit_test(test_flood_of_small_replies_is_bounded),
		cmocka_unit_test(test_write_error_loses_the_client),
		cmocka_unit_test(test_unread_output_is_busy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
