/* sys.h: system calls that libc does not wrap, or wraps in a way that is wrong here. */
#pragma once

#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/pidfd.h"

/* The raw call on purpose: no atfork handlers, and flags that clone(2) cannot carry. `cgroup` is a v2
 * directory to be born in (CLONE_INTO_CGROUP), or -1. */
static inline pid_t ks_clone3(uint64_t flags, uint64_t exit_signal, int cgroup, int *ret_pidfd)
{
	struct clone_args args = { .flags = flags, .exit_signal = exit_signal };

	if (ret_pidfd) {
		args.flags |= CLONE_PIDFD;
		args.pidfd = (uint64_t)(uintptr_t)ret_pidfd;
	}
	if (cgroup >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (unsigned)cgroup;
	}
	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

static inline int ks_pivot_root(const char *new_root, const char *put_old)
{
	return (int)syscall(SYS_pivot_root, new_root, put_old);
}

static inline int ks_openat2(int dirfd, const char *path, uint64_t flags, uint64_t resolve)
{
	struct open_how how = { .flags = flags | O_CLOEXEC, .resolve = resolve };

	return (int)syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
}
