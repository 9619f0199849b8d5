/* channel.h: one end of the protocol on a descriptor of any kind: pipe, socket, terminal, regular file, /dev/null.
 * Reads and writes never block, and where the kernel allows it without changing the open file description, which
 * a shell or a parent may share with us (O_NONBLOCK on it would break them). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/error.h"

struct ks_channel {
	int fd;
	int ready_fd; /* an epoll instance, readable when fd is ready; -1: always ready (epoll refuses regular files) */
	int flags;    /* the file status flags to give back at the end, or -1 */
	bool socket;
};

/* Takes `fd`, also on failure. A closed or negative one gives a channel that is always ready and fails with -EBADF. */
int ks_channel_open(struct ks_channel *channel, int fd, bool output, struct ks_error *err);
void ks_channel_close(struct ks_channel *channel);
/* Bytes, 0 at the end, -EAGAIN, or another -errno. Interrupted calls are repeated. */
ssize_t ks_channel_read(struct ks_channel *channel, void *data, size_t len);
ssize_t ks_channel_write(struct ks_channel *channel, const struct iovec *parts, size_t count);
