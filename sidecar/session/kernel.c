#include "session/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fds.h"
#include "plugins/frames.h"

const char *ks_kernel_state_name(enum ks_kernel_state state)
{
	return state == KS_KERNEL_IDLE ? "idle" : state == KS_KERNEL_DEAD ? "dead" : "busy";
}

void ks_kernel_set_state(struct ks_kernel *kernel, enum ks_kernel_state state)
{
	struct ks_core *core = kernel->core;

	if (kernel->state == state)
		return;
	kernel->state = state;
	if (core->kernel_state)
		core->kernel_state(core->kernel_arg, kernel);
}

/* ---- memory ---- */

static void free_if_unused(struct ks_kernel *kernel)
{
	if (!kernel->forgotten || kernel->users > 0)
		return;
	ks_pairs_free(&kernel->params.env);
	for (size_t i = 0; i < kernel->params.argv.count; i++)
		free(kernel->params.argv.items[i]);
	free(kernel->params.argv.items);
	free(kernel->params.cwd);
	free(kernel->program);
	free(kernel);
}

static void forget(struct ks_kernel *kernel)
{
	ks_list_remove(&kernel->node);
	kernel->core->kernel_count--;
	kernel->forgotten = true;
	for (int i = 0; i < 2; i++) {
		ks_pipe_close(KS_TAKE_PTR(kernel->next.pipes[i]));
		ks_close(&kernel->next.theirs[i]);
	}
	ks_kernel_drop_tails(kernel);
	free_if_unused(kernel);
}

void ks_kernels_forget_session(struct ks_session *session)
{
	struct ks_core *core = session->core;

	for (struct ks_list *n = core->kernels.next, *next; n != &core->kernels; n = next) {
		struct ks_kernel *kernel = KS_ENTRY(n, struct ks_kernel, node);
		next = n->next;
		if (kernel->session == session)
			forget(kernel);
	}
}

/* ---- cells ---- */

bool ks_kernel_ready(const struct ks_kernel *kernel)
{
	/* a dead one too: its cells start in order to fail */
	return kernel->state == KS_KERNEL_IDLE || kernel->state == KS_KERNEL_DEAD;
}

/* The code as a file that nobody can change, so that one message is enough whatever its size. */
static int code_file(const struct ks_call *cell, struct ks_error *err)
{
	KS_AUTOCLOSE int fd = memfd_create("cell", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	for (size_t done = 0; fd >= 0 && done < cell->code_len;) {
		ssize_t n = write(fd, cell->code + done, cell->code_len - done);
		if (n <= 0 && errno != EINTR)
			return ks_fail_errno(err, KS_E_OVERLOADED, n < 0 ? errno : EIO, "cannot hand the code to the kernel");
		done += n > 0 ? (size_t)n : 0;
	}
	if (fd < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return ks_fail_errno(err, KS_E_OVERLOADED, errno, "cannot hand the code to the kernel");
	return KS_TAKE_FD(fd);
}

static int make_pipes(struct ks_kernel *kernel, struct ks_error *err)
{
	for (int i = 0; i < 2; i++)
		if (!kernel->next.pipes[i] && ks_pipe_open(kernel->core->loop, &kernel->next.pipes[i], &kernel->next.theirs[i], err) < 0)
			return -1;
	return 0;
}

const struct ks_box_end *ks_kernel_usage(struct ks_kernel *kernel, int64_t fresh_us)
{
	if (ks_now_us() >= kernel->seen_us + fresh_us) {
		ks_box_usage(kernel->host->box, &kernel->usage);
		kernel->seen_us = ks_now_us();
	}
	return &kernel->usage;
}

/* No process is there but those that were when it was ready: the pipes of the cell that has ended serve the next one, too. Else
 * something may hold them, and what it prints later must not be taken for that cell's. Where that was pid 1 alone, one task is enough
 * to know: it is the interpreter's, whose threads need not be counted. */
static bool is_alone(struct ks_kernel *kernel)
{
	if (kernel->others == KS_LEAF_OVERHEAD && kernel->usage.leaf.pids_now == 1 && ks_now_us() < kernel->seen_us + KS_KERNEL_FRESH_US)
		return true;
	return kernel->others > 0 && ks_box_others(kernel->host->box) == kernel->others;
}

static bool take_same(struct ks_kernel *kernel, struct ks_call *cell)
{
	struct ks_pipe *pipes[2];

	if (!KS_TAKE(kernel->next.same, false) || cell->params->merge || !ks_kernel_take_tails(kernel, pipes))
		return false;
	for (int i = 0; i < 2; i++)
		ks_call_own_output(cell, i, pipes[i]);
	return true;
}

/* Merged, the second pipe stays for the next cell. */
static int take_next(struct ks_kernel *kernel, struct ks_call *cell, int ret_fds[2], struct ks_error *err)
{
	if (make_pipes(kernel, err) < 0)
		return -1;
	for (int i = 0; i < (cell->params->merge ? 1 : 2); i++) {
		ks_call_own_output(cell, i, KS_TAKE_PTR(kernel->next.pipes[i]));
		ret_fds[i] = KS_TAKE_FD(kernel->next.theirs[i]);
	}
	if (ret_fds[1] < 0)
		ret_fds[1] = fcntl(ret_fds[0], F_DUPFD_CLOEXEC, 0);
	return ret_fds[1] < 0 ? ks_fail_errno(err, KS_E_OVERLOADED, errno, "cannot duplicate a pipe") : 0;
}

static int send_cell(const struct ks_call *cell, bool same, const int fds[KS_CELL_FDS], struct ks_error *err)
{
	struct ks_kernel *kernel = cell->kernel;
	KS_AUTOBUF struct ks_buf message = { 0 };
	char numbered[32];
	struct kern_part parts[3];
	size_t part_count = 0;
	int fd_count = 0;
	int sent[KS_CELL_FDS];

	(void)snprintf(numbered, sizeof(numbered), "[cell %lld]", (long long)kernel->executions + 1);
	const char *name = cell->params->filename ? cell->params->filename : numbered;
	parts[part_count++] = (struct kern_part){ "name", name, strlen(name) };
	if (same)
		parts[part_count++] = (struct kern_part){ "same", "", 0 };
	if (fds[2] < 0)
		parts[part_count++] = (struct kern_part){ "code", cell->code, cell->code_len };
	ks_frames_write(KS_FRAME_CELL, cell->number, parts, part_count, &message);
	if (message.failed)
		return ks_fail(err, KS_E_OVERLOADED, "out of memory");
	for (int i = 0; i < KS_CELL_FDS; i++)
		if (fds[i] >= 0)
			sent[fd_count++] = fds[i];
	return ks_send(kernel->host->channel.fd, message.data, message.len, sent, fd_count, MSG_DONTWAIT) < 0 ?
		       ks_kernel_fail_dead(kernel, err) : 0;
}

int ks_kernel_send(struct ks_call *cell, struct ks_error *err)
{
	struct ks_kernel *kernel = cell->kernel;
	struct ks_call *host = kernel->host;
	int fds[KS_CELL_FDS] = { -1, -1, -1, -1 }; /* stdout, stderr, code, stdin; those that are there travel */

	if (kernel->forgotten)
		return ks_fail_at(err, KS_E_KERNEL_DEAD, "/kernelId", "kernel %s has been closed", kernel->id);
	if (!host || host->state != KS_CALL_RUNNING || kernel->cell)
		return ks_kernel_fail_dead(kernel, err);
	cell->number = ++kernel->cells;
	int rc = ks_call_connect_input(cell, &fds[3], err);
	if (rc == 0)
		ks_call_feed(cell); /* what was given already is there when it begins */
	const bool same = rc == 0 && take_same(kernel, cell);
	if (rc == 0 && !same)
		rc = take_next(kernel, cell, fds, err);
	if (rc == 0 && (!kernel->takes_code || cell->code_len > KS_KERNEL_CODE_INLINE)) {
		fds[2] = code_file(cell, err);
		rc = fds[2] < 0 ? -1 : 0;
	}
	if (rc == 0) {
		ks_frames_next_call(&host->frames);
		ks_box_escape_begin(host->box);
		cell->usage_before = *ks_kernel_usage(kernel, KS_KERNEL_FRESH_US);
		rc = send_cell(cell, same, fds, err);
	}
	ks_close_all(fds, KS_CELL_FDS);
	if (rc < 0)
		return -1;
	kernel->executions++;
	cell->execution = kernel->executions;
	kernel->cell = cell;
	ks_kernel_set_state(kernel, KS_KERNEL_BUSY);
	return 0;
}

int ks_kernel_tell(const struct ks_kernel *kernel, const char *key, const char *text, struct ks_error *err)
{
	KS_AUTOBUF struct ks_buf message = { 0 };
	const struct kern_part parts[] = { { key, text, strlen(text) } };

	ks_frames_write(KS_FRAME_CELL, 0, parts, 1, &message);
	if (message.failed)
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	if (ks_send(kernel->host->channel.fd, message.data, message.len, NULL, 0, MSG_DONTWAIT) == 0)
		return 0;
	return errno == EAGAIN ? ks_fail(err, KS_E_OVERLOADED, "%s does not listen now", kernel->id) : ks_kernel_fail_dead(kernel, err);
}

/* Over the channel where that is heard: a signal could come before the cell that it is for, or behind its end. */
static void interrupt_host(struct ks_kernel *kernel)
{
	char number[16];
	struct ks_error err;

	if (!kernel->host || !kernel->host->box)
		return;
	(void)snprintf(number, sizeof(number), "%d", SIGINT);
	if (!kernel->host->language || !(kernel->host->language->api.flags & KERN_CAN_HEAR) ||
	    ks_kernel_tell(kernel, "signal", number, &err) < 0)
		(void)ks_box_signal(kernel->host->box, SIGINT);
}

static void on_insist(uv_timer_t *timer)
{
	struct ks_call *cell = timer->data;
	struct ks_kernel *kernel = cell->kernel;

	if (++cell->stops > 2) {
		if (kernel->host)
			ks_call_cancel(kernel->host);
		return;
	}
	interrupt_host(kernel);
	(void)uv_timer_start(timer, on_insist, KS_KERNEL_INSIST_MS, 0);
}

void ks_kernel_stop_cell(struct ks_call *cell)
{
	if (cell->stops == 0)
		on_insist(&cell->timer);
}

static void cell_over(struct ks_kernel *kernel, struct ks_call *cell)
{
	struct ks_error ignored;

	kernel->cell = NULL;
	kernel->next.same = kernel->state == KS_KERNEL_BUSY && kernel->host && cell->out[0] && cell->out[1] && is_alone(kernel);
	for (int i = 0; i < 2; i++)
		ks_kernel_keep_tail(kernel, i, KS_TAKE_PTR(cell->out[i]));
	if (kernel->state != KS_KERNEL_BUSY)
		return;
	ks_kernel_set_state(kernel, KS_KERNEL_IDLE);
	if (!kernel->next.same)
		(void)make_pipes(kernel, &ignored); /* behind the answer; what fails is tried again when it is needed, and then told */
}

void ks_kernel_cell_left(struct ks_call *cell)
{
	struct ks_kernel *kernel = cell->kernel;

	if (kernel->cell == cell)
		cell_over(kernel, cell);
	kernel->users--;
	free_if_unused(kernel);
}

bool ks_kernel_interrupt(struct ks_kernel *kernel, const char *run_id)
{
	struct ks_call *cell = kernel->cell;

	if (!cell || cell->state != KS_CALL_RUNNING || (run_id && strcmp(cell->id, run_id) != 0))
		return false;
	interrupt_host(kernel);
	return true;
}

/* ---- the host call ---- */

static void on_started(void *arg)
{
	(void)arg; /* it says when it is ready */
}

static void on_output(void *arg, enum ks_output which, const void *data, size_t len)
{
	ks_kernel_report(arg, which == KS_STDERR, data, len);
}

static size_t on_room(void *arg)
{
	return ks_kernel_room(arg);
}

static int start_host(struct ks_kernel *kernel, struct ks_error *err);

static void host_gone(struct ks_kernel *kernel, const struct ks_error *err)
{
	void (*opened)(void *, struct ks_kernel *, const struct ks_error *) = NULL;
	void (*closed)(void *) = KS_TAKE_PTR(kernel->closed);
	void *closed_arg = kernel->closed_arg;
	struct ks_error failed;

	if (kernel->restarting) {
		kernel->restarting = false;
		if (!closed && kernel->session->state == KS_SESSION_OPEN && start_host(kernel, &failed) == 0)
			return;
		if (closed || kernel->session->state != KS_SESSION_OPEN)
			(void)ks_fail(&failed, KS_E_CANCELLED, "the kernel was closed before it was ready");
		err = &failed;
	}
	const bool was_open = kernel->state == KS_KERNEL_IDLE || kernel->state == KS_KERNEL_BUSY;
	opened = KS_TAKE_PTR(kernel->opened);
	if (was_open)
		ks_kernel_set_state(kernel, KS_KERNEL_DEAD);
	kernel->state = KS_KERNEL_DEAD;
	void *opened_arg = kernel->opened_arg;
	struct ks_core *core = kernel->core;
	if (closed || !kernel->was_ready)
		forget(kernel);
	if (opened)
		opened(opened_arg, NULL, err);
	if (closed)
		closed(closed_arg);
	ks_core_turn(core);
}

/* It has died: of a deadline of ours, of a limit, of its own doing. The cell at work tells. */
static void on_done(void *arg)
{
	struct ks_kernel *kernel = arg;
	struct ks_call *host = KS_TAKE_PTR(kernel->host), *cell = kernel->cell;
	struct ks_error err;

	const struct ks_buf *said = &host->log[1].kept; /* by the program that should have started it */
	(void)ks_fail(&err, KS_E_START_FAILED, "%s ended before it was ready%s%.200s%s%.*s",
		      kernel->is_shell ? "the shell" : "the interpreter", host->outcome.fault ? ": " : "", host->outcome.message,
		      said->len ? ": " : "", (int)(said->len < 200 ? said->len : 200), said->len ? said->data : "");
	for (char *c = err.text; *c; c++)
		if (*c == '\n')
			*c = ' ';
	if (host->cancelled)
		(void)ks_fail(&err, KS_E_CANCELLED, "the kernel was closed before it was ready");
	kernel->death = host->outcome;
	if (cell)
		ks_call_cell_lost(cell, host);
	ks_call_retire(host);
	host_gone(kernel, &err);
}

static void on_failed(void *arg, const struct ks_error *err)
{
	struct ks_kernel *kernel = arg;
	struct ks_error copy = *err;

	kernel->host = NULL;
	host_gone(kernel, &copy);
}

static const struct ks_call_ops host_ops = { on_started, on_output, NULL, on_room, NULL, on_done, on_failed };

static int start_host(struct ks_kernel *kernel, struct ks_error *err)
{
	kernel->state = KS_KERNEL_STARTING;
	kernel->executions = 0;
	kernel->seen_us = 0;
	return ks_call_start_host(kernel, &host_ops, &kernel->host, err);
}

/* ---- what clients ask for ---- */

static struct ks_kernel *find(struct ks_core *core, const char *id, bool is_shell)
{
	for (struct ks_list *n = core->kernels.next; n != &core->kernels; n = n->next) {
		struct ks_kernel *kernel = KS_ENTRY(n, struct ks_kernel, node);
		if (kernel->is_shell == is_shell && strcmp(kernel->id, id) == 0)
			return kernel;
	}
	return NULL;
}

struct ks_kernel *ks_kernel_find(struct ks_core *core, const char *id, struct ks_error *err)
{
	struct ks_kernel *kernel = find(core, id, false);

	if (!kernel)
		(void)ks_fail_at(err, KS_E_UNKNOWN_HANDLE, "/kernelId", "no kernel %s is open", id);
	return kernel;
}

struct ks_kernel *ks_shell_find(struct ks_core *core, const char *id, struct ks_error *err)
{
	struct ks_kernel *shell = find(core, id, true);

	if (!shell)
		(void)ks_fail_at(err, KS_E_UNKNOWN_HANDLE, "/shellId", "no shell %s is open", id);
	return shell;
}

int ks_kernel_fail_dead(const struct ks_kernel *kernel, struct ks_error *err)
{
	return kernel->is_shell ? ks_fail_at(err, KS_E_SHELL_DEAD, "/shellId", "shell %s has ended; open another", kernel->id) :
				  ks_fail_at(err, KS_E_KERNEL_DEAD, "/kernelId", "kernel %s is dead; kernel/restart starts it again",
					     kernel->id);
}

int ks_kernels_closed(const struct ks_session *session, struct ks_error *err)
{
	for (struct ks_list *n = session->core->kernels.next; n != &session->core->kernels; n = n->next) {
		const struct ks_kernel *kernel = KS_ENTRY(n, struct ks_kernel, node);
		if (kernel->session != session)
			continue;
		(void)ks_fail_at(err, KS_E_BUSY, "/sessionId", "%s %s of this session is open", kernel->is_shell ? "shell" : "kernel",
				 kernel->id);
		return ks_error_hint(err, "close it, set up, and open it again: then it sees the packages");
	}
	return 0;
}

static int check_open(struct ks_session *session, const struct ks_kernel_spec *spec, struct ks_error *err)
{
	struct ks_core *core = session->core;
	const char *what = spec->is_shell ? "shell" : "kernel";

	if (session->state != KS_SESSION_OPEN)
		return ks_fail_at(err, KS_E_UNKNOWN_HANDLE, "/sessionId", "session %s is not open", session->id);
	if (!ks_gate_passed(&session->gate, ks_gate_ticket(&session->gate))) {
		(void)ks_fail_at(err, KS_E_BUSY, "/sessionId", "a setup or restore of session %s has not ended", session->id);
		return ks_error_hint(err, "open it when that has been answered");
	}
	if (spec->id && find(core, spec->id, spec->is_shell))
		return ks_fail_at(err, KS_E_DUPLICATE_HANDLE, spec->is_shell ? "/shellId" : "/kernelId", "%s %s is open", what, spec->id);
	if (core->kernel_count == KS_KERNELS_MAX)
		return ks_fail(err, KS_E_LIMIT, "%d kernels and shells are open; close one", KS_KERNELS_MAX);
	return 0;
}

static int find_language(struct ks_core *core, const char *name, const struct ks_language **ret, struct ks_error *err)
{
	*ret = ks_plugins_find_language(core->plugins, name);
	if (!*ret)
		return ks_fail_at(err, KS_E_UNKNOWN_LANGUAGE, "/language", "no plugin runs %.64s; plugin/list names the languages", name);
	if (!((*ret)->api.flags & KERN_CAN_KERNEL)) {
		(void)ks_fail_at(err, KS_E_UNKNOWN_LANGUAGE, "/language", "%s has no kernels", (*ret)->api.name);
		return ks_error_hint(err, "initialize lists under capabilities.languages which languages have kernels");
	}
	return 0;
}

static int fill(struct ks_kernel *kernel, const struct ks_kernel_spec *spec, struct ks_error *err)
{
	kernel->params = (struct ks_run_params)KS_RUN_PARAMS_ABSENT;
	kernel->params.memory_mb = spec->memory_mb;
	kernel->timeout_ms = spec->timeout_ms != KS_ABSENT ? spec->timeout_ms : kernel->session->timeout_ms;
	if (spec->id)
		(void)snprintf(kernel->id, sizeof(kernel->id), "%s", spec->id);
	else
		ks_core_make_handle(kernel->core, spec->is_shell ? "shell" : "kernel", kernel->id);
	kernel->params.cwd = spec->cwd ? strdup(spec->cwd) : NULL;
	if (ks_pairs_copy(spec->env, &kernel->params.env) < 0 || (spec->cwd && !kernel->params.cwd))
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	return spec->is_shell ? ks_shell_fill(kernel, spec, err) : 0;
}

int ks_kernel_open(struct ks_session *session, const struct ks_kernel_spec *spec,
		   void (*opened)(void *arg, struct ks_kernel *kernel, const struct ks_error *err), void *arg, struct ks_kernel **ret,
		   struct ks_error *err)
{
	const struct ks_language *language = NULL;
	struct ks_core *core = session->core;

	if (check_open(session, spec, err) < 0 || (!spec->is_shell && find_language(core, spec->language, &language, err) < 0))
		return -1;
	struct ks_kernel *kernel = calloc(1, sizeof(*kernel));
	if (!kernel)
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	*kernel = (struct ks_kernel){ .core = core, .session = session, .language = language, .is_shell = spec->is_shell,
				      .opened = opened, .opened_arg = arg, .next.theirs = { -1, -1 } };
	ks_list_init(&kernel->tails);
	ks_list_append(&core->kernels, &kernel->node);
	core->kernel_count++;
	if (fill(kernel, spec, err) < 0 || start_host(kernel, err) < 0) {
		forget(kernel);
		return -1;
	}
	*ret = kernel;
	return 0;
}

void ks_kernel_close(struct ks_kernel *kernel, void (*closed)(void *arg), void *arg)
{
	kernel->closed = closed;
	kernel->closed_arg = arg;
	if (kernel->host) {
		ks_call_cancel(kernel->host);
		return;
	}
	forget(kernel);
	if (closed)
		closed(arg);
}

int ks_kernel_restart(struct ks_kernel *kernel, void (*opened)(void *arg, struct ks_kernel *kernel, const struct ks_error *err), void *arg,
		      struct ks_error *err)
{
	if (kernel->opened || kernel->closed)
		return ks_fail_at(err, KS_E_BUSY, "/kernelId", "kernel %s is being started or closed", kernel->id);
	kernel->opened = opened;
	kernel->opened_arg = arg;
	if (!kernel->host)
		return start_host(kernel, err);
	kernel->restarting = true;
	ks_call_cancel(kernel->host);
	return 0;
}
