/* call_cell.c: the two calls of a kernel: the one that is its process, and each of its cells (kernel.h). */
#include "base/clock.h"
#include "session/call_parts.h"
#include "session/kernel.h"

int ks_call_start_host(struct ks_kernel *kernel, const struct ks_call_ops *ops, struct ks_call **ret, struct ks_error *err)
{
	struct ks_call *call = ks_call_alloc(kernel->core, kernel->session, &kernel->params, ops, kernel, "process", err);

	if (!call)
		return -1;
	call->kernel = kernel;
	call->language = kernel->pty ? NULL : kernel->language; /* kern-pty is a program like any */
	call->code = "";
	ks_call_inherit(call);
	ks_list_remove(&call->node);
	kernel->core->queued_count--;
	ks_list_append(&kernel->core->running, &call->node);
	call->made_us = ks_now_us();
	*ret = call; /* before it starts: what fails at once asks for it */
	ks_call_make_box(call, kernel->session->group);
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

	if (ks_call_check(kernel->core, kernel->session, params, true, &ignored, err) < 0)
		return -1;
	if (!kernel->host)
		return ks_kernel_fail_dead(kernel, err);
	if (params->interactive && !(kernel->language->api.flags & KERN_CAN_INPUT))
		return ks_fail_at(err, KS_E_UNSUPPORTED_OPTION, "/allowInput", "kernels of %s cannot ask for input",
				  kernel->language->api.name);
	if (!has_room(kernel))
		return ks_fail_at(err, KS_E_BUSY, kernel->is_shell ? "/shellId" : "/kernelId", "%d cells wait in %s", KS_KERNEL_CELLS_MAX,
				  kernel->id);
	struct ks_call *call = ks_call_alloc(kernel->core, kernel->session, params, ops, arg, "run", err);
	if (!call)
		return -1;
	call->kernel = kernel;
	call->cell = true;
	kernel->users++;
	call->language = kernel->language;
	call->code = code;
	call->code_len = code_len;
	ks_call_inherit(call);
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
	ks_call_end(cell);
}

void ks_call_cell_ended(struct ks_call *cell, int exit_code)
{
	struct ks_call *host = cell->kernel->host;
	struct ks_box_end box_end = *ks_kernel_usage(cell->kernel, 0);

	box_end.how = KS_END_EXITED;
	box_end.wait_status = exit_code << 8;
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
	cell->channel_lost = host->channel_lost;
	cell->cell_status = KS_CELL_DEAD;
	end_cell(cell, &box_end);
}

void ks_call_retire(struct ks_call *host)
{
	ks_call_leave(host);
	ks_call_let_go(host);
}
