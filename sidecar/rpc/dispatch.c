/* dispatch.c: from a line to a handler, and from a handler's answer to a line. Every request gets exactly one reply:
 * a struct ks_request is a reply that is owed, and replying frees it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "proto/write.h"
#include "server_private.h"

#define PIECE(text) { (text), strlen(text) }
#define REPLY_HEAD "{\"jsonrpc\":\"2.0\",\"id\":"

/* ---- lines out ---- */

static void write_error(struct ks_buf *line, const struct ks_error *err, const struct ks_buf *details, bool with_hint)
{
	ks_write_open(line, '{');
	ks_write_key_int(line, "code", ks_reason_number(err->reason));
	ks_write_key_string(line, "message", err->text);
	ks_write_key(line, "data");
	ks_write_open(line, '{');
	ks_write_key_string(line, "reason", ks_reason_name(err->reason));
	ks_write_key_string(line, "path", err->pointer[0] ? err->pointer : NULL);
	if (err->sys_errno)
		ks_write_key_int(line, "errno", err->sys_errno);
	ks_write_key_string(line, "step", err->step[0] ? err->step : NULL);
	ks_write_key_string(line, "hint", with_hint && err->hint[0] ? err->hint : NULL);
	ks_write_key_bool(line, "retryable", ks_reason_retryable(err->reason));
	if (details && details->len > 0) {
		ks_write_key(line, "details");
		ks_write_raw(line, details->data, details->len);
	}
	ks_write_close(line, '}');
	ks_write_close(line, '}');
}

/* The smallest line that we allow (4 KiB) holds any error without its hint and details: at most six bytes for each of
 * its text's, pointer's and step's, and for the id's. */
static void send_error(struct ks_server *server, const char *id, const struct ks_error *err, const struct ks_buf *details)
{
	KS_AUTOBUF struct ks_buf line = { 0 };

	for (int round = 0; round < 2; round++) {
		ks_buf_clear(&line);
		ks_buf_str(&line, REPLY_HEAD);
		ks_buf_str(&line, id);
		ks_buf_str(&line, ",\"error\":");
		write_error(&line, err, round == 0 ? details : NULL, round == 0);
		ks_buf_char(&line, '}');
		if (line.len < server->max_line)
			break;
	}
	struct ks_piece piece = { line.data, line.len };
	static const char no_memory[] = "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32603,\"message\":"
					"\"out of memory\",\"data\":{\"reason\":\"internal\",\"retryable\":false}}}";
	if (line.failed)
		piece = (struct ks_piece){ no_memory, sizeof(no_memory) - 1 };
	(void)ks_outgoing_push(&server->outgoing, KS_LANE_CONTROL, NULL, KS_LINE_REPLY, &piece, 1);
}

static void notify(struct ks_server *server, enum ks_lane lane, struct ks_flow *flow, enum ks_line_kind kind, const char *method,
		   struct ks_buf *params_json)
{
	struct ks_piece pieces[] = { PIECE("{\"jsonrpc\":\"2.0\",\"method\":\""), PIECE(method), PIECE("\",\"params\":"),
				     { params_json->data, params_json->len }, PIECE("}") };
	size_t len = 1;

	for (size_t i = 0; i < KS_COUNT(pieces); i++)
		len += pieces[i].len;
	if (params_json->failed || len > server->max_line)
		ks_log(KS_LOG_ERROR, "notification_lost", "a %s of %zu bytes does not fit a line of %zu bytes", method,
		       len, server->max_line);
	else if (server->phase != KS_PHASE_NEW && !server->face)
		(void)ks_outgoing_push(&server->outgoing, lane, flow, kind, pieces, KS_COUNT(pieces));
	ks_buf_free(params_json);
}

void ks_notify(struct ks_server *server, enum ks_lane lane, enum ks_line_kind kind, const char *method, struct ks_buf *params_json)
{
	notify(server, lane, NULL, kind, method, params_json);
}

void ks_notify_in_flow(struct ks_server *server, struct ks_flow *flow, const char *method, struct ks_buf *params_json)
{
	notify(server, KS_LANE_OUTPUT, flow, KS_LINE_NOTE, method, params_json);
}

/* ---- requests ---- */

/* Ids are compared by their text: proto/envelope.h makes equal ids equal texts. FNV-1a. */
static struct ks_list *bucket_of(struct ks_server *server, const char *id)
{
	uint64_t hash = 14695981039346656037u;

	for (; *id; id++)
		hash = (hash ^ (unsigned char)*id) * 1099511628211u;
	return &server->live[(hash ^ hash >> 32) & (KS_ID_BUCKETS - 1)];
}

static struct ks_request *find_request(struct ks_server *server, const char *id)
{
	struct ks_list *bucket = bucket_of(server, id);

	for (struct ks_list *node = bucket->next; node != bucket; node = node->next) {
		struct ks_request *request = KS_ENTRY(node, struct ks_request, node);
		if (strcmp(request->id, id) == 0)
			return request;
	}
	return NULL;
}

static struct ks_request *request_new(struct ks_server *server, const struct ks_method *method, const char *id)
{
	struct ks_request *request = calloc(1, sizeof(*request));

	if (!request)
		return NULL;
	request->id = strdup(id);
	if (!request->id) {
		free(request);
		return NULL;
	}
	request->server = server;
	request->method = method;
	ks_list_append(bucket_of(server, id), &request->node);
	server->live_count++;
	return request;
}

static void free_params(const struct ks_method *method, void *params)
{
	if (!params)
		return;
	ks_params_free(method->params, params);
	free(params);
}

static void request_free(struct ks_request *request)
{
	struct ks_server *server = request->server;

	if (server->current == request)
		server->current = NULL;
	ks_list_remove(&request->node);
	server->live_count--;
	free_params(request->method, request->params);
	free(request->progress.token);
	free(request->answer);
	free(request->id);
	free(request);
}

static void free_answer(struct ks_face_answer *answer)
{
	ks_list_remove(&answer->node);
	ks_buf_free(&answer->json);
	free(answer);
}

void ks_dispatch_free(struct ks_server *server)
{
	for (size_t i = 0; i < KS_ID_BUCKETS; i++)
		while (!ks_list_empty(&server->live[i]))
			request_free(KS_ENTRY(server->live[i].next, struct ks_request, node));
	while (!ks_list_empty(&server->answers))
		free_answer(KS_ENTRY(server->answers.next, struct ks_face_answer, node));
}

const char *ks_request_id(const struct ks_request *request)
{
	return request->id;
}

struct ks_server *ks_request_server(const struct ks_request *request)
{
	return request->server;
}

void ks_request_keep_params(struct ks_request *request)
{
	struct ks_server *server = request->server;

	if (server->current == request)
		request->params = KS_TAKE_PTR(server->current_params);
}

static void tell_cancel(struct ks_request *request)
{
	if (!request->cancelled || request->cancel_told || !request->on_cancel)
		return;
	request->cancel_told = true;
	request->on_cancel(request->cancel_arg); /* may reply */
}

void ks_request_on_cancel(struct ks_request *request, void (*fn)(void *arg), void *arg)
{
	request->on_cancel = fn;
	request->cancel_arg = arg;
	tell_cancel(request);
}

/* ---- replies ---- */

size_t ks_request_room(const struct ks_request *request)
{
	/* {"jsonrpc":"2.0","id":…,"result":…} and the LF */
	return request->server->max_line - strlen(REPLY_HEAD) - strlen(request->id) - strlen(",\"result\":") - 2;
}

/* One of `json` (its content is taken) and `err`. */
static void answer_face(struct ks_server *server, struct ks_face_answer *answer, struct ks_buf *json, const struct ks_error *err)
{
	answer->failed = err != NULL;
	if (err)
		answer->error = *err;
	else
		answer->json = KS_TAKE(*json, (struct ks_buf){ 0 });
	ks_list_append(&server->answers, &answer->node);
}

static void finish(struct ks_request *request, struct ks_buf *json, const struct ks_error *err)
{
	if (request->answer)
		answer_face(request->server, KS_TAKE_PTR(request->answer), json, err);
	request_free(request);
}

void ks_reply_error_details(struct ks_request *request, const struct ks_error *err, struct ks_buf *details)
{
	ks_progress_end(request);
	if (!request->answer)
		send_error(request->server, request->id, err, details);
	ks_buf_free(details);
	finish(request, NULL, err);
}

void ks_reply_error(struct ks_request *request, const struct ks_error *err)
{
	ks_reply_error_details(request, err, &(struct ks_buf){ 0 });
}

static void reply(struct ks_request *request, struct ks_flow *flow, struct ks_buf *json)
{
	struct ks_piece pieces[] = { PIECE(REPLY_HEAD), PIECE(request->id), PIECE(",\"result\":"),
				     { json->data, json->len }, PIECE("}") };
	struct ks_error err;

	if (json->failed) {
		(void)ks_fail(&err, KS_E_INTERNAL, "out of memory while writing the result");
	} else if (json->len > ks_request_room(request)) {
		(void)ks_fail(&err, KS_E_INTERNAL, "the result of %s has %zu bytes and does not fit a line of %zu bytes",
			      request->method->name, json->len, request->server->max_line);
		(void)ks_error_hint(&err, "raise capabilities.maxLineBytes in initialize");
		ks_log(KS_LOG_ERROR, "reply_too_long", "%s", err.text);
	} else {
		ks_progress_end(request);
		if (!request->answer)
			(void)ks_outgoing_push(&request->server->outgoing, flow ? KS_LANE_OUTPUT : KS_LANE_CONTROL, flow,
					       KS_LINE_REPLY, pieces, KS_COUNT(pieces));
		finish(request, json, NULL);
		ks_buf_free(json);
		return;
	}
	ks_buf_free(json);
	ks_reply_error(request, &err);
}

void ks_reply(struct ks_request *request, struct ks_buf *json_object)
{
	reply(request, NULL, json_object);
}

void ks_reply_behind(struct ks_request *request, struct ks_stream *stream, struct ks_buf *json_object)
{
	reply(request, stream ? ks_stream_flow(stream) : NULL, json_object);
}

/* ---- lines in ---- */

void ks_server_handle(struct ks_server *server, const char *method, ks_handler *fn, void *arg)
{
	if (server->handler_count == KS_HANDLERS_MAX)
		abort(); /* a mistake in our own start-up code */
	server->handlers[server->handler_count].method = ks_method_find(method);
	server->handlers[server->handler_count].fn = fn;
	server->handlers[server->handler_count++].arg = arg;
}

static int check_phase(const struct ks_server *server, const struct ks_method *method, struct ks_error *err)
{
	bool initialize = strcmp(method->name, "initialize") == 0;

	if (server->phase == KS_PHASE_NEW && !initialize && !method->before_initialize) {
		(void)ks_fail(err, KS_E_NOT_INITIALIZED, "%s came before initialize", method->name);
		return ks_error_hint(err, "send initialize first: {\"protocolVersion\":1,\"client\":{\"name\":\"…\",\"version\":\"…\"}}");
	}
	if (server->phase != KS_PHASE_NEW && initialize)
		return ks_fail(err, KS_E_INVALID_REQUEST, "initialize was sent twice");
	if (server->phase == KS_PHASE_SHUTDOWN && method->kind == KS_REQUEST)
		return ks_fail(err, KS_E_INVALID_REQUEST, "%s came after shutdown; only exit may follow", method->name);
	return 0;
}

static int check_load(struct ks_server *server, const struct ks_method *method, const char *id, struct ks_error *err)
{
	if (find_request(server, id))
		return ks_fail(err, KS_E_DUPLICATE_ID, "the id %s belongs to a request that has no reply yet", id);
	if (server->live_count >= KS_LIVE_REQUESTS_MAX)
		return ks_fail(err, KS_E_OVERLOADED, "%zu requests have no reply yet", server->live_count);
	if (method->lane == KS_METHOD_WORK && ks_outgoing_busy(&server->outgoing)) {
		(void)ks_fail(err, KS_E_OVERLOADED, "the client does not read: too much is unsent for new work");
		return ks_error_hint(err, "read replies, then send the request again");
	}
	return 0;
}

/* $/cancel is ours: handlers only hear of it through ks_request_on_cancel(). */
static void cancel(struct ks_server *server, const struct ks_cancel_params *params)
{
	struct ks_request *request = find_request(server, params->id);

	if (!request)
		return; /* unknown, or already answered: not an error */
	request->cancelled = true;
	tell_cancel(request);
}

static void call(struct ks_server *server, size_t handler, struct ks_request *request, void *params)
{
	const struct ks_method *method = server->handlers[handler].method;

	server->current = request;
	server->current_params = params;
	server->handlers[handler].fn(server->handlers[handler].arg, request, params);
	server->current = NULL;
	free_params(method, KS_TAKE_PTR(server->current_params));
}

static int find_handler(const struct ks_server *server, const struct ks_method *method, size_t *ret,
			struct ks_error *err)
{
	for (size_t i = 0; i < server->handler_count; i++)
		if (server->handlers[i].method == method) {
			*ret = i;
			return 0;
		}
	return ks_fail(err, KS_E_UNKNOWN_METHOD, "%s is not in this build", method->name);
}

/* From here on the request's reply is the handler's business. */
static int dispatch(struct ks_server *server, const struct ks_envelope *envelope, struct ks_error *err)
{
	const struct ks_method *method = ks_method_for_client(envelope->method, envelope->has_id, err);
	struct ks_request *request = NULL;
	size_t handler = 0;

	if (!method || check_phase(server, method, err) < 0 ||
	    (envelope->has_id && check_load(server, method, envelope->id, err) < 0))
		return -1;
	bool is_cancel = strcmp(method->name, "$/cancel") == 0, is_exit = strcmp(method->name, "exit") == 0;
	if (!is_cancel && !is_exit && find_handler(server, method, &handler, err) < 0)
		return -1;
	void *params = calloc(1, method->params->size ? method->params->size : 1);
	if (!params)
		return ks_fail(err, KS_E_INTERNAL, "no memory for the request");
	if (ks_decode(method->params, envelope->params, params, err) < 0) {
		free(params);
		return -1;
	}
	if (is_cancel || is_exit) {
		if (is_cancel)
			cancel(server, params);
		else
			ks_server_close_soon(server);
		free_params(method, params);
		return 0;
	}
	if (envelope->has_id && !(request = request_new(server, method, envelope->id))) {
		free_params(method, params);
		return ks_fail(err, KS_E_INTERNAL, "no memory for the request");
	}
	if (request)
		ks_progress_begin(request, envelope);
	if (strcmp(method->name, "shutdown") == 0)
		server->phase = KS_PHASE_SHUTDOWN;
	call(server, handler, request, params);
	return 0;
}

/* ---- the requests of a face ---- */

static void face_id(uint64_t number, char id[32])
{
	(void)snprintf(id, 32, "\"face-%llu\"", (unsigned long long)number);
}

/* `*answer` becomes the request's. */
static int face_request(struct ks_server *server, const struct ks_method *method, struct json_object *json, const char *id,
			struct ks_face_answer **answer, struct ks_error *err)
{
	size_t handler = 0;

	if (check_load(server, method, id, err) < 0 || find_handler(server, method, &handler, err) < 0)
		return -1;
	void *params = calloc(1, method->params->size ? method->params->size : 1);
	if (!params)
		return ks_fail(err, KS_E_INTERNAL, "no memory for the request");
	if (ks_decode(method->params, json, params, err) < 0) {
		free(params);
		return -1;
	}
	struct ks_request *request = request_new(server, method, id);
	if (!request) {
		free_params(method, params);
		return ks_fail(err, KS_E_INTERNAL, "no memory for the request");
	}
	request->answer = KS_TAKE_PTR(*answer);
	call(server, handler, request, params);
	return 0;
}

uint64_t ks_server_call(struct ks_server *server, const char *method, struct json_object *params, ks_answer *fn, void *arg)
{
	struct ks_face_answer *answer = calloc(1, sizeof(*answer));
	const uint64_t number = ++server->face_calls;
	struct ks_error err;
	char id[32];

	if (!answer)
		abort(); /* a kilobyte; and without it nobody would ever hear of this */
	answer->fn = fn;
	answer->arg = arg;
	face_id(number, id);
	if (face_request(server, ks_method_find(method), params, id, &answer, &err) < 0)
		answer_face(server, answer, NULL, &err);
	return number;
}

void ks_dispatch_deliver(struct ks_server *server)
{
	while (!ks_list_empty(&server->answers)) {
		struct ks_face_answer *answer = KS_ENTRY(server->answers.next, struct ks_face_answer, node);
		answer->fn(answer->arg, answer->failed ? NULL : &answer->json, answer->failed ? &answer->error : NULL);
		free_answer(answer);
	}
}

void ks_server_cancel(struct ks_server *server, uint64_t number)
{
	char id[32];

	face_id(number, id);
	cancel(server, &(struct ks_cancel_params){ .id = id });
}

void ks_server_send(struct ks_server *server, enum ks_lane lane, struct ks_buf *line)
{
	struct ks_piece piece = { line->data, line->len };

	if (line->failed)
		ks_log(KS_LOG_ERROR, "reply_lost", "out of memory while writing a line");
	else
		(void)ks_outgoing_push(&server->outgoing, lane, NULL, lane == KS_LANE_CONTROL ? KS_LINE_REPLY : KS_LINE_NOTE, &piece, 1);
	ks_buf_free(line);
}

void ks_dispatch_line(struct ks_server *server, const char *line, size_t len)
{
	struct ks_envelope envelope = { 0 };
	struct ks_error err;

	if (server->closed)
		return;
	if (ks_envelope_parse(line, len, &envelope, &err) < 0) {
		send_error(server, envelope.has_id ? envelope.id : "null", &err, NULL);
		return;
	}
	if (dispatch(server, &envelope, &err) < 0) {
		if (envelope.has_id)
			send_error(server, envelope.id, &err, NULL);
		else
			ks_log(KS_LOG_WARN, "notification_refused", "%.64s: %s: %s", envelope.method,
			       ks_reason_name(err.reason), err.text);
	}
	ks_envelope_free(&envelope);
}

void ks_dispatch_too_long(struct ks_server *server)
{
	struct ks_error err;

	if (server->closed)
		return;
	(void)ks_fail(&err, KS_E_LINE_TOO_LONG, "a line of more than %zu bytes was thrown away", server->lines.max);
	(void)ks_error_hint(&err, "send large content in pieces with blob/write, then {\"blob\":{\"id\":…}}");
	send_error(server, "null", &err, NULL);
}
