/* fds.h: messages over Unix sockets with descriptors beside them (unix(7), SCM_RIGHTS). */
#pragma once

#include <sys/types.h>

#define KS_MSG_FDS 64 /* beside one message */

/* Both return -errno. The receiver owns what it gets (CLOEXEC); descriptors that do not fit are closed by the kernel. */
int ks_send(int sock, const void *buf, size_t len, const int *fds, int nfds, int flags);
ssize_t ks_recv(int sock, void *buf, size_t len, int *ret_fds, int *ret_nfds, int flags);
void ks_close_all(const int *fds, int nfds);
/* Moves `fds` to 3, 4, ... (CLOEXEC) and closes everything above: a process down the line must not hold a copy of somebody's
 * socket end, because that defeats the EOF by which a death is seen, and is power. 0 or -errno. */
int ks_keep_fds(int *fds, int count);
