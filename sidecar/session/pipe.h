/* pipe.h: our end of a pipe out of a box, and the watch on it. It is on the heap and ends by itself, so that it can change hands - from
 * a kernel to a cell, and back when the cell has ended - and the loop learns nothing of it. */
#pragma once

#include <uv.h>

#include "base/error.h"

struct ks_pipe {
	uv_poll_t poll;
	int fd;
	bool flowing;
	/* There is something to read, or the last writer has gone. */
	void (*readable)(struct ks_pipe *pipe);
	void *owner;
};

/* Our end does not block, the box's is an ordinary pipe end, and nothing flows yet. */
int ks_pipe_open(uv_loop_t *loop, struct ks_pipe **ret, int *ret_theirs, struct ks_error *err);
void ks_pipe_flow(struct ks_pipe *pipe, bool on);
void ks_pipe_close(struct ks_pipe *pipe); /* NULL is fine */
