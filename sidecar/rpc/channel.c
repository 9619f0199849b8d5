#include "channel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Opening /proc/self/fd/N makes a new open file description of the same pipe or terminal (proc(5)), with flags of its
 * own. It may be refused (no /proc, a pipe of another user), so -1 is an answer. Opening the master side of a
 * pseudoterminal would make a new pair (pts(4)); only a master has TIOCGPTN. */
static int reopen(int fd, bool output)
{
	unsigned int number;
	char path[40];

	if (ioctl(fd, TIOCGPTN, &number) == 0)
		return -1;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, (output ? O_WRONLY : O_RDONLY) | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/* Regular files and the like never say EAGAIN and need nothing. */
static void make_nonblocking(struct ks_channel *channel, bool output)
{
	struct stat st;

	if (fstat(channel->fd, &st) < 0)
		return;
	if (S_ISSOCK(st.st_mode)) {
		channel->socket = true; /* MSG_DONTWAIT in each call */
		return;
	}
	if (!S_ISFIFO(st.st_mode) && !isatty(channel->fd))
		return;
	int fd = reopen(channel->fd, output);
	if (fd >= 0) {
		(void)close(channel->fd);
		channel->fd = fd;
		return;
	}
	int flags = fcntl(channel->fd, F_GETFL);
	if (flags >= 0 && !(flags & O_NONBLOCK) && fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK) == 0)
		channel->flags = flags;
}

int ks_channel_open(struct ks_channel *channel, int fd, bool output, struct ks_error *err)
{
	struct epoll_event event = { .events = output ? EPOLLOUT : EPOLLIN };

	*channel = (struct ks_channel){ .fd = fd, .ready_fd = -1, .flags = -1 };
	if (fd < 0)
		return 0;
	make_nonblocking(channel, output);
	/* libuv would set O_NONBLOCK on what it polls, and refuses one descriptor in two handles; so it gets this one. */
	channel->ready_fd = epoll_create1(EPOLL_CLOEXEC);
	if (channel->ready_fd < 0) {
		(void)ks_fail_errno(err, KS_E_INTERNAL, errno, "cannot watch the protocol's descriptor");
		ks_channel_close(channel);
		return -1;
	}
	if (epoll_ctl(channel->ready_fd, EPOLL_CTL_ADD, channel->fd, &event) < 0)
		ks_close(&channel->ready_fd); /* EPERM: a regular file, /dev/null; EBADF: closed. A read will tell. */
	return 0;
}

void ks_channel_close(struct ks_channel *channel)
{
	if (channel->flags >= 0)
		(void)fcntl(channel->fd, F_SETFL, channel->flags);
	channel->flags = -1;
	ks_close(&channel->ready_fd);
	ks_close(&channel->fd);
}

ssize_t ks_channel_read(struct ks_channel *channel, void *data, size_t len)
{
	ssize_t n;

	do
		n = channel->socket ? recv(channel->fd, data, len, MSG_DONTWAIT) : read(channel->fd, data, len);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

ssize_t ks_channel_write(struct ks_channel *channel, const struct iovec *parts, size_t count)
{
	const struct msghdr message = { .msg_iov = (struct iovec *)(uintptr_t)parts, .msg_iovlen = count };
	ssize_t n;

	do
		n = channel->socket ? sendmsg(channel->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) :
				      writev(channel->fd, parts, (int)count);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}
