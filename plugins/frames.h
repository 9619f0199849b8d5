/* frames.h: the result channel's wire format on the host's side. Pure functions over bytes: who reads and writes the
 * socket is the session. Everything that comes in is hostile. plugins/README.md describes the format. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "plugins/kern_plugin.h"

#define KS_FRAME_HEADER 24
#define KS_FRAME_PIECE 65536				     /* payload bytes in one datagram */
#define KS_FRAME_DATAGRAM (KS_FRAME_HEADER + KS_FRAME_PIECE) /* read with a buffer one byte larger and MSG_TRUNC */
#define KS_FRAME_BYTES ((size_t)64 << 20)		     /* payload of one frame */
#define KS_FRAME_PARTS 128
#define KS_FRAME_KEY 127 /* characters in a key */
#define KS_FRAMES_PER_CALL 1000

#define KS_FRAME_NO_ACK 1u /* the only flag */

/* Types that kern_plugin.h does not need to know. */
#define KS_FRAME_ACK 7u	  /* from the host only */
#define KS_FRAME_CELL 8u  /* from the host only: run this; beside it the descriptors that it needs */
#define KS_FRAME_RUN 9u	  /* from the host only: to a runner that waits (KERN_RUN_PARK) */
/* 10 is KS_JOIN_FORK of base/join.h */

enum ks_frames_status {
	KS_FRAMES_MORE,	    /* the datagram was a piece of a frame that is not complete yet */
	KS_FRAMES_COMPLETE, /* *ret is a frame, valid until the next feed; handle it, then send its ack */
	KS_FRAMES_DROPPED, /* complete but over the limit of frames: only ret->id and ret->call are set; send its ack */
	KS_FRAMES_CORRUPT, /* the channel broke the rules: close it. So says every later feed, too */
};

struct ks_frames {
	struct ks_buf payload;
	uint32_t id, total, call; /* of the frame that is being put together */
	uint8_t type;
	bool open; /* there is one */
	bool corrupt;
	bool limit; /* frames were dropped */
	bool no_ack; /* the newest one wants none */
	uint32_t last_id;
	unsigned count;	    /* frames begun in this call */
	const char *reason; /* why corrupt, for a log line; a constant */
	struct kern_part parts[KS_FRAME_PARTS];
};

/* An all-zero struct ks_frames is ready to use. */
enum ks_frames_status ks_frames_feed(struct ks_frames *frames, const void *datagram, size_t len,
				     struct kern_frame *ret);
/* A channel that lives longer than one call (a kernel): counts anew, ids go on. */
void ks_frames_next_call(struct ks_frames *frames);
void ks_frames_free(struct ks_frames *frames);
/* NULL: the frame has no part of that name. */
const struct kern_part *ks_frame_part(const struct kern_frame *frame, const char *key);
/* "0" to "255" of what the box says: other characters count nothing. */
int ks_frame_status(const struct kern_part *part);
/* A message of the host: one datagram, of at most KS_FRAME_PIECE bytes of parts. */
void ks_frames_write(uint32_t type, uint32_t call, const struct kern_part *parts, size_t count, struct ks_buf *datagram);
/* The datagram that tells the box that the frame has been recorded in its place in the output. */
void ks_frames_ack(uint32_t call, uint32_t id, uint8_t ret[static KS_FRAME_HEADER]);
