/* methods_session.c: session/open, session/close, session/list. */
#include <stdio.h>
#include <string.h>

#include "box/landlock.h"
#include "proto/write.h"
#include "rpc/app.h"
#include "rpc/reply.h"
#include "session/call.h"
#include "session/kernel.h"
#include "session/session.h"
#include "session/text.h"

struct opening {
	struct ks_app *app;
	struct ks_request *request;
	struct ks_session *session;
};

static void write_limit(struct ks_buf *json, const char *key, int64_t value, const struct ks_session *session, enum ks_limit_kind kind)
{
	const struct ks_cgroup_status *status = ks_engine_limits(session->core->engine);
	const bool wanted = session->limits.enforce && !(kind == KS_LIMIT_CPU && value == 0);
	enum ks_enforced enforced = wanted ? status->enforced[kind] : KS_ENFORCED_NONE;
	const char *reason = wanted ? status->reason[kind] : session->limits.enforce ? "uncapped" : "enforceLimits is false";

	ks_write_key(json, key);
	ks_write_open(json, '{');
	if (value > 0)
		ks_write_key_int(json, "value", value);
	ks_write_key_string(json, "enforced", ks_enforced_name(enforced));
	if (reason[0])
		ks_write_key_string(json, "reason", reason);
	ks_write_close(json, '}');
}

static void write_ids(struct ks_buf *json, const struct ks_session *session)
{
	ks_write_key(json, "ids");
	ks_write_open(json, '{');
	ks_write_key(json, "user");
	ks_write_open(json, '{');
	ks_write_key_int(json, "value", KS_BOX_UID);
	ks_write_key_string(json, "enforced", "kernel");
	ks_write_close(json, '}');
	ks_write_key(json, "hostUid");
	ks_write_open(json, '{');
	ks_write_key_int(json, "value", session->owner_uid);
	ks_write_key_string(json, "enforced", "kernel");
	if (session->id_mapped)
		ks_write_key_string(json, "reason", "the workspace is an id-mapped mount");
	ks_write_close(json, '}');
	ks_write_close(json, '}');
}

static void write_effective(struct ks_buf *json, const char *key, const char *value, const char *enforced, const char *reason)
{
	ks_write_key(json, key);
	ks_write_open(json, '{');
	ks_write_key_string(json, "value", value);
	ks_write_key_string(json, "enforced", enforced);
	ks_write_key_string(json, "reason", reason);
	ks_write_close(json, '}');
}

/* What a request has weakened or strengthened by name shows here. */
static void write_posture(struct ks_buf *json, const struct ks_session *session)
{
	const int abi = ks_landlock_abi();
	char value[24];

	(void)snprintf(value, sizeof(value), "%016llx", (unsigned long long)session->keep_caps);
	write_effective(json, "capabilities", value, "kernel", NULL);
	write_effective(json, "network", session->network ? "host" : "none", session->network ? "none" : "kernel",
			session->network ? "network:true" : NULL);
	write_effective(json, "seccomp", session->untrusted ? "untrusted" : "default", "kernel", NULL);
	if (session->apparmor)
		write_effective(json, "apparmor", session->apparmor, "kernel", NULL);
	(void)snprintf(value, sizeof(value), "%d", abi);
	write_effective(json, "landlock", value, abi ? "kernel" : "none", abi ? NULL : "this kernel has no Landlock, or ABI 1 only");
}

static void write_image(struct ks_buf *json, struct ks_session *session)
{
	const struct ks_language *language = NULL;

	ks_write_key(json, "image");
	ks_write_open(json, '{');
	ks_write_key_string(json, "ref", session->image->ref);
	ks_write_key(json, "interpreters");
	ks_write_open(json, '{');
	while ((language = ks_plugins_next_language(session->core->plugins, language))) {
		const char *path = ks_session_interpreter(session, language);
		if (path)
			ks_write_key_string(json, language->api.name, path);
	}
	ks_write_close(json, '}');
	ks_write_close(json, '}');
}

static void write_session(struct ks_buf *json, struct ks_session *session)
{
	ks_write_open(json, '{');
	ks_write_key_string(json, "sessionId", session->id);
	ks_write_key_string(json, "workspace", session->workspace);
	ks_write_key_string(json, "workspaceTarget", session->workspace_target);
	write_image(json, session);
	ks_write_key(json, "effective");
	ks_write_open(json, '{');
	write_limit(json, "memoryMb", session->limits.memory_bytes >> 20, session, KS_LIMIT_MEMORY);
	write_limit(json, "pids", session->limits.pids, session, KS_LIMIT_PIDS);
	write_limit(json, "cpusMilli", session->limits.cpus_milli, session, KS_LIMIT_CPU);
	if (session->workspace_max_mb > 0) {
		ks_write_key(json, "workspaceMaxMb");
		ks_write_open(json, '{');
		ks_write_key_int(json, "value", session->workspace_max_mb);
		ks_write_key_string(json, "enforced", session->workspace_watched ? "polled" : "kernel");
		ks_write_key_string(json, "reason", session->workspace_reason);
		ks_write_close(json, '}');
	}
	write_ids(json, session);
	write_posture(json, session);
	ks_write_close(json, '}');
	ks_write_key(json, "notes");
	ks_notes_write(&session->notes, json);
	ks_write_close(json, '}');
}

static void on_opened(void *arg, struct ks_session *session, const struct ks_error *err)
{
	struct opening *opening = arg;
	struct ks_buf json = { 0 };

	if (session) {
		write_session(&json, session);
		ks_reply(opening->request, &json);
	} else {
		ks_reply_error(opening->request, err);
	}
	ks_buf_free(&json);
	free(opening);
}

/* Nothing visible stays: the session closes, and its opening ends with `cancelled`. */
static void on_cancel(void *arg)
{
	struct opening *opening = arg;

	ks_session_close(opening->session, NULL, NULL);
}

static void session_open(void *arg, struct ks_request *request, const void *params)
{
	struct opening *opening = calloc(1, sizeof(*opening));
	struct ks_app *app = arg;
	struct ks_error err;

	if (!opening)
		abort();
	*opening = (struct opening){ .app = app, .request = request };
	if (ks_session_open(app->core, params, false, on_opened, opening, &opening->session, &err) < 0) {
		ks_reply_error(request, &err);
		free(opening);
		return;
	}
	ks_request_on_cancel(request, on_cancel, opening);
}

static void on_closed(void *arg)
{
	struct ks_request *request = arg;
	struct ks_buf json = { 0 };

	ks_buf_str(&json, "{}");
	ks_reply(request, &json);
	ks_buf_free(&json);
}

static void session_close(void *arg, struct ks_request *request, const void *params)
{
	const struct ks_handle_params *p = params;
	struct ks_app *app = arg;
	struct ks_error err;
	struct ks_session *session = ks_session_find(app->core, p->session_id, false, &err);

	if (session)
		ks_session_close(session, on_closed, request);
	else
		ks_reply_error(request, &err);
}

static void session_list(void *arg, struct ks_request *request, const void *params)
{
	struct ks_app *app = arg;
	KS_AUTOBUF struct ks_buf list = { 0 };

	(void)params;
	ks_write_open(&list, '[');
	for (struct ks_list *n = app->core->sessions.next; n != &app->core->sessions; n = n->next) {
		const struct ks_session *session = KS_ENTRY(n, struct ks_session, node);
		if (session->throwaway || session->state != KS_SESSION_OPEN)
			continue;
		ks_write_open(&list, '{');
		ks_write_key_string(&list, "sessionId", session->id);
		ks_write_key_string(&list, "workspace", session->workspace);
		ks_write_key_string(&list, "workspaceTarget", session->workspace_target);
		ks_write_key_string(&list, "image", session->image->ref);
		ks_write_key_int(&list, "runs", (int64_t)ks_calls_count(session));
		ks_write_key_int(&list, "kernels", (int64_t)ks_kernels_count(app->core, session, false));
		ks_write_key_int(&list, "shells", (int64_t)ks_kernels_count(app->core, session, true));
		ks_write_close(&list, '}');
	}
	ks_write_close(&list, ']');
	ks_reply_list(app, request, "{", "sessions", &list);
}

void ks_methods_session(struct ks_app *app)
{
	ks_server_handle(app->server, "session/open", session_open, app);
	ks_server_handle(app->server, "session/close", session_close, app);
	ks_server_handle(app->server, "session/list", session_list, app);
}
