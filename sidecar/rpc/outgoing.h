/* outgoing.h: the queue of lines to the client. Owns every line until its last byte is written; knows no file
 * descriptor (it is given a write function) and no JSON.
 *
 * Lanes, strict priority between whole lines: control (replies and all that must never wait), event (log, progress,
 * state), output. The output lane is made of flows, one a run: first in, first out inside a flow; flows take turns,
 * and a flow that ends in its run's reply goes before those that do not. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"

enum ks_lane { KS_LANE_CONTROL, KS_LANE_EVENT, KS_LANE_OUTPUT, KS_LANES };

#define KS_EVENT_DROPPABLE_MAX ((size_t)256 << 10) /* event lane: above it the oldest droppable lines go */
#define KS_REPLIES_BUSY ((size_t)16 << 20)	   /* unsent replies above it: new work is `overloaded` */
#define KS_OUTPUT_BUSY ((size_t)64 << 20)	   /* unsent output above it: the same, and streams hold back */
#define KS_PATIENCE_MS 1			   /* of lines that may wait for company */
#define KS_UNSENT_LOST ((size_t)64 << 20) /* unsent replies and events above it: the client is lost */

enum ks_line_kind {
	KS_LINE_REPLY,	   /* counted as a reply, in whatever lane */
	KS_LINE_NOTE,	   /* a notification that must arrive */
	KS_LINE_PATIENT,   /* the same, and it may wait KS_PATIENCE_MS for company: the client is then woken once */
	KS_LINE_DROPPABLE, /* a notification that may be dropped, oldest first, when the event lane is full */
};

/* A piece of a line, so that envelope and content need no copy of their own; and of what is written, a line. */
struct ks_piece {
	const void *data;
	size_t len;
};

#define KS_LINES_TOGETHER 16 /* at most in one write */

struct ks_line;
struct ks_outgoing;

/* One run's part of the output lane. Freed when it was released and its last line is gone. */
struct ks_flow {
	struct ks_list node;  /* in the ring of flows that have lines */
	struct ks_list lines; /* struct ks_line */
	size_t bytes;	      /* queued and not yet written, LFs included */
	bool finishing;	      /* a reply is queued behind the output */
	bool released;
	void (*drained)(void *arg); /* some bytes went out */
	void *arg;
};

struct ks_outgoing {
	/* Like writev(2), but -errno: -EAGAIN when there is no room now. Any other error loses the client. */
	ssize_t (*write)(void *arg, const struct ks_piece *pieces, size_t count);
	void (*lost)(void *arg); /* called once, from inside push or flush: it may only take a note */
	void *arg;
	struct ks_list lanes[2];	 /* struct ks_line: control, event */
	struct ks_list finishing, flows; /* struct ks_flow with lines: those with their reply first */
	struct ks_line *current;	 /* the line being written; nothing goes in between */
	size_t written;			 /* bytes of it that are out */
	size_t lane_bytes[KS_LANES];	 /* queued and not yet written; of `current` the part that is not */
	size_t reply_cost, event_cost;	 /* memory held by replies and by the event lane: what the caps are about */
	uint64_t lines_sent, bytes_sent, lines_dropped;
	bool urgent; /* among what is queued are lines that are not patient */
	bool dead; /* lost, or closed: everything is thrown away from now on */
};

void ks_outgoing_init(struct ks_outgoing *out);
void ks_outgoing_free(struct ks_outgoing *out); /* throws everything away; flows live until released */

struct ks_flow *ks_flow_new(void); /* NULL: no memory */
/* No more lines will come and `drained` is not called any more. What is queued is still sent. NULL is fine. */
void ks_flow_release(struct ks_flow *flow);

/* Queues the pieces and an LF as one line. `flow` for KS_LANE_OUTPUT, else NULL; a reply in a flow is the last line
 * of it. 0, or -ENOMEM (the line is not queued, and a reply then loses the client: it cannot be answered). */
int ks_outgoing_push(struct ks_outgoing *out, enum ks_lane lane, struct ks_flow *flow, enum ks_line_kind kind,
		     const struct ks_piece *pieces, size_t count);
/* Writes until all is out, the writer has no room, or `budget` bytes are gone. True: lines are left. */
bool ks_outgoing_flush(struct ks_outgoing *out, size_t budget);
bool ks_outgoing_empty(const struct ks_outgoing *out);
/* New work should be refused: the client does not read its replies. */
bool ks_outgoing_busy(const struct ks_outgoing *out);
