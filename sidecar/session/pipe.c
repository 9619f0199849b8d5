#include "session/pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fds.h"

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

/* When we are root the box has another uid: what opens /dev/stderr opens the pipe anew and is checked. A pipe has no name but in
 * /proc of those who hold it, so others gain nothing by the mode. */
int ks_pipe_open(uv_loop_t *loop, struct ks_pipe **ret, int *ret_theirs, struct ks_error *err)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return ks_fail_errno(err, KS_E_OVERLOADED, errno, "cannot make a pipe");
	struct ks_pipe *pipe = calloc(1, sizeof(*pipe));
	if (!pipe || uv_poll_init(loop, &pipe->poll, ends[0]) < 0) { /* which makes it non-blocking */
		free(pipe);
		ks_close_all(ends, 2);
		return ks_fail(err, KS_E_OVERLOADED, "out of memory");
	}
	(void)fchmod(ends[1], 0666);
	pipe->fd = ends[0];
	pipe->poll.data = pipe;
	*ret = pipe;
	*ret_theirs = ends[1];
	return 0;
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct ks_pipe *pipe = poll->data;

	(void)status;
	(void)events;
	pipe->readable(pipe);
}

void ks_pipe_flow(struct ks_pipe *pipe, bool on)
{
	if (pipe->flowing == on)
		return;
	pipe->flowing = on;
	if (on)
		(void)uv_poll_start(&pipe->poll, UV_READABLE | UV_DISCONNECT, on_poll);
	else
		(void)uv_poll_stop(&pipe->poll);
}

void ks_pipe_close(struct ks_pipe *pipe)
{
	if (!pipe)
		return;
	uv_close((uv_handle_t *)&pipe->poll, on_closed);
	ks_close(&pipe->fd);
}
