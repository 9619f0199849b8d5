#include "session/anonymous.h"

#include "base/clock.h"
#include "base/log.h"
#include "proto/tables.h"
#include "session/call.h"
#include "session/spares.h"

#define FAILURES_MAX 3

static void on_opened(void *arg, struct ks_session *session, const struct ks_error *err)
{
	struct ks_core *core = arg;

	if (err) { /* it closes by itself; the next call that opens its own says why */
		ks_log(KS_LOG_INFO, "anonymous_failed", "%s", err->text);
		core->anonymous.failures++;
		return;
	}
	core->anonymous.failures = 0;
	ks_spares_expect(session, core->anonymous.language);
}

static int open_one(struct ks_core *core)
{
	struct ks_session_params params;
	struct ks_session *session;
	struct ks_error err;

	if (ks_decode(&ks_session_params, NULL, &params, &err) < 0)
		return -1;
	int rc = ks_session_open(core, &params, true, on_opened, core, &session, &err);
	ks_params_free(&ks_session_params, &params);
	if (rc < 0)
		return -1;
	session->anonymous = true;
	ks_list_append(&core->anonymous.sessions, &session->anonymous_node);
	core->anonymous.count++;
	return 0;
}

bool ks_anonymous_refill(struct ks_core *core)
{
	if (core->anonymous.count >= core->anonymous.target || core->anonymous.failures >= FAILURES_MAX || core->closing)
		return false;
	if (open_one(core) < 0)
		core->anonymous.failures++;
	return true;
}

void ks_anonymous_forget(struct ks_session *session)
{
	if (!session->anonymous)
		return;
	session->anonymous = false;
	ks_list_remove(&session->anonymous_node);
	session->core->anonymous.count--;
}

struct ks_session *ks_anonymous_take(struct ks_call *call)
{
	struct ks_core *core = call->core;
	struct ks_session *found = NULL;

	if (call->params->has_session || core->one_call)
		return NULL;
	core->anonymous.used_us = ks_now_us();
	core->anonymous.language = call->language;
	for (struct ks_list *n = core->anonymous.sessions.next; n != &core->anonymous.sessions && !found; n = n->next) {
		struct ks_session *session = KS_ENTRY(n, struct ks_session, anonymous_node);
		if (session->state == KS_SESSION_OPEN)
			found = session;
	}
	if (found) {
		ks_anonymous_forget(found);
	} else if (core->anonymous.target < KS_ANONYMOUS_MAX) {
		core->anonymous.target = core->anonymous.target ? 2 * core->anonymous.target : 1;
	}
	ks_spares_soon(core);
	return found;
}

void ks_anonymous_idle(struct ks_core *core, int64_t now_us)
{
	if (core->anonymous.target == 0 || now_us - core->anonymous.used_us <= KS_ANONYMOUS_IDLE_MS * 1000LL)
		return;
	core->anonymous.target = 0;
	core->anonymous.failures = 0;
	while (!ks_list_empty(&core->anonymous.sessions))
		ks_session_close(KS_ENTRY(core->anonymous.sessions.next, struct ks_session, anonymous_node), NULL, NULL);
}
