/* server.h: the counter of the post office. Owns the protocol's two descriptors, the requests that have no reply yet,
 * and the order of what is written. Knows which methods exist (proto/methods.h), not what they do.
 *
 * Main must ignore SIGPIPE (and give it back to what it starts). Nothing here blocks; reading never stops because
 * writing does. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/buf.h"
#include "base/error.h"
#include "rpc/outgoing.h"
#include "rpc/stream.h"

#define KS_LINE_IN_MAX ((size_t)8 << 20)   /* bytes of a client's line */
#define KS_LINE_OUT_DEFAULT ((size_t)32 << 10) /* bytes of our lines, LF included, until initialize says otherwise */
#define KS_LIVE_REQUESTS_MAX 131072	   /* requests without a reply; more are `overloaded` */

struct ks_server;
struct ks_request;

/* `request` is NULL for notifications. `params` is the struct of the method's table, freed after the return unless
 * ks_request_keep_params() was called. */
typedef void ks_handler(void *arg, struct ks_request *request, const void *params);

/* The descriptors belong to the server from now on, also on failure. -1 or a closed one is fine: that client is gone. */
int ks_server_new(uv_loop_t *loop, int fd_in, int fd_out, struct ks_server **ret, struct ks_error *err);
/* Tries once more to write what is queued, drops all requests without reply. The memory goes when the loop has run its
 * close callbacks. Fine in a handler. NULL is fine. */
void ks_server_free(struct ks_server *server);

void ks_server_handle(struct ks_server *server, const char *method, ks_handler *fn, void *arg);
/* stdin EOF, client lost, named host process gone, or `exit`: once, never from inside another call of this interface.
 * Replies can still be sent then (the end of stdin says nothing about stdout). */
void ks_server_on_closed(struct ks_server *server, void (*fn)(void *arg), void *arg);

/* `json_object`: the result. Its content is taken, also when it is marked failed (the reply is then `internal`). */
void ks_reply(struct ks_request *request, struct ks_buf *json_object);
void ks_reply_error(struct ks_request *request, const struct ks_error *err);
/* Same, with error.data.details: a JSON object. */
void ks_reply_error_details(struct ks_request *request, const struct ks_error *err, struct ks_buf *details);
/* Behind that run's queued output. `stream` may be NULL, and may be freed right after. */
void ks_reply_behind(struct ks_request *request, struct ks_stream *stream, struct ks_buf *json_object);

/* $/cancel for this request: called at most once, at once when it came before. `fn` may reply. */
void ks_request_on_cancel(struct ks_request *request, void (*fn)(void *arg), void *arg);
/* How far the request is: $/progress for a client that gave a progressToken, at most ten times a second, and once more at its end. total
 * -1: not known. `phase` lives on. */
void ks_request_progress(struct ks_request *request, const char *phase, int64_t done, int64_t total);
const char *ks_request_id(const struct ks_request *request); /* as JSON text: 7 or "abc" */
struct ks_server *ks_request_server(const struct ks_request *request);
/* The params stay valid until the reply. */
void ks_request_keep_params(struct ks_request *request);
/* How many bytes the JSON of the result may have so that its line can leave. */
size_t ks_request_room(const struct ks_request *request);

/* `params_json`: an object; its content is taken. KS_LANE_CONTROL or KS_LANE_EVENT; no reply. Before `initialize`: nothing. */
void ks_notify(struct ks_server *server, enum ks_lane lane, enum ks_line_kind kind, const char *method, struct ks_buf *params_json);
/* The same as a line of the output lane, behind the others of its flow. */
void ks_notify_in_flow(struct ks_server *server, struct ks_flow *flow, const char *method, struct ks_buf *params_json);

/* Writes what is queued at once, instead of at the end of this turn of the loop. */
void ks_server_write(struct ks_server *server);

/* ---- another protocol in front of the same methods ---- */

struct ks_face {
	void (*line)(void *arg, const char *line, size_t len); /* instead of the dispatcher */
	void (*too_long)(void *arg);
};

/* From the start: the client speaks something else. Requests then come from ks_server_call(), notifications of methods go nowhere.
 * `max_line`: how long the JSON of an answer may be; what does not fit is a blob. */
void ks_server_set_face(struct ks_server *server, const struct ks_face *face, void *arg, size_t max_line);

struct json_object;
/* The result's JSON text, valid during the call, or NULL and the error. */
typedef void ks_answer(void *arg, const struct ks_buf *json_object, const struct ks_error *err);
/* A request of the face, checked like any: `answer` is called once, from the loop. `params` is only read. */
uint64_t ks_server_call(struct ks_server *server, const char *method, struct json_object *params, ks_answer *answer, void *arg);
/* $/cancel for it; fine when it was answered. */
void ks_server_cancel(struct ks_server *server, uint64_t call);
/* A line of the face, without its LF; its content is taken. */
void ks_server_send(struct ks_server *server, enum ks_lane lane, struct ks_buf *line);

size_t ks_server_max_line(const struct ks_server *server);
struct ks_streams *ks_server_streams(struct ks_server *server);
const struct ks_outgoing *ks_server_outgoing(const struct ks_server *server); /* for stats/get */
size_t ks_server_live(const struct ks_server *server);			      /* requests without a reply */
bool ks_server_initialized(const struct ks_server *server);
