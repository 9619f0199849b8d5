/* mcp.c: lines, versions and everything but tools/call. Two eras on one connection: `initialize` (2024-11-05 to 2025-11-25), and since
 * 2026-07-28 requests that each name their version in _meta. Which one a request is of, the request says. */
#include "mcp.h"

#include <stdlib.h>
#include <string.h>

#include <json-c/json_object.h>

#include "base/clock.h"
#include "mcp_private.h"
#include "proto/envelope.h"
#include "proto/write.h"

#define MODERN "2026-07-28"
#define META_VERSION "io.modelcontextprotocol/protocolVersion"
#define UNSUPPORTED_VERSION (-32022)
#define TICK_MS 500 /* progress for those who wait */
#define PATIENCE_MS 2000 /* of tools/list for the session, which tells what interpreters there are */
#define SERVER_INFO "{\"name\":\"kern-sidecar\",\"title\":\"Local code sandbox\",\"version\":\"" KS_VERSION "\"}"

/* The newest first: the answer to a client that wants another one. */
static const char *const legacy[] = { "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05" };

static const char instructions[] =
	"Runs code in a local sandbox: every run_code call has a fresh box without network, as an ordinary user. Files in the workspace "
	"stay "
	"from call to call, processes and variables do not. Lines of tool results that begin with [ and a letter are the sandbox's own; "
	"what the code printed never begins like that.";

struct ks_mcp_list {
	struct ks_list node;
	char *id;
	bool modern;
};

/* ---- lines out ---- */

static void open_reply(struct ks_buf *line, const char *id)
{
	ks_write_open(line, '{');
	ks_write_key_string(line, "jsonrpc", "2.0");
	ks_write_key(line, "id");
	ks_write_raw(line, id, strlen(id));
}

void ks_mcp_reply(struct ks_mcp *mcp, const char *id, struct ks_buf *result)
{
	struct ks_buf line = { 0 };

	open_reply(&line, id);
	ks_write_key(&line, "result");
	ks_write_raw(&line, result->data, result->len);
	ks_write_close(&line, '}');
	line.failed |= result->failed;
	ks_buf_free(result);
	ks_server_send(mcp->app->server, KS_LANE_CONTROL, &line);
}

void ks_mcp_reply_error(struct ks_mcp *mcp, const char *id, int code, const char *message, const char *data)
{
	struct ks_buf line = { 0 };

	open_reply(&line, id);
	ks_write_key(&line, "error");
	ks_write_open(&line, '{');
	ks_write_key_int(&line, "code", code);
	ks_write_key_string(&line, "message", message);
	if (data) {
		ks_write_key(&line, "data");
		ks_write_raw(&line, data, strlen(data));
	}
	ks_write_close(&line, '}');
	ks_write_close(&line, '}');
	ks_server_send(mcp->app->server, KS_LANE_CONTROL, &line);
}

void ks_mcp_open_result(struct ks_buf *json, bool modern, const char *facts)
{
	ks_write_open(json, '{');
	if (modern)
		ks_write_key_string(json, "resultType", "complete");
	if (!modern && !facts)
		return;
	ks_write_key(json, "_meta");
	ks_write_open(json, '{');
	if (modern) {
		ks_write_key(json, "io.modelcontextprotocol/serverInfo");
		ks_write_raw(json, SERVER_INFO, strlen(SERVER_INFO));
	}
	if (facts) {
		ks_write_key(json, "kern-sidecar/result");
		ks_write_raw(json, facts, strlen(facts));
	}
	ks_write_close(json, '}');
}

/* ---- methods ---- */

static void initialize(struct ks_mcp *mcp, const char *id, struct json_object *params)
{
	const char *version = legacy[0];
	struct json_object *wanted;
	struct ks_buf json = { 0 };

	if (json_object_object_get_ex(params, "protocolVersion", &wanted) && json_object_is_type(wanted, json_type_string))
		for (size_t i = 0; i < KS_COUNT(legacy); i++)
			if (strcmp(json_object_get_string(wanted), legacy[i]) == 0)
				version = legacy[i];
	ks_mcp_open_result(&json, false, NULL);
	ks_write_key_string(&json, "protocolVersion", version);
	ks_write_key(&json, "capabilities");
	ks_write_raw(&json, "{\"tools\":{}}", strlen("{\"tools\":{}}"));
	ks_write_key(&json, "serverInfo");
	ks_write_raw(&json, SERVER_INFO, strlen(SERVER_INFO));
	ks_write_key_string(&json, "instructions", instructions);
	ks_write_close(&json, '}');
	ks_mcp_reply(mcp, id, &json);
}

/* The texts depend on the configuration of this process only. */
static void write_caching(struct ks_buf *json)
{
	ks_write_key_int(json, "ttlMs", 3600000);
	ks_write_key_string(json, "cacheScope", "private");
}

static void discover(struct ks_mcp *mcp, const char *id)
{
	struct ks_buf json = { 0 };

	ks_mcp_open_result(&json, true, NULL);
	ks_write_key(&json, "supportedVersions");
	ks_write_raw(&json, "[\"" MODERN "\"]", strlen("[\"" MODERN "\"]"));
	ks_write_key(&json, "capabilities");
	ks_write_raw(&json, "{\"tools\":{}}", strlen("{\"tools\":{}}"));
	ks_write_key_string(&json, "instructions", instructions);
	write_caching(&json);
	ks_write_close(&json, '}');
	ks_mcp_reply(mcp, id, &json);
}

static void answer_list(struct ks_mcp *mcp, const char *id, bool modern)
{
	const struct ks_mcp_tool *tool;
	struct ks_buf json = { 0 };

	ks_mcp_open_result(&json, modern, NULL);
	ks_write_key(&json, "tools");
	ks_write_open(&json, '[');
	for (size_t i = 0; (tool = ks_mcp_tool_at(i)); i++)
		ks_mcp_tool_write(mcp, tool, &json);
	ks_write_close(&json, ']');
	if (modern)
		write_caching(&json);
	ks_write_close(&json, '}');
	ks_mcp_reply(mcp, id, &json);
}

void ks_mcp_answer_lists(struct ks_mcp *mcp)
{
	mcp->told = true;
	(void)uv_timer_stop(&mcp->patience);
	while (!ks_list_empty(&mcp->lists)) {
		struct ks_mcp_list *list = KS_ENTRY(mcp->lists.next, struct ks_mcp_list, node);
		ks_list_remove(&list->node);
		answer_list(mcp, list->id, list->modern);
		free(list->id);
		free(list);
	}
}

static void on_patience(uv_timer_t *timer)
{
	ks_mcp_answer_lists(timer->data);
}

/* Once the session has been tried, or cannot be waited for any longer. */
static void tools_list(struct ks_mcp *mcp, const char *id, bool modern)
{
	struct ks_mcp_list *list = mcp->told ? NULL : calloc(1, sizeof(*list));

	if (list)
		list->id = strdup(id);
	if (!list || !list->id) {
		free(list);
		answer_list(mcp, id, modern);
		return;
	}
	list->modern = modern;
	ks_list_append(&mcp->lists, &list->node);
	if (!uv_is_active((uv_handle_t *)&mcp->patience))
		(void)uv_timer_start(&mcp->patience, on_patience, PATIENCE_MS, 0);
}

static void nothing(struct ks_mcp *mcp, const char *id, bool modern)
{
	struct ks_buf json = { 0 };

	ks_mcp_open_result(&json, modern, NULL);
	ks_write_close(&json, '}');
	ks_mcp_reply(mcp, id, &json);
}

/* ---- lines in ---- */

/* 0 legacy, 1 modern, -1 a version that nobody here speaks: answered. */
static int era_of(struct ks_mcp *mcp, const struct ks_envelope *envelope)
{
	struct json_object *meta, *version;
	KS_AUTOBUF struct ks_buf data = { 0 };

	if (!envelope->params || !json_object_object_get_ex(envelope->params, "_meta", &meta) ||
	    !json_object_is_type(meta, json_type_object) || !json_object_object_get_ex(meta, META_VERSION, &version))
		return 0;
	if (json_object_is_type(version, json_type_string) && strcmp(json_object_get_string(version), MODERN) == 0)
		return 1;
	ks_write_open(&data, '{');
	ks_write_key(&data, "supported");
	ks_write_raw(&data, "[\"" MODERN "\"]", strlen("[\"" MODERN "\"]"));
	if (json_object_is_type(version, json_type_string))
		ks_write_key_string(&data, "requested", json_object_get_string(version));
	ks_write_close(&data, '}');
	ks_buf_char(&data, '\0');
	if (envelope->has_id)
		ks_mcp_reply_error(mcp, envelope->id, UNSUPPORTED_VERSION, "Unsupported protocol version", data.data);
	return -1;
}

static void on_request(struct ks_mcp *mcp, const struct ks_envelope *envelope, bool modern)
{
	const char *method = envelope->method, *id = envelope->id;

	if (strcmp(method, "tools/call") == 0)
		ks_mcp_call_begin(mcp, id, envelope->params, modern);
	else if (strcmp(method, "tools/list") == 0)
		tools_list(mcp, id, modern);
	else if (strcmp(method, "initialize") == 0)
		initialize(mcp, id, envelope->params);
	else if (strcmp(method, "server/discover") == 0)
		discover(mcp, id);
	else if (strcmp(method, "ping") == 0)
		nothing(mcp, id, modern);
	else
		ks_mcp_reply_error(mcp, id, -32601, "Method not found", NULL);
}

static void on_notification(struct ks_mcp *mcp, const struct ks_envelope *envelope)
{
	struct json_object *id;
	char text[KS_ID_TEXT];

	if (strcmp(envelope->method, "notifications/cancelled") == 0 && envelope->params &&
	    json_object_object_get_ex(envelope->params, "requestId", &id) && ks_id_text(id, text, sizeof(text)) == 0)
		ks_mcp_call_cancel(mcp, text);
}

static void on_line(void *arg, const char *line, size_t len)
{
	struct ks_mcp *mcp = arg;
	struct ks_envelope envelope;
	struct ks_error err;

	if (ks_envelope_parse(line, len, &envelope, &err) < 0) {
		ks_mcp_reply_error(mcp, envelope.has_id ? envelope.id : "null", err.reason == KS_E_PARSE ? -32700 : -32600, err.text, NULL);
		return;
	}
	if (!envelope.has_id) {
		on_notification(mcp, &envelope);
	} else {
		int era = era_of(mcp, &envelope);
		if (era >= 0)
			on_request(mcp, &envelope, era == 1);
	}
	ks_envelope_free(&envelope);
}

static void on_too_long(void *arg)
{
	ks_mcp_reply_error(arg, "null", -32600, "a line of more than 8 MiB was thrown away", NULL);
}

/* ---- progress ---- */

static void tell_progress(struct ks_mcp_call *call, int64_t seconds)
{
	struct ks_buf line = { 0 };
	KS_AUTOBUF struct ks_buf message = { 0 };

	ks_buf_printf(&message, "%s, %lld s", call->waiting ? "the sandbox is being prepared" : "running", (long long)seconds);
	ks_buf_char(&message, '\0');
	call->told = seconds;
	ks_write_open(&line, '{');
	ks_write_key_string(&line, "jsonrpc", "2.0");
	ks_write_key_string(&line, "method", "notifications/progress");
	ks_write_key(&line, "params");
	ks_write_open(&line, '{');
	ks_write_key(&line, "progressToken");
	ks_write_raw(&line, call->token, strlen(call->token));
	ks_write_key_int(&line, "progress", seconds);
	ks_write_key_string(&line, "message", message.data);
	ks_write_close(&line, '}');
	ks_write_close(&line, '}');
	ks_server_send(call->mcp->app->server, KS_LANE_EVENT, &line);
}

static void on_tick(uv_timer_t *timer)
{
	struct ks_mcp *mcp = timer->data;
	const int64_t now = ks_now_us();

	for (struct ks_list *n = mcp->calls.next; n != &mcp->calls; n = n->next) {
		struct ks_mcp_call *call = KS_ENTRY(n, struct ks_mcp_call, node);
		const int64_t seconds = (now - call->began_us) / 1000000;
		if (call->token && !call->cancelled && seconds > call->told)
			tell_progress(call, seconds);
	}
}

/* ---- life ---- */

static const struct ks_face face = { on_line, on_too_long };

int ks_mcp_new(struct ks_app *app, const struct ks_mcp_config *config, struct ks_mcp **ret, struct ks_error *err)
{
	struct ks_mcp *mcp = calloc(1, sizeof(*mcp));

	if (!mcp)
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	mcp->app = app;
	mcp->config = config;
	ks_list_init(&mcp->calls);
	ks_list_init(&mcp->lists);
	(void)uv_timer_init(app->core->loop, &mcp->tick);
	(void)uv_timer_init(app->core->loop, &mcp->patience);
	mcp->open_handles = 2;
	mcp->tick.data = mcp->patience.data = mcp;
	(void)uv_timer_start(&mcp->tick, on_tick, TICK_MS, TICK_MS);
	uv_unref((uv_handle_t *)&mcp->tick);
	ks_server_set_face(app->server, &face, mcp, KS_MCP_ANSWER_BYTES);
	ks_mcp_prepare(mcp);
	*ret = mcp;
	return 0;
}

static void on_handle_closed(uv_handle_t *handle)
{
	struct ks_mcp *mcp = handle->data;

	if (--mcp->open_handles == 0)
		free(mcp);
}

void ks_mcp_free(struct ks_mcp *mcp)
{
	if (!mcp)
		return;
	while (!ks_list_empty(&mcp->calls))
		ks_mcp_call_free(KS_ENTRY(mcp->calls.next, struct ks_mcp_call, node));
	while (!ks_list_empty(&mcp->lists)) {
		struct ks_mcp_list *list = KS_ENTRY(mcp->lists.next, struct ks_mcp_list, node);
		ks_list_remove(&list->node);
		free(list->id);
		free(list);
	}
	ks_buf_free(&mcp->interpreters);
	uv_close((uv_handle_t *)&mcp->tick, on_handle_closed);
	uv_close((uv_handle_t *)&mcp->patience, on_handle_closed);
}
