#include "outgoing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

#define TOGETHER KS_LINES_TOGETHER

struct ks_line {
	struct ks_list node;
	struct ks_flow *flow; /* NULL in the control and event lanes */
	enum ks_lane lane;
	enum ks_line_kind kind;
	size_t len; /* with its LF */
	char data[];
};

static size_t cost(const struct ks_line *line)
{
	return sizeof(*line) + line->len;
}

static struct ks_line *line_at(struct ks_list *node)
{
	return KS_ENTRY(node, struct ks_line, node);
}

void ks_outgoing_init(struct ks_outgoing *out)
{
	ks_list_init(&out->lanes[0]);
	ks_list_init(&out->lanes[1]);
	ks_list_init(&out->finishing);
	ks_list_init(&out->flows);
}

struct ks_flow *ks_flow_new(void)
{
	struct ks_flow *flow = calloc(1, sizeof(*flow));

	if (!flow)
		return NULL;
	ks_list_init(&flow->node);
	ks_list_init(&flow->lines);
	return flow;
}

static void flow_free_if_done(struct ks_flow *flow)
{
	if (flow->released && flow->bytes == 0 && ks_list_empty(&flow->lines))
		free(flow);
}

void ks_flow_release(struct ks_flow *flow)
{
	if (!flow)
		return;
	flow->released = true;
	flow->drained = NULL;
	flow_free_if_done(flow);
}

/* `bytes` of the line are out, or given up. */
static void account(struct ks_outgoing *out, const struct ks_line *line, size_t bytes)
{
	out->lane_bytes[line->lane] -= bytes;
	if (line->flow)
		line->flow->bytes -= bytes;
}

/* The line is out of its list and all its bytes are accounted for. */
static void line_free(struct ks_outgoing *out, struct ks_line *line)
{
	struct ks_flow *flow = line->flow;

	if (line->kind == KS_LINE_REPLY)
		out->reply_cost -= cost(line);
	else if (line->lane == KS_LANE_EVENT)
		out->event_cost -= cost(line);
	free(line);
	if (!flow)
		return;
	if (ks_list_empty(&flow->lines))
		ks_list_remove(&flow->node);
	flow_free_if_done(flow);
}

static void discard(struct ks_outgoing *out, struct ks_line *line)
{
	ks_list_remove(&line->node);
	account(out, line, line->len);
	line_free(out, line);
}

static void discard_list(struct ks_outgoing *out, struct ks_list *lines)
{
	while (!ks_list_empty(lines))
		discard(out, line_at(lines->next));
}

static void discard_flows(struct ks_outgoing *out, struct ks_list *ring)
{
	while (!ks_list_empty(ring)) {
		struct ks_flow *flow = KS_ENTRY(ring->next, struct ks_flow, node);
		bool last;
		do {
			struct ks_line *line = line_at(flow->lines.next);
			last = line->node.next == &flow->lines;
			discard(out, line); /* with the last one the flow leaves the ring, and may be gone */
		} while (!last);
	}
}

void ks_outgoing_free(struct ks_outgoing *out)
{
	out->dead = true;
	if (out->current) {
		struct ks_line *line = KS_TAKE_PTR(out->current);
		account(out, line, line->len - out->written);
		line_free(out, line);
	}
	discard_list(out, &out->lanes[0]);
	discard_list(out, &out->lanes[1]);
	discard_flows(out, &out->finishing);
	discard_flows(out, &out->flows);
}

static void lose(struct ks_outgoing *out)
{
	if (out->dead)
		return;
	ks_outgoing_free(out);
	if (out->lost)
		out->lost(out->arg);
}

/* Only lines that nobody has begun to write are in the list, so any of them can go. */
static void drop_oldest(struct ks_outgoing *out)
{
	struct ks_list *head = &out->lanes[KS_LANE_EVENT];

	for (struct ks_list *node = head->next, *next; node != head && out->event_cost > KS_EVENT_DROPPABLE_MAX;
	     node = next) {
		next = node->next;
		if (line_at(node)->kind != KS_LINE_DROPPABLE)
			continue;
		discard(out, line_at(node));
		out->lines_dropped++;
	}
}

static struct ks_line *line_new(const struct ks_piece *pieces, size_t count)
{
	size_t len = 1;

	for (size_t i = 0; i < count; i++)
		len += pieces[i].len;
	struct ks_line *line = malloc(sizeof(*line) + len);
	if (!line)
		return NULL;
	char *to = line->data;
	for (size_t i = 0; i < count; i++) {
		if (pieces[i].len > 0)
			memcpy(to, pieces[i].data, pieces[i].len);
		to += pieces[i].len;
	}
	*to = '\n';
	line->len = len;
	return line;
}

static void append_to_flow(struct ks_outgoing *out, struct ks_flow *flow, struct ks_line *line)
{
	if (line->kind == KS_LINE_REPLY) {
		flow->finishing = true;
		ks_list_remove(&flow->node);
	}
	if (ks_list_empty(&flow->node))
		ks_list_append(flow->finishing ? &out->finishing : &out->flows, &flow->node);
	ks_list_append(&flow->lines, &line->node);
	flow->bytes += line->len;
}

int ks_outgoing_push(struct ks_outgoing *out, enum ks_lane lane, struct ks_flow *flow, enum ks_line_kind kind,
		     const struct ks_piece *pieces, size_t count)
{
	if (out->dead)
		return 0;
	if (flow && kind == KS_LINE_REPLY && ks_list_empty(&flow->lines)) {
		flow = NULL; /* nothing to be behind of: the line being written, if it is this run's, comes first anyway */
		lane = KS_LANE_CONTROL;
	}
	struct ks_line *line = line_new(pieces, count);
	if (!line) {
		if (kind == KS_LINE_REPLY)
			lose(out);
		return -ENOMEM;
	}
	line->flow = flow;
	line->lane = lane;
	line->kind = kind;
	out->urgent |= kind != KS_LINE_PATIENT;
	out->lane_bytes[lane] += line->len;
	if (kind == KS_LINE_REPLY)
		out->reply_cost += cost(line);
	else if (lane == KS_LANE_EVENT)
		out->event_cost += cost(line);
	if (flow)
		append_to_flow(out, flow, line);
	else
		ks_list_append(&out->lanes[lane == KS_LANE_CONTROL ? KS_LANE_CONTROL : KS_LANE_EVENT], &line->node);
	if (out->event_cost > KS_EVENT_DROPPABLE_MAX)
		drop_oldest(out);
	if (out->reply_cost + out->event_cost > KS_UNSENT_LOST)
		lose(out);
	return 0;
}

/* The line's first bytes are out: from now on it is `current`, whatever comes. A flow with more lines goes to the end
 * of its ring, so that they take turns; one without leaves it. */
static void begin(struct ks_outgoing *out, struct ks_line *line)
{
	struct ks_flow *flow = line->flow;

	out->current = line;
	out->written = 0;
	ks_list_remove(&line->node);
	if (!flow)
		return;
	ks_list_remove(&flow->node);
	if (!ks_list_empty(&flow->lines))
		ks_list_append(flow->finishing ? &out->finishing : &out->flows, &flow->node);
}

/* Who is to be told that some bytes of a flow went out. */
struct told {
	void (*drained)(void *arg);
	void *arg;
};

static struct told wrote(struct ks_outgoing *out, size_t bytes)
{
	struct ks_line *line = out->current;
	const struct told told = { line->flow ? line->flow->drained : NULL, line->flow ? line->flow->arg : NULL };

	out->written += bytes;
	out->bytes_sent += bytes;
	account(out, line, bytes);
	if (out->written == line->len) {
		out->current = NULL;
		out->lines_sent++;
		line_free(out, line);
	}
	return told;
}

/* The lines that come next, in order, as far as it is known before any of them is out: of flows that take turns only the first line. */
static size_t gather(const struct ks_outgoing *out, struct ks_line *ret[TOGETHER])
{
	const struct ks_list *ring = ks_list_empty(&out->finishing) ? &out->flows : &out->finishing;
	size_t count = 0;

	if (out->current)
		ret[count++] = out->current;
	for (int lane = 0; lane < 2; lane++)
		for (struct ks_list *n = out->lanes[lane].next; n != &out->lanes[lane] && count < TOGETHER; n = n->next)
			ret[count++] = line_at(n);
	if (ks_list_empty(ring))
		return count;
	const struct ks_flow *flow = KS_ENTRY(ring->next, struct ks_flow, node);
	const bool alone = flow->node.next == ring;
	for (struct ks_list *n = flow->lines.next; n != &flow->lines && count < TOGETHER; n = n->next) {
		ret[count++] = line_at(n);
		if (!alone)
			break;
	}
	return count;
}

/* One write for all of them: a client that waits is woken once. Those who are told may queue and drop lines, so they are told last. */
static ssize_t write_some(struct ks_outgoing *out, struct ks_line *const *lines, size_t count)
{
	struct ks_piece pieces[TOGETHER];
	struct told told[TOGETHER];
	size_t told_count = 0;

	for (size_t i = 0; i < count; i++)
		pieces[i] = (struct ks_piece){ lines[i]->data, lines[i]->len };
	if (out->current) {
		pieces[0].data = lines[0]->data + out->written;
		pieces[0].len -= out->written;
	}
	ssize_t n = out->write(out->arg, pieces, count);
	for (size_t i = 0, left = n > 0 ? (size_t)n : 0; left > 0; i++) {
		size_t part = left < pieces[i].len ? left : pieces[i].len;
		if (!out->current)
			begin(out, lines[i]);
		told[told_count++] = wrote(out, part);
		left -= part;
	}
	for (size_t i = 0; i < told_count; i++)
		if (told[i].drained)
			told[i].drained(told[i].arg);
	return n;
}

bool ks_outgoing_flush(struct ks_outgoing *out, size_t budget)
{
	while (!out->dead && budget > 0) {
		struct ks_line *lines[TOGETHER];
		size_t count = gather(out, lines);
		if (count == 0) {
			out->urgent = false;
			return false;
		}
		ssize_t n = write_some(out, lines, count);
		if (n == -EAGAIN)
			return true;
		if (n <= 0) {
			lose(out);
			return false;
		}
		budget = budget > (size_t)n ? budget - (size_t)n : 0;
	}
	return !ks_outgoing_empty(out);
}

bool ks_outgoing_empty(const struct ks_outgoing *out)
{
	return !out->current && ks_list_empty(&out->lanes[0]) && ks_list_empty(&out->lanes[1]) &&
	       ks_list_empty(&out->finishing) && ks_list_empty(&out->flows);
}

bool ks_outgoing_busy(const struct ks_outgoing *out)
{
	return out->reply_cost > KS_REPLIES_BUSY || out->lane_bytes[KS_LANE_OUTPUT] > KS_OUTPUT_BUSY;
}
