#include "session/call.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "session/deps.h"
#include "session/kernel.h"
#include "session/posture.h"

#define RESULT_FD 3

void ks_call_add_note(struct ks_call *call, const char *code, const char *fmt, ...)
{
	va_list ap;

	if (call->note_count == KS_COUNT(call->notes))
		return;
	struct ks_note *note = &call->notes[call->note_count++];
	(void)snprintf(note->code, sizeof(note->code), "%s", code);
	va_start(ap, fmt);
	(void)vsnprintf(note->message, sizeof(note->message), fmt, ap);
	va_end(ap);
}

/* ---- memory ---- */

/* Once it is forgotten, and no uv handle, no process of its box and no template of its own is left. */
static void free_if_over(struct ks_call *call)
{
	if (!call->forgotten || call->handles > 0 || call->box || call->own_group)
		return;
	ks_list_remove(&call->node);
	ks_changes_free(&call->changes);
	ks_call_io_free(call);
	free(call);
}

/* It is in no list, and nobody asks for it any more. */
static void let_go(struct ks_call *call)
{
	call->forgotten = true;
	ks_list_append(&call->core->forgotten, &call->node);
	free_if_over(call);
}

void ks_call_handle_closed(uv_handle_t *handle)
{
	struct ks_call *call = handle->data;

	call->handles--;
	free_if_over(call);
}

static void forget(struct ks_call *call)
{
	struct ks_core *core = call->core;

	memcpy(core->gone[core->gone_next++ % KS_GONE_MAX], call->id, sizeof(call->id));
	core->finished_count--;
	core->finished_bytes -= call->log[0].kept.len + call->log[1].kept.len;
	ks_list_remove(&call->node);
	let_go(call);
}

static void trim_finished(struct ks_core *core)
{
	while (core->finished_count > KS_FINISHED_MAX || core->finished_bytes > KS_FINISHED_BYTES)
		forget(KS_ENTRY(core->finished.next, struct ks_call, node));
}

static void on_disk_measured(struct ks_disk *disk);
static void on_disk_full(struct ks_disk *disk);

/* ---- leaving ---- */

/* The process of a kernel: it has no request, no deadline, no turn to wait for. */
static bool is_host(const struct ks_call *call)
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

/* Out of the running ones; the session may now end, and another call may start. */
static void leave(struct ks_call *call)
{
	struct ks_core *core = call->core;
	struct ks_session *session = call->session;

	ks_list_remove(&call->node);
	ks_list_remove(&call->session_node);
	if (call->state == KS_CALL_QUEUED)
		core->queued_count--;
	else if (!is_host(call)) /* an idle interpreter takes no place of a run */
		core->running_count--;
	call->state = KS_CALL_DONE;
	if (call->cell)
		ks_kernel_cell_left(call);
	close_timer(call);
	(void)ks_disk_stop(&call->disk, on_disk_closed);
	ks_call_files_stop(call);
	ks_call_disconnect(call);
	if (call->box) {
		ks_box_release(call->box);
		call->box = NULL;
	}
	if (call->own_group)
		ks_group_close(call->own_group);
	call->session = NULL;
	if (session) {
		session->call_count--;
		if (call->throwaway) {
			ks_session_close(session, NULL, NULL);
		} else {
			ks_gate_turn(session);
			ks_session_turn(session);
		}
	}
}

static void fail(struct ks_call *call, const struct ks_error *err)
{
	const struct ks_call_ops *ops = call->ops;
	struct ks_core *core = call->core;
	void *arg = call->arg;

	if (call->state == KS_CALL_DONE)
		return;
	if (err->reason == KS_E_START_FAILED || err->reason == KS_E_HOST_UNSUPPORTED)
		core->counters.starts_failed++;
	leave(call);
	ops->failed(arg, err);
	let_go(call);
	ks_core_turn(core);
}

void ks_call_finish(struct ks_call *call)
{
	struct ks_core *core = call->core;

	leave(call); /* after the answer: its blobs belong to the session, which may be a throw-away one */
	ks_list_append(&core->finished, &call->node);
	core->finished_count++;
	core->finished_bytes += call->log[0].kept.len + call->log[1].kept.len;
	call->finished_us = ks_now_us();
	call->params = NULL;
	ks_results_free(&call->results);
	ks_results_init(&call->results);
	ks_changes_free(&call->changes);
	trim_finished(core);
	ks_core_turn(core);
}

static void finish(struct ks_call *call)
{
	if (call->state == KS_CALL_DONE || call->decided)
		return;
	call->decided = true;
	ks_outcome_decide(call);
	call->core->counters.calls++;
	call->core->counters.faults += call->outcome.fault != KS_FAULT_NONE;
	(void)uv_timer_stop(&call->timer);
	call->ops->done(call->arg);
}

/* ---- the end ---- */

/* Files, disk: each that was wanted, at the same time. The call goes on when all have ended. */
static void look(struct ks_call *call, bool before)
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
	ks_call_look_done(call);
}

static void look_after(struct ks_call *call)
{
	look(call, false);
}

/* Does something have to wait until nobody writes to the workspace any more? */
static bool wants_quiet(const struct ks_call *call)
{
	return (call->track_files || call->disk.limit_bytes > 0) && !call->outcome.end.alone;
}

static void end(struct ks_call *call)
{
	ks_call_drain(call);
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

void ks_call_end_again(struct ks_call *call)
{
	end(call);
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
	end(call);
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

static void on_start_limit(uv_timer_t *timer)
{
	struct ks_call *call = timer->data;
	struct ks_error err;

	if (call->looks > 0) { /* the workspace is large, or many are looked at: the box waits for us */
		(void)uv_timer_start(&call->timer, on_start_limit, KS_START_LIMIT_MS, 0);
		return;
	}
	(void)ks_fail(&err, KS_E_START_FAILED, "the box was not ready within %d ms", KS_START_LIMIT_MS);
	(void)ks_error_hint(&err, "the machine is overloaded; try again with fewer calls at once");
	fail(call, &err);
}

/* ---- what the box says ---- */

static void on_started(void *arg)
{
	struct ks_call *call = arg;

	if (call->state != KS_CALL_STARTING)
		return;
	call->state = KS_CALL_RUNNING;
	call->started_us = ks_now_us();
	if (call->cancelled)
		kill_box(call);
	else if (!is_host(call)) /* the limit of its start holds until it says that it is ready */
		(void)uv_timer_start(&call->timer, on_deadline, (uint64_t)call->timeout_ms, 0);
	call->ops->started(call->arg);
	ks_call_watch(call);
	if (call->disk.limit_bytes > 0) {
		ks_disk_watch(&call->disk);
		call->handles++;
	}
}

static void on_failed(void *arg, const struct ks_error *err)
{
	struct ks_call *call = arg;
	struct ks_error cancelled;

	if (call->cancelled) {
		(void)ks_fail(&cancelled, KS_E_CANCELLED, "the call was cancelled before its code started");
		err = &cancelled;
	}
	fail(call, err);
}

static void on_ended(void *arg, const struct ks_box_end *box_end)
{
	struct ks_call *call = arg;

	if (call->state != KS_CALL_STARTING && call->state != KS_CALL_RUNNING)
		return;
	if (call->state == KS_CALL_STARTING) {
		/* exec failed, or it was so quick that its end came with its start */
		call->started_us = ks_now_us();
		call->ops->started(call->arg);
	}
	(void)uv_timer_stop(&call->timer);
	call->box_ended = true;
	call->outcome.end = *box_end;
	if (wants_quiet(call) && !call->box_gone)
		(void)uv_timer_start(&call->timer, on_overdue, KS_DEATH_GRACE_MS, 0);
	end(call);
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

static const struct ks_box_ops box_ops = { on_started, on_failed, on_ended, on_gone };

/* ---- start ---- */

static size_t add_words(const char **to, size_t at, char *const *words)
{
	for (; words && *words; words++)
		to[at++] = *words;
	return at;
}

/* Later ones win: ours, the plugin's, the session's, the call's. */
static int build_environment(struct ks_call *call, const struct ks_prepared *prepared, const char *cwd, const char ***ret,
			     struct ks_buf *room, struct ks_error *err)
{
	const struct ks_pairs *requested[] = { &call->session->env, &call->params->env };
	size_t max = 64 + prepared->env_count + requested[0]->count + requested[1]->count, count = 0;
	size_t *offsets = calloc(max, sizeof(*offsets));
	const char **list = calloc(max + 1, sizeof(*list));

	if (!offsets || !list)
		goto failed;
	for (const char *const *e = ks_posture_env; *e; e++) {
		offsets[count++] = room->len;
		ks_buf_add(room, *e, strlen(*e) + 1);
	}
	const char *const own[][2] = { { "PWD", cwd }, { "USER", call->session->user_name }, { "LOGNAME", call->session->user_name } };
	for (size_t i = 0; i < KS_COUNT(own); i++) {
		offsets[count++] = room->len;
		ks_buf_printf(room, "%s=%s", own[i][0], own[i][1]);
		ks_buf_char(room, '\0');
	}
	size_t at = room->len;
	ks_deps_environment(call->session, room);
	for (; at < room->len && !room->failed; at += strlen(room->data + at) + 1)
		offsets[count++] = at;
	for (size_t i = 0; i < prepared->env_count; i++) {
		offsets[count++] = room->len;
		ks_buf_add(room, prepared->env[i], strlen(prepared->env[i]) + 1);
	}
	for (size_t k = 0; k < 2; k++)
		for (size_t i = 0; i < requested[k]->count; i++) {
			offsets[count++] = room->len;
			ks_buf_printf(room, "%s=", requested[k]->names[i]);
			ks_buf_add(room, requested[k]->values[i], strlen(requested[k]->values[i]) + 1);
		}
	if (room->failed)
		goto failed;
	size_t kept = 0;
	for (size_t i = 0; i < count; i++) {
		const char *entry = room->data + offsets[i];
		size_t name = strcspn(entry, "=") + 1;
		bool later = false;
		for (size_t k = i + 1; k < count && !later; k++)
			later = strncmp(entry, room->data + offsets[k], name) == 0;
		if (!later)
			list[kept++] = entry;
	}
	free(offsets);
	*ret = list;
	return 0;
failed:
	free(offsets);
	free(list);
	return ks_fail(err, KS_E_INTERNAL, "out of memory");
}

static int prepare(struct ks_call *call, struct ks_prepared *prepared, struct ks_error *err)
{
	const struct ks_run_params *params = call->params;
	char runner_dir[128];

	if (!call->language)
		return 0;
	(void)snprintf(runner_dir, sizeof(runner_dir), KS_RUNNER_DIR "/%s", call->language->plugin->api.name);
	const char *interpreter = ks_session_interpreter(call->session, call->language);
	struct kern_run run = {
		.first_line = params->first_line == KS_ABSENT ? 1 : (uint32_t)params->first_line,
		/* missing: the box looks for the plain name, does not find it, and says so as exec_failed */
		.interpreter = interpreter ? interpreter : call->language->api.programs[0],
		.code = call->code,
		.code_len = call->code_len,
		.filename = params->filename,
		.args = (const char *const *)params->args.items,
		.arg_count = params->args.count,
		.runner_dir = call->language->plugin->runner_dir ? runner_dir : NULL,
		.code_dir = KS_CODE_DIR,
		.result_fd = call->language->api.flags & KERN_CAN_RICH ? RESULT_FD : -1,
		.flags = is_host(call) ? KERN_RUN_KERNEL : 0,
	};
	return ks_plugin_prepare(call->language, &run, prepared, err);
}

static int claim_with(struct ks_call *call, const struct ks_prepared *prepared, struct ks_error *err)
{
	struct ks_command_file files[KS_PLUGIN_FILES_MAX];
	struct ks_command_spec spec = { .files = files, .result_fd = -1, .stdio = { -1, -1, -1 } };
	KS_AUTOBUF struct ks_buf room = { 0 };
	KS_AUTOFREE const char **env = NULL;
	KS_AUTOFREE const char **argv = NULL;
	KS_AUTOFREE char *cwd = ks_session_resolve_cwd(call->session, call->params->cwd, err);

	if (!cwd || build_environment(call, prepared, cwd, &env, &room, err) < 0)
		return -1;
	argv = calloc(prepared->argc + call->params->argv.count + 1, sizeof(*argv));
	if (!argv)
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	(void)add_words(argv, add_words(argv, 0, prepared->argv), call->language ? NULL : call->params->argv.items);
	for (; spec.nfiles < prepared->file_count; spec.nfiles++) {
		const struct ks_prepared_file *file = &prepared->files[spec.nfiles];
		files[spec.nfiles] = (struct ks_command_file){ file->name, file->data, file->len, file->mode };
	}
	spec.cwd = cwd;
	spec.argv = argv;
	spec.env = env;
	int rc = ks_call_connect(call, spec.stdio, &spec.result_fd, err);
	if (rc == 0)
		rc = ks_box_claim(call->box, &spec, err);
	for (int i = 0; i < 3; i++)
		if (i != 2 || spec.stdio[2] != spec.stdio[1])
			ks_close(&spec.stdio[i]);
	ks_close(&spec.result_fd);
	return rc;
}

static void claim(struct ks_call *call)
{
	struct ks_prepared prepared = { 0 };
	struct ks_error err;

	if (call->cell) {
		if (ks_kernel_send(call, &err) < 0)
			fail(call, &err);
		else
			on_started(call);
		return;
	}
	int rc = prepare(call, &prepared, &err);
	if (rc == 0)
		rc = claim_with(call, &prepared, &err);
	ks_prepared_free(&prepared);
	if (rc < 0)
		fail(call, &err);
	else
		call->claimed = true;
}

static void make_box(struct ks_call *call, struct ks_group *group)
{
	struct ks_error err;

	call->state = KS_CALL_STARTING;
	call->box = ks_box_make(group, &call->limits, &box_ops, call, &err);
	if (!call->box) {
		fail(call, &err);
		return;
	}
	(void)uv_timer_start(&call->timer, on_start_limit, KS_START_LIMIT_MS, 0);
	look(call, true); /* the box sets itself up meanwhile */
}

void ks_call_look_done(struct ks_call *call)
{
	if (--call->looks > 0)
		return;
	if (call->state == KS_CALL_STARTING)
		claim(call);
	else if (call->state == KS_CALL_ENDING)
		finish(call);
}

static void on_disk_measured(struct ks_disk *disk)
{
	struct ks_call *call = KS_ENTRY(disk, struct ks_call, disk);

	call->disk_full |= disk->over;
	ks_call_look_done(call);
}

static void on_disk_full(struct ks_disk *disk)
{
	struct ks_call *call = KS_ENTRY(disk, struct ks_call, disk);

	call->disk_full = true;
	if (call->state == KS_CALL_RUNNING)
		kill_box(call);
}

/* ---- a template of its own ---- */

static void own_group_ready(void *arg, int memory_fd)
{
	struct ks_call *call = arg;

	ks_close(&memory_fd); /* the session's first template has brought it */
	if (call->state == KS_CALL_OPENING)
		make_box(call, call->own_group);
}

static void own_group_failed(void *arg, const struct ks_error *err)
{
	struct ks_call *call = arg;

	if (call->state == KS_CALL_OPENING)
		fail(call, err);
}

static void own_group_ended(void *arg)
{
	struct ks_call *call = arg;

	call->own_group = NULL;
	free_if_over(call);
}

static const struct ks_group_ops own_group_ops = { own_group_ready, own_group_failed, own_group_ended };

static void inherit(struct ks_call *call)
{
	const struct ks_run_params *params = call->params;
	struct ks_session *session = call->session;

	ks_list_append(&session->calls, &call->session_node);
	session->call_count++;
	call->ticket = ks_gate_ticket(&session->gate);
	call->limits = session->limits;
	if (params->memory_mb != KS_ABSENT)
		call->limits.memory_bytes = params->memory_mb << 20;
	if (params->pids != KS_ABSENT)
		call->limits.pids = params->pids;
	if (params->cpus_milli != KS_ABSENT)
		call->limits.cpus_milli = params->cpus_milli;
	call->timeout_ms = params->timeout_ms != KS_ABSENT ? params->timeout_ms : session->timeout_ms;
	call->max_output_bytes = params->max_output_bytes != KS_ABSENT ? params->max_output_bytes : session->max_output_bytes;
	call->track_files = params->track_files < 0 ? session->track_files : params->track_files;
	call->disk = (struct ks_disk){ .limit_bytes = session->workspace_watched ? (uint64_t)session->workspace_max_mb << 20 : 0,
				       .core = call->core, .workspace_fd = session->workspace_fd, .measured = on_disk_measured, .full = on_disk_full };
	call->limits.memory_files = session->workspace_memory;
	call->limits.file_bytes = (int64_t)call->disk.limit_bytes;
	if (!is_host(call))
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
	call->outcome.start_kind = own || call->throwaway ? "cold" : "template";
	if (!own) {
		make_box(call, call->session->group);
		return;
	}
	call->state = KS_CALL_OPENING;
	call->own_group = ks_session_open_group(call->session, &own_group_ops, call, &err);
	if (!call->own_group)
		fail(call, &err);
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
		fail(call, call->cancelled ? &cancelled : err);
		return;
	}
	inherit(call);
	in_session(call);
}

static void start(struct ks_call *call)
{
	struct ks_core *core = call->core;
	struct ks_error err;

	ks_list_remove(&call->node);
	ks_list_append(&core->running, &call->node);
	core->queued_count--;
	core->running_count++;
	call->made_us = ks_now_us();
	call->state = KS_CALL_OPENING;
	if (call->cell) {
		call->outcome.start_kind = "template";
		call->state = KS_CALL_STARTING;
		look(call, true);
		return;
	}
	if (!call->throwaway) {
		if (call->session->state == KS_SESSION_OPEN)
			in_session(call);
		return; /* else ks_calls_session_opened() goes on here, or the session's failure ends it */
	}
	if (ks_session_open(core, &call->params->session, true, on_session_opened, call, &call->session, &err) < 0) {
		if (call->params->has_session && err.pointer[0]) {
			char pointer[sizeof(err.pointer)];
			(void)snprintf(pointer, sizeof(pointer), "/session%.*s", (int)sizeof(pointer) - 9, err.pointer);
			(void)ks_error_at(&err, pointer);
		}
		call->session = NULL;
		fail(call, &err);
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
			start(call);
	}
	core->starting = false;
}

/* ---- what the rest of the sidecar asks for ---- */

static int check(struct ks_core *core, const struct ks_session *session, const struct ks_run_params *params, bool is_argv,
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

static struct ks_call *new_call(struct ks_core *core, struct ks_session *session, const struct ks_run_params *params,
				const struct ks_call_ops *ops, void *arg, const char *prefix, struct ks_error *err)
{
	struct ks_call *call = calloc(1, sizeof(*call));

	if (!call) {
		(void)ks_fail(err, KS_E_INTERNAL, "out of memory");
		return NULL;
	}
	*call = (struct ks_call){ .core = core, .session = session, .owner = session, .ops = ops, .arg = arg, .params = params,
				  .throwaway = session == NULL, .out = { { .fd = -1 }, { .fd = -1 } }, .in.fd = -1, .channel.fd = -1 };
	if (params->run_id)
		(void)snprintf(call->id, sizeof(call->id), "%s", params->run_id);
	else
		ks_core_make_handle(core, prefix, call->id);
	ks_list_init(&call->session_node);
	ks_list_init(&call->diff_chore.node);
	ks_results_init(&call->results);
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

	if (check(core, session, params, is_argv, &language, err) < 0)
		return -1;
	struct ks_call *call = new_call(core, session, params, ops, arg, "run", err);
	if (!call)
		return -1;
	call->language = language;
	call->code = code;
	call->code_len = code_len;
	call->stdin_data = stdin_data;
	call->stdin_len = stdin_len;
	if (session)
		inherit(call);
	*ret = call;
	return 0;
}

/* ---- kernels ---- */

int ks_call_start_host(struct ks_kernel *kernel, const struct ks_call_ops *ops, struct ks_call **ret, struct ks_error *err)
{
	struct ks_call *call = new_call(kernel->core, kernel->session, &kernel->params, ops, kernel, "process", err);

	if (!call)
		return -1;
	call->kernel = kernel;
	call->language = kernel->language;
	call->code = "";
	inherit(call);
	ks_list_remove(&call->node);
	kernel->core->queued_count--;
	ks_list_append(&kernel->core->running, &call->node);
	call->made_us = ks_now_us();
	*ret = call; /* before it starts: what fails at once asks for it */
	make_box(call, kernel->session->group);
	return 0;
}

static bool has_room(const struct ks_kernel *kernel)
{
	size_t waiting = 0;

	for (struct ks_list *n = kernel->core->queued.next; n != &kernel->core->queued; n = n->next)
		waiting += KS_ENTRY(n, struct ks_call, node)->kernel == kernel;
	return waiting < KS_KERNEL_CELLS_MAX;
}

int ks_call_new_cell(struct ks_kernel *kernel, const struct ks_run_params *params, const char *code, size_t code_len,
		     const struct ks_call_ops *ops, void *arg, struct ks_call **ret, struct ks_error *err)
{
	const struct ks_language *ignored;

	if (check(kernel->core, kernel->session, params, true, &ignored, err) < 0)
		return -1;
	if (!kernel->host)
		return ks_fail_at(err, KS_E_KERNEL_DEAD, "/kernelId", "kernel %s is dead; kernel/restart starts it again", kernel->id);
	if (!has_room(kernel))
		return ks_fail_at(err, KS_E_BUSY, "/kernelId", "%d cells wait in kernel %s", KS_KERNEL_CELLS_MAX, kernel->id);
	struct ks_call *call = new_call(kernel->core, kernel->session, params, ops, arg, "run", err);
	if (!call)
		return -1;
	call->kernel = kernel;
	call->cell = true;
	call->language = kernel->language;
	call->code = code;
	call->code_len = code_len;
	inherit(call);
	if (params->timeout_ms == KS_ABSENT)
		call->timeout_ms = kernel->timeout_ms;
	*ret = call;
	return 0;
}

static int64_t since(int64_t now, int64_t before)
{
	return now < 0 || before < 0 ? now : now - before;
}

/* Of this cell, as far as the kernel of the machine can tell; the peak is that of the interpreter's life. */
static void take_usage(struct ks_call *cell, struct ks_box_end *end)
{
	const struct ks_box_end *before = &cell->usage_before;
	struct ks_leaf_facts *leaf = &end->leaf;

	end->wall_us = ks_now_us() - cell->started_us;
	end->user_us = since(end->user_us, before->user_us);
	end->system_us = since(end->system_us, before->system_us);
	leaf->cpu_user_us = since(leaf->cpu_user_us, before->leaf.cpu_user_us);
	leaf->cpu_system_us = since(leaf->cpu_system_us, before->leaf.cpu_system_us);
	leaf->oom_kills = since(leaf->oom_kills, before->leaf.oom_kills);
	leaf->pids_refused = since(leaf->pids_refused, before->leaf.pids_refused);
	leaf->io_read_bytes = since(leaf->io_read_bytes, before->leaf.io_read_bytes);
	leaf->io_write_bytes = since(leaf->io_write_bytes, before->leaf.io_write_bytes);
}

static void end_cell(struct ks_call *cell, struct ks_box_end *box_end)
{
	take_usage(cell, box_end);
	(void)uv_timer_stop(&cell->timer);
	cell->box_ended = true;
	cell->outcome.end = *box_end;
	cell->outcome.end.alone = true; /* what a cell leaves running lives on: nobody waits for its end */
	end(cell);
}

void ks_call_cell_ended(struct ks_call *cell, int exit_code)
{
	struct ks_call *host = cell->kernel->host;
	struct ks_box_end box_end = { .how = KS_END_EXITED, .wait_status = exit_code << 8 };

	ks_box_usage(host->box, &box_end);
	cell->escape = *ks_box_escape(host->box);
	cell->frames.limit = host->frames.limit;
	end_cell(cell, &box_end);
}

void ks_call_cell_lost(struct ks_call *cell, const struct ks_call *host)
{
	struct ks_box_end box_end = host->outcome.end;

	if (cell->state != KS_CALL_RUNNING)
		return; /* it has ended, or has not begun and will fail when its turn comes */
	cell->escape = host->escape;
	cell->frames.limit = host->frames.limit;
	cell->frames.corrupt = host->frames.corrupt;
	cell->cell_status = KS_CELL_DEAD;
	end_cell(cell, &box_end);
}

void ks_call_retire(struct ks_call *host)
{
	leave(host);
	let_go(host);
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

/* ---- while it lives ---- */

void ks_call_drop(struct ks_call *call)
{
	leave(call);
	let_go(call);
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
	fail(call, &err);
}

size_t ks_calls_count(const struct ks_session *session)
{
	size_t count = 0;

	for (struct ks_list *n = session->calls.next; n != &session->calls; n = n->next)
		count += !is_host(KS_ENTRY(n, struct ks_call, session_node));
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

int ks_call_signal(struct ks_call *call, int signal_number, struct ks_error *err)
{
	const struct ks_call *process = call->cell ? call->kernel->host : call;
	int rc = call->state == KS_CALL_RUNNING && process ? ks_box_signal(process->box, signal_number) : -ESRCH;

	if (rc == -ESRCH && call->state < KS_CALL_RUNNING)
		return ks_fail_at(err, KS_E_BUSY, "/runId", "run %s has not started yet; wait for run/started", call->id);
	/* its end is on the way: a signal that comes too late is not an error */
	return rc < 0 && rc != -ESRCH ? ks_fail_errno(err, KS_E_INTERNAL, -rc, "cannot signal run %s", call->id) : 0;
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
		(void)ks_fail_at(err, KS_E_GONE, "/runId", finished_too ? "the output of run %s is no longer kept" : "run %s has ended", id);
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
			forget(call);
	}
}

void ks_calls_expire(struct ks_core *core, int64_t now_us)
{
	for (struct ks_list *n = core->finished.next, *next; n != &core->finished; n = next) {
		struct ks_call *call = KS_ENTRY(n, struct ks_call, node);
		next = n->next;
		if (call->throwaway && now_us - call->finished_us > KS_BLOB_THROWAWAY_MS * 1000LL)
			forget(call);
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
				close_timer(call);
				(void)ks_disk_stop(&call->disk, on_disk_closed);
				ks_call_disconnect(call);
			}
			call->box = NULL; /* their ends will not be told any more */
			call->own_group = NULL;
			call->forgotten = true;
			free_if_over(call);
		}
}
