/* pidfd.h: processes by descriptor, so that a number that was given to another one cannot be hit (pidfd_open(2), Linux 5.3). */
#pragma once

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* Both return -1 with errno. */
static inline int ks_pidfd_open(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

static inline int ks_pidfd_kill(int pidfd, int sig)
{
	return (int)syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0);
}
