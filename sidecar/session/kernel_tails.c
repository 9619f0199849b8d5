/* kernel_tails.c: what a kernel or a shell prints when no cell is at work: by its process itself, or through the pipes of former cells,
 * which what they have left running may still hold. */
#include <errno.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "session/kernel.h"

static struct ks_pipe *end_tail(struct ks_kernel_tail *tail)
{
	struct ks_pipe *pipe = tail->pipe;

	ks_list_remove(&tail->node);
	tail->kernel->tail_count--;
	free(tail);
	return pipe;
}

static void close_tail(struct ks_kernel_tail *tail)
{
	ks_pipe_close(end_tail(tail));
}

/* The newest of that stream, if nothing waits in it. */
static struct ks_kernel_tail *empty_tail(struct ks_kernel *kernel, int which)
{
	int waiting;

	for (struct ks_list *n = kernel->tails.prev; n != &kernel->tails; n = n->prev) {
		struct ks_kernel_tail *tail = KS_ENTRY(n, struct ks_kernel_tail, node);
		if (tail->which == which)
			return ioctl(tail->pipe->fd, FIONREAD, &waiting) == 0 && waiting == 0 ? tail : NULL;
	}
	return NULL;
}

bool ks_kernel_take_tails(struct ks_kernel *kernel, struct ks_pipe *ret[2])
{
	struct ks_kernel_tail *tails[2] = { empty_tail(kernel, 0), empty_tail(kernel, 1) };

	if (!tails[0] || !tails[1])
		return false;
	for (int i = 0; i < 2; i++)
		ret[i] = end_tail(tails[i]);
	return true;
}

void ks_kernel_drop_tails(struct ks_kernel *kernel)
{
	while (!ks_list_empty(&kernel->tails))
		close_tail(KS_ENTRY(kernel->tails.next, struct ks_kernel_tail, node));
}

void ks_kernel_report(struct ks_kernel *kernel, int which, const char *data, size_t len)
{
	struct ks_core *core = kernel->core;

	if (core->kernel_output && !kernel->forgotten)
		core->kernel_output(core->kernel_arg, kernel, which ? KS_STDERR : KS_STDOUT, data, len);
}

size_t ks_kernel_room(const struct ks_kernel *kernel)
{
	const struct ks_core *core = kernel->core;

	return core->kernel_room ? core->kernel_room(core->kernel_arg) : SIZE_MAX;
}

static void on_tail(struct ks_pipe *pipe)
{
	static char buffer[4096];
	struct ks_kernel_tail *tail = pipe->owner;

	if (ks_kernel_room(tail->kernel) == 0) { /* it waits until ks_kernels_resume() */
		ks_pipe_flow(pipe, false);
		return;
	}
	ssize_t n = read(pipe->fd, buffer, sizeof(buffer));
	if (n > 0)
		ks_kernel_report(tail->kernel, tail->which, buffer, (size_t)n);
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		close_tail(tail);
}

/* The process itself holds the newest pipes; what a cell has left running may hold older ones, of which the oldest go. */
void ks_kernel_keep_tail(struct ks_kernel *kernel, int which, struct ks_pipe *pipe)
{
	struct ks_kernel_tail *tail = !pipe || kernel->state == KS_KERNEL_DEAD ? NULL : calloc(1, sizeof(*tail));

	if (!tail) {
		ks_pipe_close(pipe);
		return;
	}
	*tail = (struct ks_kernel_tail){ .kernel = kernel, .which = which, .pipe = pipe };
	ks_list_append(&kernel->tails, &tail->node);
	pipe->owner = tail;
	pipe->readable = on_tail;
	ks_pipe_flow(pipe, true);
	if (++kernel->tail_count > KS_KERNEL_TAILS)
		close_tail(KS_ENTRY(kernel->tails.next, struct ks_kernel_tail, node));
}

void ks_kernels_resume(struct ks_core *core)
{
	for (struct ks_list *n = core->kernels.next; n != &core->kernels; n = n->next) {
		struct ks_kernel *kernel = KS_ENTRY(n, struct ks_kernel, node);
		if (kernel->host)
			ks_call_resume(kernel->host);
		for (struct ks_list *t = kernel->tails.next; t != &kernel->tails; t = t->next)
			ks_pipe_flow(KS_ENTRY(t, struct ks_kernel_tail, node)->pipe, true);
	}
}
