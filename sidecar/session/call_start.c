/* call_start.c: from the queue to the claim: the session of a throw-away call, the box, made for the call or ahead of it, and the words to
 * what is in it. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "session/anonymous.h"
#include "session/call_parts.h"
#include "session/kernel.h"
#include "session/spares.h"

/* ---- limits of a start ---- */

static void on_start_limit(uv_timer_t *timer)
{
	struct ks_call *call = timer->data;
	struct ks_error err;

	if (call->looks > call->awaits_box) { /* the workspace is large, or many are looked at: the box waits for us */
		(void)uv_timer_start(&call->timer, on_start_limit, KS_START_LIMIT_MS, 0);
		return;
	}
	(void)ks_fail(&err, KS_E_START_FAILED, "the box was not ready within %d ms", KS_START_LIMIT_MS);
	(void)ks_error_hint(&err, "the machine is overloaded; try again with fewer calls at once");
	ks_call_fail(call, &err);
}

/* Its interpreter has been told, and does not begin: somebody has stopped it. */
static void on_begin_limit(uv_timer_t *timer)
{
	struct ks_call *call = timer->data;

	ks_call_look_whether_begun(call);
	if (call->state == KS_CALL_STARTING)
		ks_box_kill(call->box); /* then it cannot begin any more, and another one is taken */
}

/* ---- the claim ---- */

void ks_call_box_ready(void *arg)
{
	struct ks_call *call = arg;

	if (!call->awaits_box || call->state != KS_CALL_STARTING)
		return;
	call->awaits_box = false;
	ks_call_look_done(call);
}

void ks_call_claim_now(struct ks_call *call)
{
	struct ks_error err;

	ks_call_note(call, KS_AT_LOOKED);
	int rc = call->cell ? ks_kernel_send(call, &err) : call->parked ? ks_call_unpark(call, &err) : ks_call_claim(call, &err);

	if (rc < 0 && call->parked) {
		call->claimed = true; /* as far as it could be */
		(void)ks_call_replace_spare(call);
		return;
	}
	if (rc < 0) {
		ks_call_fail(call, &err);
		return;
	}
	ks_call_note(call, KS_AT_CLAIMED);
	call->claimed = !call->cell;
	if (call->cell)
		ks_call_started(call);
	else if (call->parked)
		(void)uv_timer_start(&call->timer, on_begin_limit, KS_BEGIN_LIMIT_MS, 0);
}

void ks_call_begun(struct ks_call *call)
{
	call->begun = true;
	ks_call_started(call);
}

/* ---- the box ---- */

static int make_box(struct ks_call *call, struct ks_group *group)
{
	struct ks_error err;

	call->box = ks_box_make(group, &call->limits, &ks_call_box_ops, call, &err);
	if (!call->box)
		ks_call_fail(call, &err);
	return call->box ? 0 : -1;
}

/* An interpreter that does not get ready: the call boots its own. */
static void on_wait_limit(uv_timer_t *timer)
{
	struct ks_call *call = timer->data;

	(void)uv_timer_start(&call->timer, on_start_limit, KS_START_LIMIT_MS, 0);
	if (call->spare)
		ks_spare_reject(call);
}

static void begin(struct ks_call *call)
{
	ks_call_note(call, KS_AT_BOX);
	if (call->spare)
		(void)uv_timer_start(&call->timer, on_wait_limit,
				     call->session->preload.count ? KS_START_LIMIT_MS : KS_BEGIN_LIMIT_MS, 0);
	else
		(void)uv_timer_start(&call->timer, on_start_limit, KS_START_LIMIT_MS, 0);
	ks_call_look_at(call, true); /* the box sets itself up meanwhile */
}

void ks_call_make_box(struct ks_call *call, struct ks_group *group)
{
	call->state = KS_CALL_STARTING;
	if (make_box(call, group) == 0)
		begin(call);
}

/* `start` asks for a box that was ready before the claim: one that is made only now is waited for. */
static bool wants_spare(const struct ks_call *call)
{
	return call->session->start == KS_START_SPARE || call->session->start == KS_START_ZYGOTE;
}

static void take_box(struct ks_call *call)
{
	call->state = KS_CALL_STARTING;
	enum ks_spare_answer answer = ks_spares_take(call);
	if (answer == KS_SPARE_NONE && make_box(call, call->session->group) < 0)
		return;
	call->from_spare = answer != KS_SPARE_NONE;
	call->awaits_box = answer == KS_SPARE_WAIT || (answer != KS_SPARE_TAKEN && wants_spare(call));
	call->outcome.start_kind = call->parked ? "zygote" : answer == KS_SPARE_TAKEN || wants_spare(call) ? "spare" : "template";
	begin(call);
}

/* What was made ahead has died before it was told anything: the call is not to suffer for it. */
bool ks_call_replace_spare(struct ks_call *call)
{
	/* what has been told to an interpreter has not run before that says so */
	if (!call->from_spare || (call->claimed && !call->parked) || call->begun || call->cancelled || call->state != KS_CALL_STARTING)
		return false;
	const bool told = KS_TAKE(call->claimed, false);
	if (call->box)
		ks_box_release(KS_TAKE_PTR(call->box));
	ks_call_disconnect(call);
	call->from_spare = call->parked = false;
	(void)uv_timer_start(&call->timer, on_start_limit, KS_START_LIMIT_MS, 0);
	call->outcome.start_kind = wants_spare(call) ? "spare" : "template";
	if (make_box(call, call->session->group) < 0)
		return true;
	call->looks += wants_spare(call) && !call->awaits_box;
	if (!wants_spare(call) && call->awaits_box)
		ks_call_box_ready(call); /* it need not be: the claim waits in its socket */
	else
		call->awaits_box = wants_spare(call);
	if (told && !call->awaits_box)
		ks_call_claim_now(call);
	return true;
}

void ks_call_spare_ready(struct ks_call *call)
{
	if (!call->box) {
		(void)ks_call_replace_spare(call);
		return;
	}
	call->outcome.start_kind = "zygote";
	ks_call_box_ready(call);
}

/* ---- a template of its own ---- */

static void own_group_ready(void *arg, int memory_fd)
{
	struct ks_call *call = arg;

	ks_close(&memory_fd); /* the session's first template has brought it */
	if (call->state == KS_CALL_OPENING)
		ks_call_make_box(call, call->own_group);
}

static void own_group_failed(void *arg, const struct ks_error *err)
{
	struct ks_call *call = arg;

	if (call->state == KS_CALL_OPENING)
		ks_call_fail(call, err);
}

static void own_group_ended(void *arg)
{
	struct ks_call *call = arg;

	call->own_group = NULL;
	ks_call_free_if_over(call);
}

static const struct ks_group_ops own_group_ops = { own_group_ready, own_group_failed, own_group_ended };

struct ks_box_limits ks_call_session_limits(const struct ks_session *session)
{
	struct ks_box_limits limits = session->limits;

	limits.memory_files = session->workspace_memory;
	limits.file_bytes = session->workspace_watched ? session->workspace_max_mb << 20 : 0;
	return limits;
}

void ks_call_inherit(struct ks_call *call)
{
	const struct ks_run_params *params = call->params;
	struct ks_session *session = call->session;

	ks_list_append(&session->calls, &call->session_node);
	session->call_count++;
	call->ticket = ks_gate_ticket(&session->gate);
	call->limits = ks_call_session_limits(session);
	if (params->memory_mb != KS_ABSENT)
		call->limits.memory_bytes = params->memory_mb << 20;
	if (params->pids != KS_ABSENT)
		call->limits.pids = params->pids;
	if (params->cpus_milli != KS_ABSENT)
		call->limits.cpus_milli = params->cpus_milli;
	call->timeout_ms = params->timeout_ms != KS_ABSENT ? params->timeout_ms : session->timeout_ms;
	call->max_output_bytes = params->max_output_bytes != KS_ABSENT ? params->max_output_bytes : session->max_output_bytes;
	call->track_files = params->track_files < 0 ? session->track_files : params->track_files;
	call->disk = (struct ks_disk){ .limit_bytes = (uint64_t)call->limits.file_bytes,
				       .core = call->core,
				       .workspace_fd = session->workspace_fd,
				       .measured = ks_call_disk_measured,
				       .full = ks_call_disk_full };
	if (!ks_call_is_host(call))
		return;
	/* its cells look at the workspace; whoever needs the session for itself does not wait for it */
	call->ticket = UINT64_MAX;
	call->track_files = false;
	call->disk.limit_bytes = 0;
}

static void in_session(struct ks_call *call)
{
	struct ks_error err;

	const bool own = call->is_setup || (!call->throwaway && call->session->start == KS_START_COLD);
	if (!own && (!call->throwaway || call->session->preload.count > 0)) {
		take_box(call);
		return;
	}
	call->outcome.start_kind = "cold";
	if (!own) {
		ks_call_make_box(call, call->session->group);
		return;
	}
	call->state = KS_CALL_OPENING;
	call->own_group = ks_session_open_group(call->session, &own_group_ops, call, &err);
	if (!call->own_group)
		ks_call_fail(call, &err);
}

static void on_session_opened(void *arg, struct ks_session *session, const struct ks_error *err)
{
	struct ks_call *call = arg;
	struct ks_error cancelled;

	if (call->state != KS_CALL_OPENING)
		return;
	if (!session) {
		call->session = NULL; /* it closes by itself */
		if (call->cancelled)
			(void)ks_fail(&cancelled, KS_E_CANCELLED, "the call was cancelled before its code started");
		ks_call_fail(call, call->cancelled ? &cancelled : err);
		return;
	}
	ks_call_inherit(call);
	in_session(call);
}

void ks_call_start(struct ks_call *call)
{
	struct ks_core *core = call->core;
	struct ks_error err;

	ks_list_remove(&call->node);
	ks_list_append(&core->running, &call->node);
	core->queued_count--;
	core->running_count++;
	call->made_us = ks_now_us();
	ks_call_note(call, KS_AT_BEGIN);
	call->state = KS_CALL_OPENING;
	if (call->cell) {
		call->outcome.start_kind = "template";
		call->state = KS_CALL_STARTING;
		ks_call_look_at(call, true);
		return;
	}
	if (!call->throwaway) {
		if (call->session->state == KS_SESSION_OPEN)
			in_session(call);
		return; /* else ks_calls_session_opened() goes on here, or the session's failure ends it */
	}
	call->session = ks_anonymous_take(call);
	if (call->session) {
		ks_call_inherit(call);
		take_box(call);
		return;
	}
	if (ks_session_open(core, &call->params->session, true, on_session_opened, call, &call->session, &err) < 0) {
		if (call->params->has_session && err.pointer[0]) {
			char pointer[sizeof(err.pointer)];
			(void)snprintf(pointer, sizeof(pointer), "/session%.*s", (int)sizeof(pointer) - 9, err.pointer);
			(void)ks_error_at(&err, pointer);
		}
		call->session = NULL;
		ks_call_fail(call, &err);
	}
}

void ks_calls_session_opened(struct ks_session *session)
{
	for (struct ks_list *n = session->calls.next, *next; n != &session->calls; n = next) {
		struct ks_call *call = KS_ENTRY(n, struct ks_call, session_node);
		next = n->next;
		if (call->state == KS_CALL_OPENING)
			in_session(call);
	}
}

