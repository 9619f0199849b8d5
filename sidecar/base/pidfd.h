/* pidfd.h: processes by descriptor, so that a number that was given to another one cannot be hit (pidfd_open(2), Linux 5.3). */
#pragma once

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* Its number as /proc here has it (the line "Pid:" of fdinfo, proc(5)); -1 when it has ended or is not to be seen. */
static inline int ks_pidfd_pid(int pidfd)
{
	char path[40], text[512];

	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		(void)close(fd);
	text[n > 0 ? n : 0] = '\0';
	const char *line = strstr(text, "Pid:");
	return line ? atoi(line + 4) : -1;
}
