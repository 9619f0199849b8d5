/* calls.c: all the calls of a sidecar: making them, the queue, and finding, counting and forgetting them. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "session/call_parts.h"
#include "session/kernel.h"

/* ---- making ---- */

int ks_call_check(struct ks_core *core, const struct ks_session *session, const struct ks_run_params *params, bool is_argv,
		 const struct ks_language **ret_language, struct ks_error *err)
{
	struct ks_error ignored;

	if (core->closing)
		return ks_fail(err, KS_E_INVALID_REQUEST, "the sidecar is shutting down");
	if (!core->engine) {
		*err = core->engine_error;
		return -1;
	}
	if (session && session->state == KS_SESSION_CLOSING)
		return ks_fail_at(err, KS_E_UNKNOWN_HANDLE, "/sessionId", "session %s is closing", session->id);
	if (params->run_id && ks_call_find(core, params->run_id, false, &ignored))
		return ks_fail_at(err, KS_E_DUPLICATE_HANDLE, "/runId", "run %s has not ended yet", params->run_id);
	if (core->running_count >= core->max_runs && core->queued_count >= core->max_queued) {
		(void)ks_fail(err, KS_E_OVERLOADED, "%lld runs are running and %lld wait", (long long)core->running_count,
			      (long long)core->queued_count);
		return ks_error_hint(err, "try again when one has ended, or raise limits.runs or limits.queued in initialize");
	}
	if (is_argv)
		return 0;
	*ret_language = ks_plugins_find_language(core->plugins, params->language);
	if (!*ret_language)
		return ks_fail_at(err, KS_E_UNKNOWN_LANGUAGE, "/language", "no plugin runs %.64s; plugin/list names the languages",
				  params->language);
	return 0;
}

struct ks_call *ks_call_alloc(struct ks_core *core, struct ks_session *session, const struct ks_run_params *params,
				const struct ks_call_ops *ops, void *arg, const char *prefix, struct ks_error *err)
{
	struct ks_call *call = malloc(sizeof(*call));

	if (!call) {
		(void)ks_fail(err, KS_E_INTERNAL, "out of memory");
		return NULL;
	}
	*call = (struct ks_call){ .core = core, .session = session, .owner = session, .ops = ops, .arg = arg, .params = params,
				  .throwaway = session == NULL, .in.fd = -1, .channel.fd = -1, .last_word = -1 };
	if (params->run_id)
		(void)snprintf(call->id, sizeof(call->id), "%s", params->run_id);
	else
		ks_core_make_handle(core, prefix, call->id);
	ks_list_init(&call->session_node);
	ks_list_init(&call->diff_chore.node);
	ks_results_init(&call->results);
	ks_digest_init(&call->log[0].digest);
	ks_digest_init(&call->log[1].digest);
	(void)uv_timer_init(core->loop, &call->timer);
	call->timer.data = call;
	call->handles = 1;
	ks_list_append(&core->queued, &call->node);
	core->queued_count++;
	return call;
}

int ks_call_new(struct ks_core *core, struct ks_session *session, const struct ks_run_params *params, bool is_argv, const char *code,
		size_t code_len, const char *stdin_data, size_t stdin_len, const struct ks_call_ops *ops, void *arg,
		struct ks_call **ret, struct ks_error *err)
{
	const struct ks_language *language = NULL;

	if (ks_call_check(core, session, params, is_argv, &language, err) < 0)
		return -1;
	struct ks_call *call = ks_call_alloc(core, session, params, ops, arg, "run", err);
	if (!call)
		return -1;
	call->language = language;
	call->code = code;
	call->code_len = code_len;
	call->stdin_data = stdin_data;
	call->stdin_len = stdin_len;
	if (session)
		ks_call_inherit(call);
	*ret = call;
	return 0;
}

void ks_call_settle(struct ks_call *call)
{
	struct ks_core *core = call->core;

	ks_list_remove(&call->node);
	ks_list_append(&core->running, &call->node);
	core->queued_count--;
	core->running_count++;
	call->state = KS_CALL_ENDING;
	call->decided = true;
	call->outcome.channel = "ok";
	call->outcome.start_kind = "cold";
	memset(&call->outcome.end.leaf, 0xff, sizeof(call->outcome.end.leaf)); /* all -1: unknown */
}

/* ---- the queue ---- */

void ks_calls_start_queued(struct ks_core *core)
{
	if (core->starting)
		return; /* one that fails at once comes back here; the loop below goes on anyway */
	core->starting = true;
	for (struct ks_list *n = core->queued.next, *next; core->running_count < core->max_runs && n != &core->queued; n = next) {
		struct ks_call *call = KS_ENTRY(n, struct ks_call, node);
		next = n->next;
		if ((!call->session || call->is_setup || ks_gate_passed(&call->session->gate, call->ticket)) &&
		    (!call->cell || ks_kernel_ready(call->kernel)))
			ks_call_start(call);
	}
	core->starting = false;
}

size_t ks_calls_count(const struct ks_session *session)
{
	size_t count = 0;

	for (struct ks_list *n = session->calls.next; n != &session->calls; n = n->next)
		count += !ks_call_is_host(KS_ENTRY(n, struct ks_call, session_node));
	return count;
}

bool ks_calls_before(const struct ks_session *session, uint64_t number)
{
	for (struct ks_list *n = session->calls.next; n != &session->calls; n = n->next)
		if (KS_ENTRY(n, struct ks_call, session_node)->ticket < number)
			return true;
	return false;
}

void ks_calls_cancel_session(struct ks_session *session)
{
	for (struct ks_list *n = session->calls.next, *next; n != &session->calls; n = next) {
		next = n->next;
		ks_call_cancel(KS_ENTRY(n, struct ks_call, session_node));
	}
}

void ks_calls_cancel_queued(struct ks_core *core)
{
	bool starting = KS_TAKE(core->starting, true); /* none of them may take the place of another */

	while (!ks_list_empty(&core->queued))
		ks_call_cancel(KS_ENTRY(core->queued.next, struct ks_call, node));
	core->starting = starting;
}

static struct ks_call *find_in(struct ks_list *head, const char *id)
{
	for (struct ks_list *n = head->prev; n != head; n = n->prev)
		if (strcmp(KS_ENTRY(n, struct ks_call, node)->id, id) == 0)
			return KS_ENTRY(n, struct ks_call, node);
	return NULL;
}

/* It was there: its output went, or (when a living one is wanted) it has ended. */
static bool is_gone(struct ks_core *core, const char *id, bool finished_too)
{
	for (size_t i = 0; i < KS_GONE_MAX; i++)
		if (strcmp(core->gone[i], id) == 0)
			return true;
	return !finished_too && find_in(&core->finished, id);
}

struct ks_call *ks_call_find(struct ks_core *core, const char *id, bool finished_too, struct ks_error *err)
{
	struct ks_call *call = find_in(&core->running, id);

	if (!call)
		call = find_in(&core->queued, id);
	if (!call && finished_too)
		call = find_in(&core->finished, id);
	if (!call && is_gone(core, id, finished_too))
		(void)ks_fail_at(err, KS_E_GONE, "/runId", finished_too ? "the output of run %s is no longer kept" : "run %s has ended",
				 id);
	else if (!call)
		(void)ks_fail_at(err, KS_E_UNKNOWN_HANDLE, "/runId", "no run %s is known; it has ended, or never was", id);
	return call;
}

void ks_calls_forget_session(struct ks_session *session)
{
	struct ks_core *core = session->core;

	for (struct ks_list *n = core->finished.next, *next; n != &core->finished; n = next) {
		struct ks_call *call = KS_ENTRY(n, struct ks_call, node);
		next = n->next;
		if (call->owner == session)
			ks_call_forget(call);
	}
}

void ks_calls_expire(struct ks_core *core, int64_t now_us)
{
	for (struct ks_list *n = core->finished.next, *next; n != &core->finished; n = next) {
		struct ks_call *call = KS_ENTRY(n, struct ks_call, node);
		next = n->next;
		if (call->throwaway && now_us - call->finished_us > KS_BLOB_THROWAWAY_MS * 1000LL)
			ks_call_forget(call);
	}
}

void ks_calls_forget_all(struct ks_core *core)
{
	struct ks_list *lists[] = { &core->queued, &core->running, &core->finished, &core->forgotten };

	for (size_t i = 0; i < KS_COUNT(lists); i++)
		while (!ks_list_empty(lists[i])) {
			struct ks_call *call = KS_ENTRY(lists[i]->next, struct ks_call, node);
			ks_list_remove(&call->node);
			if (call->state != KS_CALL_DONE) {
				call->state = KS_CALL_DONE;
				ks_call_stop(call);
			}
			call->box = NULL; /* their ends will not be told any more */
			call->own_group = NULL;
			call->forgotten = true; /* in no list: the loop ends, and its memory goes with its last handle */
			ks_call_free_if_over(call);
		}
}
