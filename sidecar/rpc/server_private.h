/* server_private.h: what server.c (descriptors, loop) and dispatch.c (requests, replies) and the built-in methods
 * share. Nobody else includes it. */
#pragma once

#include "proto/envelope.h"
#include "proto/methods.h"
#include "rpc/channel.h"
#include "rpc/lines.h"
#include "rpc/methods.h"
#include "rpc/outgoing.h"
#include "rpc/server.h"

#define KS_ID_BUCKETS 1024 /* a power of two */
#define KS_HANDLERS_MAX 96

enum ks_phase { KS_PHASE_NEW, KS_PHASE_READY, KS_PHASE_SHUTDOWN };

/* An answer waits until the loop is about to sleep: whoever gives it is in the middle of something, and the face may ask for more. */
struct ks_face_answer {
	struct ks_list node;
	ks_answer *fn;
	void *arg;
	bool failed;
	struct ks_buf json;
	struct ks_error error;
};

struct ks_request {
	struct ks_list node; /* in its bucket */
	struct ks_server *server;
	const struct ks_method *method;
	char *id;     /* as JSON text */
	void *params; /* kept for the handler, or NULL */
	bool cancelled, cancel_told;
	void (*on_cancel)(void *arg);
	void *cancel_arg;
	struct ks_face_answer *answer; /* of a face's request, instead of a line */
	struct {
		char *token; /* as JSON text; NULL: nobody asked */
		const char *phase; /* NULL: nothing to tell, or it was told */
		int64_t done, total, told_us;
	} progress;
};

struct ks_server {
	uv_loop_t *loop;
	uv_poll_t in_poll, out_poll, host_poll;
	uv_idle_t in_idle;   /* instead of in_poll for what epoll refuses */
	uv_prepare_t prepare; /* before the loop sleeps: write */
	uv_timer_t stream_timer, closed_timer, patience_timer;
	unsigned open_handles;
	struct ks_channel in, out;
	int host_fd; /* pidfd of the process that initialize named, or -1 */
	int64_t alarm_us;

	struct ks_lines lines;
	struct ks_outgoing outgoing;
	struct ks_streams streams;
	bool out_waiting; /* out_poll is started */

	enum ks_phase phase;
	bool closed, freed, logging;
	void (*on_closed)(void *arg);
	void *closed_arg;

	struct ks_list live[KS_ID_BUCKETS]; /* struct ks_request by id */
	size_t live_count;
	struct ks_request *current; /* whose handler runs now */
	void *current_params;	    /* NULL once they were kept */
	struct {
		const struct ks_method *method;
		ks_handler *fn;
		void *arg;
	} handlers[KS_HANDLERS_MAX];
	size_t handler_count;

	size_t max_line;
	struct ks_limits limits;
	ks_welcome_fn *welcome;
	void *welcome_arg;
	ks_check_fn *check;
	void *check_arg;
	struct ks_blobs *blobs;
	const struct ks_face *face;
	void *face_arg;
	uint64_t face_calls;
	struct ks_list answers; /* struct ks_face_answer that the face has not got yet */
};

/* dispatch.c */
void ks_dispatch_line(struct ks_server *server, const char *line, size_t len);
void ks_dispatch_too_long(struct ks_server *server);
void ks_dispatch_free(struct ks_server *server); /* forgets all requests */
void ks_dispatch_deliver(struct ks_server *server); /* what a face waits for */
/* progress.c */
void ks_progress_begin(struct ks_request *request, const struct ks_envelope *envelope);
void ks_progress_end(struct ks_request *request); /* what was not told yet */
/* server.c */
void ks_server_close_soon(struct ks_server *server);
/* Closes when that process ends. A process that does not exist has ended. */
void ks_server_watch_host(struct ks_server *server, int64_t pid);
