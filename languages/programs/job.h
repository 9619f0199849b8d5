/* job.h: what a cell runs: the processes of its interpreter's group that have begun since it came. What an earlier cell has left running in
 * the background is in that group as well. */
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* Ticks since boot, as /proc counts. */
static inline unsigned long long job_now(void)
{
	const unsigned long long hz = (unsigned long long)sysconf(_SC_CLK_TCK);
	struct timespec now;

	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	return (unsigned long long)now.tv_sec * hz + (unsigned long long)now.tv_nsec * hz / 1000000000U;
}

/* When it began; 0: it is gone. */
static inline unsigned long long job_start(const char *pid)
{
	char text[512];

	(void)snprintf(text, sizeof(text), "/proc/%.20s/stat", pid);
	const int fd = open(text, O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		(void)close(fd);
	text[n > 0 ? n : 0] = '\0';
	const char *rest = strrchr(text, ')'); /* of the name, which may hold anything: then come field 3 and the others, of which 22 */
	for (int field = 2; rest && field < 22; field++)
		rest = strchr(rest + 1, ' ');
	return rest ? strtoull(rest, NULL, 10) : 0;
}

/* Not to the leader of the group, the interpreter itself. */
static inline void job_signal(pid_t group, unsigned long long since, int number)
{
	DIR *proc = opendir("/proc");

	for (struct dirent *entry; proc && (entry = readdir(proc));) {
		const pid_t pid = (pid_t)atoi(entry->d_name);
		if (pid > 0 && pid != group && getpgid(pid) == group && job_start(entry->d_name) >= since)
			(void)kill(pid, number);
	}
	if (proc)
		(void)closedir(proc);
}
