/* outcome.c: what the facts of a call mean. Nothing that the box printed, and no exit number, has a say in a fault. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "session/call_parts.h"

const char *ks_fault_name(enum ks_fault_type fault)
{
	static const char *const names[] = { "none", "cancelled", "timeout", "oom", "escape_blocked", "exec_failed", "disk", "killed" };

	return names[fault];
}

static void set_fault(struct ks_outcome *o, enum ks_fault_type fault, const char *fmt, ...) KS_PRINTF(3, 4);

static void set_fault(struct ks_outcome *o, enum ks_fault_type fault, const char *fmt, ...)
{
	va_list ap;

	o->fault = fault;
	va_start(ap, fmt);
	(void)vsnprintf(o->message, sizeof(o->message), fmt, ap);
	va_end(ap);
}

static void read_status(struct ks_call *call)
{
	struct ks_outcome *o = &call->outcome;
	const struct ks_box_end *end = &o->end;

	o->duration_us = end->wall_us;
	if (end->how == KS_END_EXEC_FAILED) {
		o->exit_code = end->exec_errno == ENOENT ? 127 : 126;
		return;
	}
	if (end->how == KS_END_LOST) { /* init went down with everything, by a SIGKILL from outside the box */
		o->signal = SIGKILL;
		o->duration_us = ks_now_us() - call->started_us;
	} else if (WIFSIGNALED(end->wait_status)) {
		o->signal = WTERMSIG(end->wait_status);
	} else {
		o->exit_code = WEXITSTATUS(end->wait_status);
	}
	if (o->signal)
		o->exit_code = 128 + o->signal;
}

static void fault_oom(struct ks_call *call, int64_t kills, bool own_limit)
{
	struct ks_outcome *o = &call->outcome;
	long long cap_mb = (long long)(call->limits.memory_bytes >> 20);

	if (own_limit) {
		(void)snprintf(o->limit, sizeof(o->limit), "memoryMb");
		set_fault(o, KS_FAULT_OOM, "out of memory: the box reached its cap of %lld MiB and the kernel killed %lld of its processes",
			  cap_mb, (long long)kills);
		if (call->outcome.end.polled_oom)
			set_fault(o, KS_FAULT_OOM, "out of memory: the box was above its cap of %lld MiB and was ended", cap_mb);
	} else {
		set_fault(o, KS_FAULT_OOM, "out of memory: the kernel killed %lld processes of the box for a limit outside it",
			  (long long)kills);
	}
}

static void fault_exec(struct ks_call *call)
{
	struct ks_outcome *o = &call->outcome;
	const char *program = call->language ? call->language->api.programs[0] : call->params->argv.items[0];
	const char *interpreter = call->language ? ks_session_interpreter(call->session, call->language) : NULL;
	const char *why = strerrordesc_np(o->end.exec_errno);

	set_fault(o, KS_FAULT_EXEC_FAILED, "cannot execute %.160s in the image %.60s: %s", interpreter ? interpreter : program,
		  call->session->image->ref, why ? why : "unknown error");
}

/* The order is the contract's: cancelled, timeout, oom, escape_blocked, exec_failed, disk, killed. */
static void name_fault(struct ks_call *call)
{
	struct ks_outcome *o = &call->outcome;
	const struct ks_box_end *end = &o->end;
	const struct ks_escape *escape = &call->escape;
	/* it ended by itself before our SIGKILL came: then that is what happened */
	bool we_ended_it = end->how == KS_END_LOST || (o->signal == SIGKILL && end->killed_by_us) ||
			   (call->cell && call->cell_status == KS_CELL_INTERRUPTED);

	if (call->cancelled && we_ended_it) {
		set_fault(o, KS_FAULT_CANCELLED, "the call was cancelled");
	} else if (call->timed_out && we_ended_it) {
		(void)snprintf(o->limit, sizeof(o->limit), "timeoutMs");
		set_fault(o, KS_FAULT_TIMEOUT, "the call was ended at its deadline of %lld ms", (long long)call->timeout_ms);
	} else if (end->leaf.oom_kills > 0 || end->polled_oom) {
		fault_oom(call, end->leaf.oom_kills, end->polled_oom || end->leaf.oom_own_limit);
	} else if (escape->count > 0) {
		(void)snprintf(o->syscall, sizeof(o->syscall), "%s", escape->call);
		(void)snprintf(o->process, sizeof(o->process), "%s", escape->process);
		set_fault(o, KS_FAULT_ESCAPE_BLOCKED, "the sandbox refused the system call %s, made by %s, and ended that process",
			  escape->call, escape->process);
	} else if (end->how == KS_END_EXEC_FAILED) {
		fault_exec(call);
	} else if (call->disk_full || (call->disk.limit_bytes > 0 && o->signal == SIGXFSZ)) {
		(void)snprintf(o->limit, sizeof(o->limit), "workspaceMaxMb");
		set_fault(o, KS_FAULT_DISK, "the workspace grew beyond its limit of %llu MiB or %llu names",
			  (unsigned long long)(call->disk.limit_bytes >> 20),
			  (unsigned long long)(call->disk.limit_bytes >> 20) * KS_DISK_FILES_PER_MB);
	} else if (end->listener_lost) {
		set_fault(o, KS_FAULT_KILLED, "the box was ended, because the sandbox could no longer see its refused system calls");
	} else if (end->how == KS_END_LOST) {
		set_fault(o, KS_FAULT_KILLED,
			  "the box was killed from outside: by an administrator, or by the machine's own memory shortage");
	}
}

void ks_outcome_decide(struct ks_call *call)
{
	struct ks_outcome *o = &call->outcome;

	if (call->box)
		call->escape = *ks_box_escape(call->box);
	o->start_us = call->started_us > call->made_us ? call->started_us - call->made_us : 0;
	o->channel = call->frames.corrupt ? "corrupt" : call->frames.limit || call->results.limit ? "limit" :
		     call->channel_lost ? "closed" : "ok";
	read_status(call);
	name_fault(call);
}
