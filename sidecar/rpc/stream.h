/* stream.h: the notifications of one run while it runs: run/started and run/output. Owns the bytes that are not in a
 * line yet, the run's flow in the outgoing queue, sequence numbers, and the credit of lossless streams.
 *
 * live:     never holds the box up. When more than KS_STREAM_WINDOW bytes of the run's lines are unsent, chunks are
 *           dropped; the next chunk's offset shows the gap.
 * lossless: ks_stream_room() tells how many bytes the caller may read from the box. The client's credit counts raw
 *           bytes, of both streams together. A code point is never split, so up to 3 bytes of credit may stay unused:
 *           a client must not wait for its window to be used up to the last byte.
 * off:      only run/started, and the place for the reply. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/list.h"
#include "proto/messages.h"
#include "rpc/outgoing.h"

#define KS_STREAM_WINDOW ((size_t)256 << 10)	  /* live: unsent line bytes; lossless: unsent line bytes and first credit */
#define KS_STREAM_WINDOW_BUSY ((size_t)4 << 10)	  /* lossless: instead, while the connection's output is above KS_OUTPUT_BUSY */
#define KS_STREAM_CREDIT_MAX ((size_t)1 << 30)	  /* outstanding credit is capped here */
#define KS_STREAM_CHUNK ((size_t)16 << 10)	  /* raw bytes of a chunk */
#define KS_STREAM_HELD_MAX ((size_t)2 << 20)	  /* lossless: bytes fed beyond the room that wait for credit */
#define KS_STREAM_FLUSH_US 5000			  /* after the first byte of a chunk */
#define KS_STREAM_FINISH_US 1000000		  /* lossless: how long unsent output waits for credit after the exit */

struct ks_stream;

/* All streams of a connection: one alarm serves them all. */
struct ks_streams {
	struct ks_outgoing *out;
	size_t max_line;		     /* bytes of a line to the client, LF included */
	struct ks_list waiting;		     /* struct ks_stream that has a due time */
	void (*alarm)(void *arg, int64_t at_us); /* asks for ks_streams_tick() at that time of ks_now_us() */
	void *arg;
	uint64_t chunks_dropped;
	bool silent; /* nobody reads run/started */
};

void ks_streams_init(struct ks_streams *streams);
void ks_streams_tick(struct ks_streams *streams, int64_t now_us);

struct ks_stream_options {
	int mode;     /* enum ks_stream_mode */
	int encoding; /* enum ks_encoding */
	const char *run_id;
	/* Lossless: there is room again after ks_stream_room() said 0. Must not free the stream. */
	void (*room)(void *arg);
	void *arg;
};

struct ks_stream *ks_stream_new(struct ks_streams *streams, const struct ks_stream_options *options,
				struct ks_error *err);
/* What is queued is still sent, what is not is thrown away. NULL is fine. */
void ks_stream_free(struct ks_stream *stream);

/* run/started. `request_id` as JSON text; NULL handles are left out. */
void ks_stream_started(struct ks_stream *stream, const char *request_id, const char *session_id, const char *kernel_id,
		       const char *shell_id);
/* Bytes that came from the box, all of them, in order. Takes any amount in any mode; what a lossless stream is fed
 * beyond its room waits for credit (to KS_STREAM_HELD_MAX, then it is dropped and the offset shows it). */
void ks_stream_feed(struct ks_stream *stream, enum ks_output which, const void *data, size_t len);
/* run/display, behind all that was fed before it. `members`: what comes after runId and seq, one at least; its content
 * is taken. A live stream that is behind drops it, a lossless one keeps it until its turn. */
void ks_stream_display(struct ks_stream *stream, struct ks_buf *members);
/* run/inputWanted, behind all that can be sent of what was fed before it. One too many for the window is dropped. */
void ks_stream_input_wanted(struct ks_stream *stream, const char *prompt, size_t len, bool password);
/* Raw bytes that the caller may read from the box now; SIZE_MAX unless lossless. */
size_t ks_stream_room(struct ks_stream *stream);
void ks_stream_credit(struct ks_stream *stream, uint64_t bytes); /* run/credit */
/* The run has ended and all its output was fed. `done` is called once, perhaps before this returns, when everything
 * is queued: only lossless streams can wait (for credit, KS_STREAM_FINISH_US at most). It may free the stream. */
void ks_stream_finish(struct ks_stream *stream, void (*done)(void *arg), void *arg);
/* The run's place in the outgoing queue. */
struct ks_flow *ks_stream_flow(struct ks_stream *stream);
