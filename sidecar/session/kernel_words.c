/* kernel_words.c: what the process of a kernel or shell says on its channel: ready, done with a cell, in want of input; and its silence.
 * All of it is a claim. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "session/kernel.h"

static bool is(const struct kern_part *p, const char *text)
{
	return p && p->len == strlen(text) && memcmp(p->data, text, p->len) == 0;
}

static void ready(struct ks_kernel *kernel, const struct kern_frame *frame)
{
	void (*opened)(void *, struct ks_kernel *, const struct ks_error *) = KS_TAKE_PTR(kernel->opened);

	(void)uv_timer_stop(&kernel->host->timer);
	kernel->was_ready = true;
	kernel->next.same = false;
	kernel->takes_code = ks_frame_part(frame, "inline");
	kernel->others = ks_box_others(kernel->host->box);
	ks_kernel_set_state(kernel, KS_KERNEL_IDLE);
	if (opened)
		opened(kernel->opened_arg, kernel, NULL);
	ks_core_turn(kernel->core);
}

static void cell_done(struct ks_kernel *kernel, const struct kern_frame *frame)
{
	struct ks_call *cell = kernel->cell;
	const struct kern_part *status = ks_frame_part(frame, "status");

	cell->cell_status = is(status, "ok") ? KS_CELL_OK : is(status, "interrupted") ? KS_CELL_INTERRUPTED : KS_CELL_ERROR;
	const struct kern_part *number = ks_frame_part(frame, "exit") ? ks_frame_part(frame, "exit") : ks_frame_part(frame, "code");
	int code = number ? ks_frame_status(number) : cell->cell_status == KS_CELL_OK ? 0 : 1;
	if (ks_frame_part(frame, "exit"))
		ks_notes_add(&cell->notes, "exit_in_cell", "the code asked to exit with %d; the kernel and its state are kept", code);
	ks_call_cell_ended(cell, code);
}

/* It waits for a line of its input. */
static void input_wanted(struct ks_call *cell, const struct kern_frame *frame)
{
	const struct kern_part *prompt = ks_frame_part(frame, "input");

	if (cell->ops->input_wanted)
		cell->ops->input_wanted(cell->arg, prompt->data, prompt->len < KS_PROMPT_MAX ? prompt->len : KS_PROMPT_MAX,
					ks_frame_part(frame, "password"));
}

int ks_kernel_frame(struct ks_kernel *kernel, const struct kern_frame *frame)
{
	const struct ks_call *cell = kernel->cell;

	if (ks_frame_part(frame, "ready") && kernel->state == KS_KERNEL_STARTING)
		ready(kernel, frame);
	else if (ks_frame_part(frame, "done") && cell && cell->state == KS_CALL_RUNNING && frame->call == cell->number)
		cell_done(kernel, frame);
	else if (ks_frame_part(frame, "input") && cell && cell->state == KS_CALL_RUNNING && frame->call == cell->number &&
		 cell->params->interactive)
		input_wanted(kernel->cell, frame);
	else
		return -1;
	return 0;
}

static void on_lost(uv_timer_t *timer)
{
	struct ks_call *host = timer->data;

	ks_log(KS_LOG_INFO, "kernel_lost", "kernel %s has lost its channel, and is ended", host->kernel->id);
	host->channel_lost = true;
	ks_call_cancel(host);
}

/* It is dying, and its end follows at once; or it lives, and cannot be reached any more. */
void ks_kernel_channel_lost(struct ks_kernel *kernel)
{
	if (kernel->host && kernel->host->state == KS_CALL_RUNNING)
		(void)uv_timer_start(&kernel->host->timer, on_lost, KS_KERNEL_LOST_MS, 0);
}
