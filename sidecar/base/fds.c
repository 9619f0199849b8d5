#include "fds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
	struct cmsghdr align;
	char room[CMSG_SPACE(KS_MSG_FDS * sizeof(int))];
};

int ks_send(int sock, const void *buf, size_t len, const int *fds, int nfds, int flags)
{
	union control control = { 0 };
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	if (nfds > KS_MSG_FDS)
		return -EINVAL;
	if (nfds > 0) {
		msg.msg_control = control.room;
		msg.msg_controllen = CMSG_SPACE((size_t)nfds * sizeof(int));
		struct cmsghdr *head = CMSG_FIRSTHDR(&msg);
		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN((size_t)nfds * sizeof(int));
		memcpy(CMSG_DATA(head), fds, (size_t)nfds * sizeof(int));
	}
	do
		n = sendmsg(sock, &msg, MSG_NOSIGNAL | flags);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

ssize_t ks_recv(int sock, void *buf, size_t len, int *ret_fds, int *ret_nfds, int flags)
{
	union control control;
	struct iovec iov = { .iov_base = buf, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	if (ret_nfds) {
		msg.msg_control = control.room;
		msg.msg_controllen = sizeof(control.room);
		*ret_nfds = 0;
	}
	do
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC | flags);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	struct cmsghdr *head = ret_nfds ? CMSG_FIRSTHDR(&msg) : NULL;
	if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS) {
		size_t bytes = head->cmsg_len - CMSG_LEN(0);
		memcpy(ret_fds, CMSG_DATA(head), bytes);
		*ret_nfds = (int)(bytes / sizeof(int));
	}
	return n;
}

void ks_close_all(const int *fds, int nfds)
{
	for (int i = 0; i < nfds; i++)
		if (fds[i] >= 0)
			(void)close(fds[i]);
}

int ks_keep_fds(int *fds, int count)
{
	int old[KS_MSG_FDS];

	if (count > KS_MSG_FDS)
		return -EINVAL;
	/* Two steps, so that no target overwrites a source. */
	for (int i = 0; i < count; i++)
		old[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 3 + count);
	for (int i = 0; i < count; i++) {
		fds[i] = old[i] < 0 ? -1 : dup3(old[i], 3 + i, O_CLOEXEC);
		if (fds[i] < 0)
			return -EBADF;
	}
	return close_range((unsigned)(3 + count), ~0U, 0) < 0 ? -errno : 0;
}
