#include "session/call_parts.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "session/anonymous.h"
#include "session/deps.h"
#include "session/kernel.h"
#include "session/posture.h"
#include "session/spares.h"

/* ---- memory ---- */

/* Once it is forgotten, and no uv handle, no process of its box and no template of its own is left. */
void ks_call_free_if_over(struct ks_call *call)
{
	if (!call->forgotten || call->handles > 0 || call->box || call->own_group)
		return;
	ks_list_remove(&call->node);
	ks_changes_free(&call->changes);
	ks_call_io_free(call);
	free(call);
}

/* It is in no list, and nobody asks for it any more. */
void ks_call_let_go(struct ks_call *call)
{
	call->forgotten = true;
	ks_list_append(&call->core->forgotten, &call->node);
	ks_call_free_if_over(call);
}

void ks_call_handle_closed(uv_handle_t *handle)
{
	struct ks_call *call = handle->data;

	call->handles--;
	ks_call_free_if_over(call);
}

void ks_call_forget(struct ks_call *call)
{
	struct ks_core *core = call->core;

	memcpy(core->gone[core->gone_next++ % KS_GONE_MAX], call->id, sizeof(call->id));
	core->finished_count--;
	core->finished_bytes -= call->log[0].kept.len + call->log[1].kept.len;
	ks_list_remove(&call->node);
	ks_call_let_go(call);
}

static void trim_finished(struct ks_core *core)
{
	while (core->finished_count > KS_FINISHED_MAX || core->finished_bytes > KS_FINISHED_BYTES)
		ks_call_forget(KS_ENTRY(core->finished.next, struct ks_call, node));
}

/* ---- how long its steps took ---- */

void ks_call_note(struct ks_call *call, enum ks_moment moment)
{
	call->moments[moment] = ks_now_us();
}

static void log_timings(struct ks_call *call)
{
	static const char *const names[KS_MOMENTS] = { "", "box", "look", "claim", "start", "run", "drain", "look_after", "reply" };
	char text[256];
	size_t at = 0;

	if (!ks_log_wants(KS_LOG_DEBUG))
		return;
	ks_call_note(call, KS_AT_REPLIED);
	int64_t before = call->moments[KS_AT_BEGIN];
	for (int i = KS_AT_BEGIN + 1; i < KS_MOMENTS && before; i++) {
		if (!call->moments[i])
			continue;
		at += (size_t)snprintf(text + at, sizeof(text) - at, " %s=%lld", names[i], (long long)(call->moments[i] - before));
		before = call->moments[i];
	}
	if (at > 0)
		ks_log(KS_LOG_DEBUG, "call_timings", "%s %s%s", call->id, call->outcome.start_kind ? call->outcome.start_kind : "cell",
		       text);
}

/* ---- leaving ---- */

/* The process of a kernel: it has no request, no deadline, no turn to wait for. */
bool ks_call_is_host(const struct ks_call *call)
{
	return call->kernel && !call->cell;
}

static void close_timer(struct ks_call *call)
{
	uv_close((uv_handle_t *)&call->timer, ks_call_handle_closed);
}

static void on_disk_closed(uv_handle_t *handle)
{
	struct ks_disk *disk = handle->data;

	handle->data = KS_ENTRY(disk, struct ks_call, disk);
	ks_call_handle_closed(handle);
}

void ks_call_stop(struct ks_call *call)
{
	close_timer(call);
	(void)ks_disk_stop(&call->disk, on_disk_closed);
	ks_call_files_stop(call);
	ks_call_disconnect(call);
}

void ks_call_leave(struct ks_call *call)
{
	struct ks_core *core = call->core;
	struct ks_session *session = call->session;

	ks_list_remove(&call->node);
	ks_list_remove(&call->session_node);
	if (call->state == KS_CALL_QUEUED)
		core->queued_count--;
	else if (!ks_call_is_host(call)) /* an idle interpreter takes no place of a run */
		core->running_count--;
	call->state = KS_CALL_DONE;
	if (call->cell)
		ks_kernel_cell_left(call);
	ks_spare_leave(call);
	ks_call_stop(call);
	if (call->box) {
		ks_box_release(call->box);
		call->box = NULL;
	}
	if (call->own_group)
		ks_group_close(call->own_group);
	call->session = NULL;
	if (session) {
		session->call_count--;
		if (call->throwaway && !ks_anonymous_return(session)) {
			ks_session_close(session, NULL, NULL);
		} else {
			ks_gate_turn(session);
			ks_session_turn(session);
		}
	}
}

void ks_call_fail(struct ks_call *call, const struct ks_error *err)
{
	const struct ks_call_ops *ops = call->ops;
	struct ks_core *core = call->core;
	void *arg = call->arg;

	if (call->state == KS_CALL_DONE)
		return;
	if (err->reason == KS_E_START_FAILED || err->reason == KS_E_HOST_UNSUPPORTED)
		core->counters.starts_failed++;
	if (call->session)
		call->session->anonymous.returns = false; /* who knows what is wrong with it */
	ks_call_leave(call);
	ops->failed(arg, err);
	ks_call_let_go(call);
	ks_core_turn(core);
}

void ks_call_finish(struct ks_call *call)
{
	struct ks_core *core = call->core;

	log_timings(call);
	ks_call_leave(call); /* after the answer: its blobs belong to the session, which may be a throw-away one */
	ks_list_append(&core->finished, &call->node);
	core->finished_count++;
	core->finished_bytes += call->log[0].kept.len + call->log[1].kept.len;
	call->finished_us = ks_now_us();
	call->params = NULL;
	ks_results_free(&call->results);
	ks_results_init(&call->results);
	ks_changes_free(&call->changes);
	trim_finished(core);
	ks_spares_now(core);
	ks_core_turn(core);
}

static void finish(struct ks_call *call)
{
	if (call->state == KS_CALL_DONE || call->decided)
		return;
	call->decided = true;
	ks_call_note(call, KS_AT_DECIDED);
	ks_outcome_decide(call);
	call->core->counters.calls++;
	call->core->counters.faults += call->outcome.fault != KS_FAULT_NONE;
	(void)uv_timer_stop(&call->timer);
	call->ops->done(call->arg);
}

/* ---- the end ---- */

/* Files, disk: each that was wanted, at the same time. The call goes on when all have ended. */
void ks_call_look_at(struct ks_call *call, bool before)
{
	call->looks = 1; /* ours, so that one which ends at once is not the last */
	if (call->track_files && (before || call->before)) {
		call->looks++;
		ks_call_look(call, before);
	}
	if (call->disk.limit_bytes > 0) {
		call->looks++;
		ks_disk_measure(&call->disk);
	}
	call->looks += before && call->awaits_box;
	ks_call_look_done(call);
}

static void look_after(struct ks_call *call)
{
	ks_call_look_at(call, false);
}

/* Does something have to wait until nobody writes to the workspace any more? */
static bool wants_quiet(const struct ks_call *call)
{
	return (call->track_files || call->disk.limit_bytes > 0) && !call->outcome.end.alone;
}

void ks_call_end(struct ks_call *call)
{
	ks_call_drain(call);
	ks_call_note(call, KS_AT_DRAINED);
	if (call->images.busy) {
		call->images.ended = true;
		return; /* ks_call_end_again() */
	}
	call->state = KS_CALL_ENDING;
	/* Something may still write to the workspace until the last process is gone. */
	if (wants_quiet(call) && !call->box_gone && !call->overdue)
		return;
	look_after(call);
}

static void on_overdue(uv_timer_t *timer)
{
	struct ks_call *call = timer->data;

	/* A task in uninterruptible sleep: the answer leaves all the same, the box is counted. */
	call->overdue = true;
	call->core->counters.leaked++;
	ks_log(KS_LOG_WARN, "box_leaked", "the processes of run %s did not end within %d ms of SIGKILL", call->id,
	       KS_DEATH_GRACE_MS);
	if (call->box_ended) {
		look_after(call);
		return;
	}
	call->box_ended = true;
	call->outcome.end = (struct ks_box_end){ .how = KS_END_LOST, .killed_by_us = true };
	memset(&call->outcome.end.leaf, 0xff, sizeof(call->outcome.end.leaf)); /* all -1: unknown */
	ks_call_end(call);
}

static void kill_box(struct ks_call *call)
{
	if (call->cell) {
		ks_kernel_stop_cell(call);
		return;
	}
	ks_box_kill(call->box);
	(void)uv_timer_start(&call->timer, on_overdue, KS_DEATH_GRACE_MS, 0);
}

static void on_deadline(uv_timer_t *timer)
{
	struct ks_call *call = timer->data;

	call->timed_out = true;
	kill_box(call);
}

/* The loop's clock is as old as its turn, and counts whole milliseconds: not a moment too early. */
static void start_deadline(struct ks_call *call)
{
	uv_update_time(call->core->loop);
	(void)uv_timer_start(&call->timer, on_deadline, (uint64_t)call->timeout_ms + 1, 0);
}

/* ---- what the box says ---- */

void ks_call_started(void *arg)
{
	struct ks_call *call = arg;

	if (call->state != KS_CALL_STARTING)
		return;
	call->state = KS_CALL_RUNNING;
	call->started_us = ks_now_us();
	ks_call_note(call, KS_AT_STARTED);
	if (call->cancelled)
		kill_box(call);
	else if (!ks_call_is_host(call)) /* the limit of its start holds until it says that it is ready */
		start_deadline(call);
	call->ops->started(call->arg);
	ks_call_watch(call);
	if (call->disk.limit_bytes > 0) {
		ks_disk_watch(&call->disk);
		call->handles++;
	}
}

/* Of an interpreter that was booted ahead it is the boot, and may be read after its runner's word that it waits. */
static void on_box_started(void *arg)
{
	const struct ks_call *call = arg;

	if (!call->parked)
		ks_call_started(arg);
}

static void on_failed(void *arg, const struct ks_error *err)
{
	struct ks_call *call = arg;
	struct ks_error cancelled;

	if (ks_call_replace_spare(call))
		return;

	if (call->cancelled) {
		(void)ks_fail(&cancelled, KS_E_CANCELLED, "the call was cancelled before its code started");
		err = &cancelled;
	}
	ks_call_fail(call, err);
}

static void on_ended(void *arg, const struct ks_box_end *box_end)
{
	struct ks_call *call = arg;

	if (call->parked && call->claimed)
		ks_call_look_whether_begun(call); /* its word and its end may come in one turn */
	if ((call->state != KS_CALL_STARTING && call->state != KS_CALL_RUNNING) || ks_call_replace_spare(call))
		return;
	if (call->state == KS_CALL_STARTING) {
		/* exec failed, or it was so quick that its end came with its start */
		call->started_us = ks_now_us();
		call->ops->started(call->arg);
	}
	(void)uv_timer_stop(&call->timer);
	ks_call_note(call, KS_AT_ENDED);
	call->box_ended = true;
	call->outcome.end = *box_end;
	if (call->parked) /* init has seen it boot as well */
		call->outcome.end.wall_us = ks_now_us() - call->started_us;
	if (wants_quiet(call) && !call->box_gone)
		(void)uv_timer_start(&call->timer, on_overdue, KS_DEATH_GRACE_MS, 0);
	ks_call_end(call);
}

static void on_gone(void *arg)
{
	struct ks_call *call = arg;
	bool waited = call->state == KS_CALL_ENDING && wants_quiet(call) && !call->overdue;

	call->escape = *ks_box_escape(call->box);
	call->box = NULL;
	call->box_gone = true;
	if (!waited)
		return;
	(void)uv_timer_stop(&call->timer);
	look_after(call);
}

const struct ks_box_ops ks_call_box_ops = { on_box_started, on_failed, on_ended, on_gone, ks_call_box_ready };


void ks_call_look_done(struct ks_call *call)
{
	if (--call->looks > 0)
		return;
	if (call->state == KS_CALL_STARTING)
		ks_call_claim_now(call);
	else if (call->state == KS_CALL_ENDING)
		finish(call);
}

void ks_call_disk_measured(struct ks_disk *disk)
{
	struct ks_call *call = KS_ENTRY(disk, struct ks_call, disk);

	call->disk_full |= disk->over;
	ks_call_look_done(call);
}

void ks_call_disk_full(struct ks_disk *disk)
{
	struct ks_call *call = KS_ENTRY(disk, struct ks_call, disk);

	call->disk_full = true;
	if (call->state == KS_CALL_RUNNING)
		kill_box(call);
}

/* ---- while it lives ---- */

void ks_call_drop(struct ks_call *call)
{
	ks_call_leave(call);
	ks_call_let_go(call);
}

void ks_call_cancel(struct ks_call *call)
{
	struct ks_error err;

	if (call->cancelled || call->state >= KS_CALL_ENDING)
		return;
	call->cancelled = true;
	if (call->state == KS_CALL_RUNNING) {
		kill_box(call);
		return;
	}
	(void)ks_fail(&err, KS_E_CANCELLED, "the call was cancelled before its code started");
	if (call->state == KS_CALL_OPENING && call->throwaway && call->session) {
		ks_session_close(call->session, NULL, NULL); /* comes back through on_session_opened */
		return;
	}
	/* STARTING: the claim may be on its way. Whether the code has begun is known when the box has answered. */
	if (call->state == KS_CALL_STARTING && call->claimed) {
		kill_box(call);
		return;
	}
	ks_call_fail(call, &err);
}

int ks_call_signal(struct ks_call *call, int signal_number, struct ks_error *err)
{
	const struct ks_call *process = call->cell ? call->kernel->host : call;
	int rc = call->state == KS_CALL_RUNNING && process ? ks_box_signal(process->box, signal_number) : -ESRCH;

	if (rc == -ESRCH && call->state < KS_CALL_RUNNING)
		return ks_fail_at(err, KS_E_BUSY, "/runId", "run %s has not started yet; wait for run/started", call->id);
	/* its end is on the way: a signal that comes too late is not an error */
	return rc < 0 && rc != -ESRCH ? ks_fail_errno(err, KS_E_INTERNAL, -rc, "cannot signal run %s", call->id) : 0;
}

