/* methods_info.c: what the sidecar tells about itself and its host, and how it ends: stats/get, plugin/list, host/doctor, shutdown,
 * the parts of the welcome that the core knows. */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "proto/write.h"
#include "rpc/app.h"
#include "rpc/reply.h"
#include "rpc/methods.h"
#include "session/call.h"
#include "session/doctor.h"
#include "session/kernel.h"
#include "session/session.h"
#include "session/text.h"

/* ---- stats/get ---- */

static int64_t count(const struct ks_list *head)
{
	int64_t n = 0;

	for (const struct ks_list *i = head->next; i != head; i = i->next)
		n++;
	return n;
}

static void stats_get(void *arg, struct ks_request *request, const void *params)
{
	struct ks_app *app = arg;
	struct ks_core *core = app->core;
	struct ks_buf json = { 0 };

	(void)params;
	ks_write_open(&json, '{');
	ks_write_key_int(&json, "uptimeMs", (ks_now_us() - app->started_us) / 1000);
	ks_write_key_int(&json, "sessions", count(&core->sessions) - (int64_t)core->anonymous.count);
	ks_write_key_int(&json, "runs", core->running_count);
	ks_write_key_int(&json, "queued", core->queued_count);
	ks_write_key_int(&json, "kernels", (int64_t)ks_kernels_count(core, NULL, false));
	ks_write_key_int(&json, "shells", (int64_t)ks_kernels_count(core, NULL, true));
	ks_write_key_int(&json, "runsTotal", (int64_t)core->counters.calls);
	ks_write_key_int(&json, "blobs", (int64_t)ks_blobs_count(core->blobs));
	ks_write_key_int(&json, "blobBytes", (int64_t)(ks_blobs_bytes(core->blobs) + core->finished_bytes));
	ks_write_key_int(&json, "logLinesDropped", (int64_t)ks_log_dropped());
	ks_write_key_int(&json, "boxes", core->engine ? ks_engine_boxes(core->engine) : 0);
	ks_write_key_int(&json, "boxesLeaked", (int64_t)core->counters.leaked);
	ks_write_key_int(&json, "faults", (int64_t)core->counters.faults);
	ks_write_key_int(&json, "startsFailed", (int64_t)core->counters.starts_failed);
	ks_write_key_int(&json, "workspaceWalks", (int64_t)core->counters.walks);
	ks_write_key_int(&json, "snapshotBytes", (int64_t)core->snapshot_bytes);
	ks_write_close(&json, '}');
	ks_reply(request, &json);
	ks_buf_free(&json);
}

/* ---- plugin/list ---- */

static void write_loaded(struct ks_buf *json, const struct ks_plugin *plugin)
{
	ks_write_open(json, '{');
	ks_write_key_string(json, "name", plugin->api.name);
	ks_write_key_string(json, "status", "ok");
	ks_write_key_string(json, "version", plugin->api.version);
	ks_write_key_string(json, "path", plugin->path);
	ks_write_key(json, "languages");
	ks_write_open(json, '[');
	for (struct ks_list *n = plugin->languages.next; n != &plugin->languages; n = n->next)
		ks_write_string(json, KS_ENTRY(n, struct ks_language, node)->api.name);
	ks_write_close(json, ']');
	ks_write_close(json, '}');
}

static void write_refused(struct ks_buf *json, const struct ks_refused *refused)
{
	const char *slash = strrchr(refused->path, '/');

	ks_write_open(json, '{');
	ks_write_key_string(json, "name", slash ? slash + 1 : refused->path);
	ks_write_key_string(json, "status", "refused");
	ks_write_key_string(json, "path", refused->path);
	ks_write_key_string(json, "reason", refused->reason);
	ks_write_close(json, '}');
}

static void plugin_list(void *arg, struct ks_request *request, const void *params)
{
	struct ks_app *app = arg;
	const struct ks_plugins *plugins = app->core->plugins;
	KS_AUTOBUF struct ks_buf list = { 0 };

	(void)params;
	ks_write_open(&list, '[');
	for (struct ks_list *n = plugins->loaded.next; n != &plugins->loaded; n = n->next)
		write_loaded(&list, KS_ENTRY(n, struct ks_plugin, node));
	for (struct ks_list *n = plugins->refused.next; n != &plugins->refused; n = n->next)
		write_refused(&list, KS_ENTRY(n, struct ks_refused, node));
	ks_write_close(&list, ']');
	ks_reply_list(app, request, "{", "plugins", &list);
}

/* ---- host/doctor ---- */

struct visit {
	struct ks_app *app;
	struct ks_request *request;
};

static void on_checked(void *arg, bool ok, const struct ks_buf *checks)
{
	struct visit *visit = arg;
	KS_AUTOBUF struct ks_buf list = { 0 };

	ks_buf_add(&list, checks->data, checks->len);
	ks_reply_list(visit->app, visit->request, ok ? "{\"ok\":true" : "{\"ok\":false", "checks", &list);
	free(visit);
}

static void host_doctor(void *arg, struct ks_request *request, const void *params)
{
	struct visit *visit = calloc(1, sizeof(*visit));
	struct ks_app *app = arg;

	(void)params;
	if (!visit)
		abort();
	*visit = (struct visit){ app, request };
	ks_doctor(app->core, on_checked, visit);
}

/* ---- the welcome ---- */

static void write_languages(struct ks_buf *json, const struct ks_plugins *plugins)
{
	const struct ks_language *language = NULL;

	ks_write_key(json, "languages");
	ks_write_open(json, '[');
	while ((language = ks_plugins_next_language(plugins, language))) {
		ks_write_open(json, '{');
		ks_write_key_string(json, "name", language->api.name);
		ks_write_key_bool(json, "rich", language->api.flags & KERN_CAN_RICH);
		ks_write_key_bool(json, "kernel", language->api.flags & KERN_CAN_KERNEL);
		ks_write_key_bool(json, "zygote", language->api.flags & KERN_CAN_ZYGOTE);
		ks_write_key_bool(json, "interrupt", language->api.flags & KERN_CAN_INTERRUPT);
		ks_write_key_bool(json, "input", language->api.flags & KERN_CAN_INPUT);
		ks_write_close(json, '}');
	}
	ks_write_close(json, ']');
}

static void write_host(struct ks_buf *json, const struct ks_core *core)
{
	static const char *const keys[] = { "memory", "pids", "cpu" };

	ks_write_key(json, "host");
	ks_write_open(json, '{');
	ks_write_key_bool(json, "ok", core->engine != NULL);
	if (!core->engine) {
		ks_write_key_string(json, "reason", core->engine_error.text);
	} else {
		const struct ks_cgroup_status *status = ks_engine_limits(core->engine);
		ks_write_key_string(json, "cgroup", status->backend);
		for (int kind = 0; kind < KS_LIMIT_KINDS; kind++)
			ks_write_key_string(json, keys[kind], ks_enforced_name(status->enforced[kind]));
	}
	ks_write_close(json, '}');
}

static int prepare(void *arg, const struct ks_initialize_params *wanted, struct ks_error *err)
{
	struct ks_app *app = arg;
	const int64_t memory = wanted->fleet_memory_mb != KS_ABSENT ? wanted->fleet_memory_mb << 20 : 0;
	const int64_t pids = wanted->fleet_pids != KS_ABSENT ? wanted->fleet_pids : 0;

	if (memory == 0 && pids == 0)
		return 0;
	if (!app->core->engine) {
		*err = app->core->engine_error;
		return -1;
	}
	return ks_engine_limit_all(app->core->engine, memory, pids, err);
}

static void welcome(void *arg, enum ks_welcome part, struct ks_buf *json)
{
	static const char *const features[] = { "run",	    "streams", "blobs",	  "files", "archives",
						"progress", "doctor",  "kernels", "input", "shells" };
	struct ks_app *app = arg;

	app->core->max_runs = ks_server_limits(app->server)->runs;
	app->core->max_queued = ks_server_limits(app->server)->queued;
	if (part == KS_WELCOME_TOP) {
		write_host(json, app->core);
	} else if (part == KS_WELCOME_CAPABILITIES) {
		ks_write_key(json, "features");
		ks_write_open(json, '[');
		for (size_t i = 0; i < KS_COUNT(features); i++)
			ks_write_string(json, features[i]);
		ks_write_close(json, ']');
		write_languages(json, app->core->plugins);
	} else {
		ks_write_key_int(json, "sessions", KS_SESSIONS_MAX);
		ks_write_key_int(json, "codeBytes", (int64_t)KERN_CODE_MAX);
		ks_write_key_int(json, "stdinQueueBytes", (int64_t)KS_STDIN_QUEUE);
	}
}

/* ---- shutdown ---- */

static void on_all_closed(void *arg)
{
	struct ks_app *app = arg;
	struct ks_buf json = { 0 };

	ks_buf_str(&json, "{}");
	ks_reply(app->shutdown, &json);
	app->shutdown = NULL;
	ks_buf_free(&json);
}

static void on_drained(void *arg)
{
	struct ks_app *app = arg;

	ks_core_close(app->core, on_all_closed, app);
}

static void shut_down(void *arg, struct ks_request *request, const void *params)
{
	const struct ks_shutdown_params *p = params;
	struct ks_app *app = arg;

	app->shutdown = request;
	if (p->mode == KS_SHUTDOWN_DRAIN)
		ks_core_drain(app->core, on_drained, app);
	else
		ks_core_close(app->core, on_all_closed, app);
}

static void session_closed(void *arg, const char *session_id, const char *reason)
{
	struct ks_app *app = arg;
	struct ks_buf json = { 0 };

	ks_write_open(&json, '{');
	ks_write_key_string(&json, "sessionId", session_id);
	ks_write_key_string(&json, "reason", reason);
	ks_write_close(&json, '}');
	ks_notify(app->server, KS_LANE_EVENT, KS_LINE_NOTE, "session/closed", &json);
	ks_buf_free(&json);
}

void ks_methods_info(struct ks_app *app)
{
	ks_server_set_check(app->server, prepare, app);
	ks_server_set_welcome(app->server, welcome, app);
	app->core->session_closed = session_closed;
	app->core->session_closed_arg = app;
	ks_server_handle(app->server, "stats/get", stats_get, app);
	ks_server_handle(app->server, "plugin/list", plugin_list, app);
	ks_server_handle(app->server, "host/doctor", host_doctor, app);
	ks_server_handle(app->server, "shutdown", shut_down, app);
}
