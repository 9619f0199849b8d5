/* pidfd.h: processes by descriptor, so that a number that was given to another one cannot be hit (pidfd_open(2), Linux 5.3). */
#pragma once

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
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

/* linux/pidfd.h since Linux 6.13, as headers of before do not have it: its first form. */
struct ks_pidfd_info {
	uint64_t mask, cgroup;
	uint32_t pid, others[11];
};
#define KS_PIDFD_GET_INFO _IOWR(0xff, 11, struct ks_pidfd_info)
#define KS_PIDFD_INFO_PID 1u

/* Its number as /proc here has it (the line "Pid:" of fdinfo, proc(5)); -1 when it has ended or is not to be seen. `proc_is_ours`: /proc
 * is of this pid namespace, and the number can be had without it where the kernel tells it. */
static inline int ks_pidfd_pid(int pidfd, bool proc_is_ours)
{
	struct ks_pidfd_info info = { .mask = KS_PIDFD_INFO_PID };
	char path[40], text[512];

	if (proc_is_ours && ioctl(pidfd, KS_PIDFD_GET_INFO, &info) == 0)
		return info.pid > 0 ? (int)info.pid : -1;
	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		(void)close(fd);
	text[n > 0 ? n : 0] = '\0';
	const char *line = strstr(text, "Pid:");
	return line ? atoi(line + 4) : -1;
}
