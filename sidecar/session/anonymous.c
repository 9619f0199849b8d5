#include "session/anonymous.h"

#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/clock.h"
#include "base/log.h"
#include "proto/tables.h"
#include "session/call.h"
#include "session/spares.h"

#define FAILURES_MAX 3

/* ---- is it as new? ---- */

/* A name that comes or goes, a mode, an owner, an attribute: each gives a directory another ctime, which nobody can set. False: a change
 * might not show, as the file system is a server's, or the directory so new that it could have the same times. */
static bool remember(struct ks_session *session)
{
	struct ks_tree_entry *fresh = &session->anonymous.fresh;
	struct statfs fs;
	struct stat st;

	if (!session->workspace_private || session->workspace_memory || fstat(session->workspace_fd, &st) < 0 ||
	    fstatfs(session->workspace_fd, &fs) < 0)
		return false;
	ks_tree_set_times(fresh, &st);
	return ks_tree_trusts((long)fs.f_type) && !ks_tree_young(fresh->ctime_ns);
}

static bool is_fresh(const struct ks_session *session)
{
	struct stat st;

	return fstat(session->workspace_fd, &st) == 0 && ks_tree_same_times(&session->anonymous.fresh, &st);
}

/* ---- opening ---- */

static void wait_for_call(struct ks_session *session)
{
	session->anonymous.waits = true;
	ks_list_append(&session->core->anonymous.sessions, &session->anonymous.node);
	session->core->anonymous.count++;
}

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
	wait_for_call(session);
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
	if (!KS_TAKE(session->anonymous.waits, false))
		return;
	ks_list_remove(&session->anonymous.node);
	session->core->anonymous.count--;
}

/* ---- a call ---- */

/* Of those that have served the last that came: it is still in the caches. One that a call has left something in is closed. */
static struct ks_session *find_served(struct ks_core *core)
{
	for (struct ks_list *n = core->anonymous.sessions.prev, *before; n != &core->anonymous.sessions; n = before) {
		struct ks_session *session = KS_ENTRY(n, struct ks_session, anonymous.node);
		before = n->prev;
		if (session->state != KS_SESSION_OPEN || !session->anonymous.served || !ks_group_is_quiet(session->group))
			continue;
		if (is_fresh(session))
			return session;
		ks_session_close(session, NULL, NULL);
	}
	return NULL;
}

/* Of the others the oldest, which can be told from one that a call has used. */
static struct ks_session *find_new(struct ks_core *core)
{
	for (struct ks_list *n = core->anonymous.sessions.next; n != &core->anonymous.sessions; n = n->next) {
		struct ks_session *session = KS_ENTRY(n, struct ks_session, anonymous.node);
		if (session->state == KS_SESSION_OPEN && !session->anonymous.served)
			return session;
	}
	return NULL;
}

struct ks_session *ks_anonymous_take(struct ks_call *call)
{
	struct ks_core *core = call->core;

	if (call->params->has_session || core->one_call)
		return NULL;
	core->anonymous.used_us = ks_now_us();
	core->anonymous.language = call->language;
	struct ks_session *found = find_served(core);
	found = found ? found : find_new(core);
	if (found) {
		ks_anonymous_forget(found);
		found->anonymous.returns = found->anonymous.served || remember(found);
	} else if (core->anonymous.target < KS_ANONYMOUS_MAX) {
		core->anonymous.target = core->anonymous.target ? 2 * core->anonymous.target : 1;
	}
	ks_spares_soon(core);
	return found;
}

bool ks_anonymous_return(struct ks_session *session)
{
	struct ks_core *core = session->core;

	if (!session->anonymous.returns || session->state != KS_SESSION_OPEN || core->closing ||
	    core->anonymous.count >= KS_ANONYMOUS_MAX)
		return false;
	session->anonymous.served = true;
	core->anonymous.used_us = ks_now_us();
	wait_for_call(session);
	ks_spares_expect(session, core->anonymous.language);
	return true;
}

void ks_anonymous_idle(struct ks_core *core, int64_t now_us)
{
	const bool none = core->anonymous.target == 0 && core->anonymous.count == 0;

	if (none || now_us - core->anonymous.used_us <= KS_ANONYMOUS_IDLE_MS * 1000LL)
		return;
	core->anonymous.target = 0;
	core->anonymous.failures = 0;
	while (!ks_list_empty(&core->anonymous.sessions))
		ks_session_close(KS_ENTRY(core->anonymous.sessions.next, struct ks_session, anonymous.node), NULL, NULL);
}
