/* stages.c: what calls need before they can start: the session, the setup, the kernel. Each is made once, ahead of the calls; when it
 * cannot be made, those that wait for it say why, and the next call tries again. */
#include <stdlib.h>
#include <string.h>

#include <json-c/json_object.h>
#include <json-c/linkhash.h>

#include "base/log.h"
#include "mcp_private.h"
#include "proto/scan.h"
#include "render/render.h"

#define OUTPUT_BYTES (16 << 20) /* kept of each stream: the text shows its two ends */

static void make(struct ks_mcp *mcp, enum ks_mcp_stage stage);

static bool needs(const struct ks_mcp_call *call, enum ks_mcp_stage stage)
{
	const struct ks_mcp_config *config = call->mcp->config;

	if (stage == KS_MCP_SESSION)
		return true;
	if (stage == KS_MCP_SETUP)
		return call->tool->runs && config->setup;
	return call->tool->runs && config->kernel && strcmp(call->arguments.run.language, "python") == 0;
}

/* The first stage that is not there, or KS_MCP_STAGES. */
static enum ks_mcp_stage lacking(const struct ks_mcp_call *call)
{
	enum ks_mcp_stage stage = KS_MCP_SESSION;

	while (stage < KS_MCP_STAGES && (!needs(call, stage) || call->mcp->stages[stage] == KS_MCP_THERE))
		stage++;
	return stage;
}

void ks_mcp_advance(struct ks_mcp_call *call)
{
	struct ks_mcp *mcp = call->mcp;
	const enum ks_mcp_stage stage = lacking(call);

	call->waiting = stage < KS_MCP_STAGES;
	if (!call->waiting)
		ks_mcp_call_start(call);
	else if (mcp->stages[stage] == KS_MCP_ABSENT)
		make(mcp, stage);
}

static void advance_all(struct ks_mcp *mcp)
{
	for (struct ks_list *n = mcp->calls.next; n != &mcp->calls; n = n->next) {
		struct ks_mcp_call *call = KS_ENTRY(n, struct ks_mcp_call, node);
		if (call->waiting)
			ks_mcp_advance(call);
	}
}

static void fail_waiting(struct ks_mcp *mcp, enum ks_mcp_stage stage, const struct ks_error *err, const struct ks_buf *text)
{
	mcp->stages[stage] = KS_MCP_ABSENT;
	ks_log(KS_LOG_WARN, "mcp_not_ready", "%s", err ? err->text : "KERN_MCP_SETUP has failed");
	for (struct ks_list *n = mcp->calls.next, *next; n != &mcp->calls; n = next) {
		struct ks_mcp_call *call = KS_ENTRY(n, struct ks_mcp_call, node);
		next = n->next;
		if (!call->waiting || lacking(call) != stage)
			continue;
		if (text)
			ks_mcp_call_fail_text(call, text);
		else
			ks_mcp_call_fail(call, err);
	}
}

/* ---- session ---- */

static void add(struct json_object *params, const char *name, const char *value)
{
	if (value)
		json_object_object_add(params, name, json_object_new_string(value));
}

static void read_session(struct ks_mcp *mcp, struct json_object *result)
{
	struct json_object *value, *image, *found;

	if (json_object_object_get_ex(result, "sessionId", &value))
		(void)snprintf(mcp->session_id, sizeof(mcp->session_id), "%s", json_object_get_string(value));
	ks_buf_clear(&mcp->interpreters);
	if (!json_object_object_get_ex(result, "image", &image) || !json_object_object_get_ex(image, "interpreters", &found))
		return;
	json_object_object_foreach(found, name, path)
	{
		(void)path;
		ks_buf_printf(&mcp->interpreters, "%s%s", mcp->interpreters.len ? ", " : "", name);
	}
	ks_buf_char(&mcp->interpreters, '\0');
}

static void on_session(void *arg, const struct ks_buf *json, const struct ks_error *err)
{
	struct ks_mcp *mcp = arg;
	struct ks_error why;
	struct json_object *result = json ? ks_json_parse_own(json->data, json->len, &why) : NULL;

	if (!result) {
		fail_waiting(mcp, KS_MCP_SESSION, json ? &why : err, NULL);
	} else {
		read_session(mcp, result);
		json_object_put(result);
		mcp->stages[KS_MCP_SESSION] = KS_MCP_THERE;
		ks_mcp_answer_lists(mcp);
		if (mcp->config->setup)
			make(mcp, KS_MCP_SETUP);
		else if (mcp->config->kernel)
			make(mcp, KS_MCP_KERNEL);
		advance_all(mcp);
	}
	ks_mcp_answer_lists(mcp);
}

static void add_profiles(struct json_object *params, const char *profiles)
{
	struct json_object *list = json_object_new_array();

	for (const char *at = profiles; *at;) {
		const size_t len = strcspn(at, ",");
		if (len > 0)
			json_object_array_add(list, json_object_new_string_len(at, (int)len));
		at += len + (at[len] == ',');
	}
	json_object_object_add(params, "profiles", list);
}

static void open_session(struct ks_mcp *mcp)
{
	const struct ks_mcp_config *config = mcp->config;
	struct json_object *params = json_object_new_object(), *tmpfs = json_object_new_object();
	char size[32];

	add(params, "image", config->image);
	add(params, "workspace", config->workspace);
	if (config->memory_mb > 0)
		json_object_object_add(params, "memoryMb", json_object_new_int64(config->memory_mb));
	json_object_object_add(params, "timeoutMs", json_object_new_int64(config->timeout_s * 1000));
	json_object_object_add(params, "maxOutputBytes", json_object_new_int64(OUTPUT_BYTES));
	(void)snprintf(size, sizeof(size), "%lldm", (long long)config->tmpfs_mb);
	if (config->tmpfs_mb > 0)
		add(tmpfs, "/tmp", size);
	json_object_object_add(params, "tmpfs", tmpfs);
	if (config->profiles)
		add_profiles(params, config->profiles);
	(void)ks_server_call(mcp->app->server, "session/open", params, on_session, mcp);
	json_object_put(params);
}

/* ---- setup ---- */

static void add_stream(struct ks_buf *text, struct json_object *result, const char *key)
{
	struct json_object *value;

	if (json_object_object_get_ex(result, key, &value) && json_object_is_type(value, json_type_string))
		ks_render_text(text, json_object_get_string(value), (size_t)json_object_get_string_len(value), KS_MCP_TEXT_CHARS / 4,
			       KS_KEEP_TAIL);
}

static void on_setup(void *arg, const struct ks_buf *json, const struct ks_error *err)
{
	struct ks_mcp *mcp = arg;
	struct ks_error why;
	struct json_object *result = json ? ks_json_parse_own(json->data, json->len, &why) : NULL, *success;
	KS_AUTOBUF struct ks_buf text = { 0 };

	if (!result) {
		fail_waiting(mcp, KS_MCP_SETUP, json ? &why : err, NULL);
		return;
	}
	if (json_object_object_get_ex(result, "success", &success) && json_object_get_boolean(success)) {
		mcp->stages[KS_MCP_SETUP] = KS_MCP_THERE;
		if (mcp->config->kernel && mcp->stages[KS_MCP_KERNEL] == KS_MCP_ABSENT)
			make(mcp, KS_MCP_KERNEL);
		advance_all(mcp);
	} else {
		ks_buf_str(&text,
			   "[setup failed] nothing has run. The command of KERN_MCP_SETUP ended with an error; the next call tries it "
			   "again.\n");
		add_stream(&text, result, "stdout");
		add_stream(&text, result, "stderr");
		fail_waiting(mcp, KS_MCP_SETUP, NULL, &text);
	}
	json_object_put(result);
}

/* ---- kernel ---- */

static void on_kernel(void *arg, const struct ks_buf *json, const struct ks_error *err)
{
	struct ks_mcp *mcp = arg;
	struct ks_error why;
	struct json_object *result = json ? ks_json_parse_own(json->data, json->len, &why) : NULL, *id;

	if (!result) {
		fail_waiting(mcp, KS_MCP_KERNEL, json ? &why : err, NULL);
		return;
	}
	if (json_object_object_get_ex(result, "kernelId", &id))
		(void)snprintf(mcp->kernel_id, sizeof(mcp->kernel_id), "%s", json_object_get_string(id));
	json_object_put(result);
	mcp->stages[KS_MCP_KERNEL] = KS_MCP_THERE;
	advance_all(mcp);
}

static void on_closed(void *arg, const struct ks_buf *json, const struct ks_error *err)
{
	(void)arg;
	(void)json;
	(void)err;
}

void ks_mcp_kernel_lost(struct ks_mcp *mcp)
{
	struct json_object *params = json_object_new_object();

	if (mcp->stages[KS_MCP_KERNEL] == KS_MCP_THERE) {
		add(params, "kernelId", mcp->kernel_id);
		mcp->stages[KS_MCP_KERNEL] = KS_MCP_ABSENT;
		(void)ks_server_call(mcp->app->server, "kernel/close", params, on_closed, NULL);
	}
	json_object_put(params);
}

/* ---- all of them ---- */

static void make(struct ks_mcp *mcp, enum ks_mcp_stage stage)
{
	struct json_object *params;

	mcp->stages[stage] = KS_MCP_MAKING;
	if (stage == KS_MCP_SESSION) {
		open_session(mcp);
		return;
	}
	params = json_object_new_object();
	add(params, "sessionId", mcp->session_id);
	if (stage == KS_MCP_SETUP) {
		add(params, "command", mcp->config->setup);
		(void)ks_server_call(mcp->app->server, "session/setup", params, on_setup, mcp);
	} else {
		add(params, "language", "python");
		(void)ks_server_call(mcp->app->server, "kernel/open", params, on_kernel, mcp);
	}
	json_object_put(params);
}

void ks_mcp_prepare(struct ks_mcp *mcp)
{
	make(mcp, KS_MCP_SESSION);
}
