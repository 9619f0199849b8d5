/* calls.c: tools/call, from its arguments to its result. What a model can mend (arguments, missing files, a box that did not start) is
 * the result of a tool that failed; an error of the protocol is for the client's programmer. */
#include <stdlib.h>
#include <string.h>

#include <json-c/json_object.h>

#include "base/clock.h"
#include "mcp_private.h"
#include "proto/scan.h"
#include "proto/write.h"
#include "render/render.h"

void ks_mcp_call_free(struct ks_mcp_call *call)
{
	ks_list_remove(&call->node);
	ks_params_free(call->tool->arguments, &call->arguments);
	free(call->id);
	free(call->token);
	free(call);
}

/* ---- the result ---- */

static void reply(struct ks_mcp_call *call, const struct ks_buf *blocks, bool failed, struct ks_buf *facts, const struct ks_buf *structured)
{
	struct ks_buf json = { 0 };

	ks_buf_char(facts, '\0');
	ks_mcp_open_result(&json, call->modern, facts->len > 1 ? facts->data : NULL);
	ks_write_key(&json, "content");
	ks_write_open(&json, '[');
	ks_buf_add(&json, blocks->data, blocks->len);
	ks_write_close(&json, ']');
	ks_write_key_bool(&json, "isError", failed);
	if (structured && structured->len > 1) {
		ks_write_key(&json, "structuredContent");
		ks_write_raw(&json, structured->data, strnlen(structured->data, structured->len));
	}
	ks_write_close(&json, '}');
	json.failed |= blocks->failed;
	ks_mcp_reply(call->mcp, call->id, &json);
	ks_mcp_call_free(call);
}

void ks_mcp_call_fail_text(struct ks_mcp_call *call, const struct ks_buf *text)
{
	KS_AUTOBUF struct ks_buf blocks = { 0 }, facts = { 0 };

	ks_mcp_block(&blocks, text->data, text->len);
	reply(call, &blocks, true, &facts, NULL);
}

/* Fields of the methods, by the names that the model has given. */
static const char *argument(const char *pointer)
{
	static const char *const names[][2] = { { "/edits/0/oldText", "/old_text" }, { "/edits/0/newText", "/new_text" },
						{ "/lines/start", "/offset" },	     { "/lines/count", "/limit" },
						{ "/timeoutMs", "/timeout_s" } };

	for (size_t i = 0; i < KS_COUNT(names); i++)
		if (strcmp(pointer, names[i][0]) == 0)
			return names[i][1];
	return pointer;
}

void ks_mcp_call_fail(struct ks_mcp_call *call, const struct ks_error *err)
{
	KS_AUTOBUF struct ks_buf text = { 0 };
	const char *pointer = argument(err->pointer);

	KS_AUTOBUF struct ks_buf line = { 0 };

	ks_buf_printf(&line, "%s%s%s%s%s", pointer, pointer[0] ? ": " : "", err->text, err->hint[0] ? "; " : "", err->hint);
	ks_buf_printf(&text, "[error: %s] ", ks_reason_name(err->reason));
	ks_render_word(&text, line.data, line.len, KS_MCP_TEXT_CHARS); /* it may name a file of the box */
	ks_buf_char(&text, '\n');
	ks_mcp_call_fail_text(call, &text);
}

static void finish(struct ks_mcp_call *call, struct json_object *result, const struct ks_buf *json)
{
	KS_AUTOBUF struct ks_buf blocks = { 0 }, facts = { 0 };
	const struct ks_mcp_config *config = call->mcp->config;
	bool failed = call->tool->content(call, result, &blocks, &facts);

	reply(call, &blocks, failed, &facts, !config->structured ? NULL : call->tool->runs ? &facts : json);
}

/* A kernel or a session that ended by itself is opened anew by the next call. */
static void note_losses(struct ks_mcp *mcp, const struct ks_error *err)
{
	if (err->reason == KS_E_KERNEL_DEAD || strcmp(err->pointer, "/kernelId") == 0)
		ks_mcp_kernel_lost(mcp);
	if (err->reason == KS_E_UNKNOWN_HANDLE && strcmp(err->pointer, "/sessionId") == 0)
		for (int stage = 0; stage < KS_MCP_STAGES; stage++)
			mcp->stages[stage] = mcp->stages[stage] == KS_MCP_THERE ? KS_MCP_ABSENT : mcp->stages[stage];
}

static void on_answer(void *arg, const struct ks_buf *json, const struct ks_error *err)
{
	struct ks_mcp_call *call = arg;
	struct ks_error why;

	if (err)
		note_losses(call->mcp, err);
	if (call->cancelled) { /* such a request gets no answer */
		ks_mcp_call_free(call);
		return;
	}
	struct json_object *result = json ? ks_json_parse_own(json->data, json->len, &why) : NULL;
	if (!result) {
		ks_mcp_call_fail(call, json ? &why : err);
		return;
	}
	if (call->tool->content == ks_mcp_content_read && !call->asked_whole && ks_mcp_wants_whole(result)) {
		call->asked_whole = true;
		ks_mcp_call_start(call);
	} else {
		finish(call, result, json);
	}
	json_object_put(result);
}

void ks_mcp_call_start(struct ks_mcp_call *call)
{
	struct ks_mcp *mcp = call->mcp;
	struct json_object *params = json_object_new_object();
	const char *method = call->tool->request(call, params);
	const bool cell = strcmp(method, "kernel/run") == 0;

	json_object_object_add(params, cell ? "kernelId" : "sessionId", json_object_new_string(cell ? mcp->kernel_id : mcp->session_id));
	call->request = ks_server_call(mcp->app->server, method, params, on_answer, call);
	json_object_put(params);
}

/* ---- begin and cancel ---- */

static struct ks_mcp_call *find(struct ks_mcp *mcp, const char *id)
{
	for (struct ks_list *n = mcp->calls.next; n != &mcp->calls; n = n->next) {
		struct ks_mcp_call *call = KS_ENTRY(n, struct ks_mcp_call, node);
		if (strcmp(call->id, id) == 0)
			return call;
	}
	return NULL;
}

void ks_mcp_call_cancel(struct ks_mcp *mcp, const char *id)
{
	struct ks_mcp_call *call = find(mcp, id);

	if (!call || call->cancelled)
		return; /* answered already, or never there: not an error */
	call->cancelled = true;
	if (call->waiting)
		ks_mcp_call_free(call);
	else
		ks_server_cancel(mcp->app->server, call->request);
}

static char *progress_token(struct json_object *params)
{
	struct json_object *meta, *token;
	char text[KS_ID_TEXT];

	if (json_object_object_get_ex(params, "_meta", &meta) && json_object_is_type(meta, json_type_object) &&
	    json_object_object_get_ex(meta, "progressToken", &token) && ks_id_text(token, text, sizeof(text)) == 0)
		return strdup(text);
	return NULL;
}

static int check(const struct ks_mcp_call *call, struct ks_error *err)
{
	const int64_t most = call->mcp->config->timeout_s;

	if (!call->tool->runs || call->arguments.run.timeout_s == KS_ABSENT || call->arguments.run.timeout_s <= most)
		return 0;
	(void)ks_fail_at(err, KS_E_OUT_OF_RANGE, "/timeout_s", "at most %lld seconds are allowed here", (long long)most);
	return ks_error_hint(err, "do the work in smaller steps, or let the user set KERN_MCP_TIMEOUT");
}

static struct ks_mcp_call *call_new(struct ks_mcp *mcp, const struct ks_mcp_tool *tool, const char *id, struct json_object *params,
				    bool modern)
{
	struct ks_mcp_call *call = calloc(1, sizeof(*call));

	if (!call)
		return NULL;
	*call = (struct ks_mcp_call){ .mcp = mcp, .tool = tool, .modern = modern, .id = strdup(id), .token = progress_token(params),
				      .began_us = ks_now_us() };
	if (!call->id) {
		free(call->token);
		free(call);
		return NULL;
	}
	ks_list_append(&mcp->calls, &call->node);
	return call;
}

void ks_mcp_call_begin(struct ks_mcp *mcp, const char *id, struct json_object *params, bool modern)
{
	struct json_object *name, *arguments = NULL;
	struct ks_error err;

	if (!params || !json_object_object_get_ex(params, "name", &name) || !json_object_is_type(name, json_type_string)) {
		ks_mcp_reply_error(mcp, id, -32602, "tools/call needs the name of a tool", NULL);
		return;
	}
	const struct ks_mcp_tool *tool = ks_mcp_tool_find(json_object_get_string(name));
	if (!tool) {
		ks_mcp_reply_error(mcp, id, -32602,
				   "Unknown tool: there are run_code, write_file, read_file, list_files, edit_file, search_files", NULL);
		return;
	}
	if (find(mcp, id)) {
		ks_mcp_reply_error(mcp, id, -32600, "a request with this id has no answer yet", NULL);
		return;
	}
	struct ks_mcp_call *call = call_new(mcp, tool, id, params, modern);
	if (!call) {
		ks_mcp_reply_error(mcp, id, -32603, "out of memory", NULL);
		return;
	}
	(void)json_object_object_get_ex(params, "arguments", &arguments);
	if (arguments && !json_object_is_type(arguments, json_type_object)) {
		(void)ks_fail_at(&err, KS_E_INVALID_TYPE, "", "arguments must be an object");
		ks_mcp_call_fail(call, &err);
	} else if (ks_decode(tool->arguments, arguments, &call->arguments, &err) < 0 || check(call, &err) < 0) {
		ks_mcp_call_fail(call, &err);
	} else {
		ks_mcp_advance(call);
	}
}
