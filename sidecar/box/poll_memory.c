#include "poll_memory.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "plan.h"

#define PAUSE_MIN_MS 10
#define PAUSE_MAX_MS 100
#define TAKEN_PER_MS ((uint64_t)4 << 20)

static ssize_t read_proc(const char *pid, const char *file, char *text, size_t size)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%.16s/%s", pid, file);
	KS_AUTOCLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
	text[n > 0 ? n : 0] = '\0';
	return n;
}

static uint64_t field_kib(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? strtoull(at + strlen(key), NULL, 10) * 1024 : 0;
}

/* Exact, and 20 times the price. A process that is not dumpable shows statm only; then its resident set counts whole. */
static uint64_t exact_bytes(const char *pid, uint64_t resident)
{
	char text[2048];

	if (read_proc(pid, "smaps_rollup", text, sizeof(text)) <= 0)
		return resident;
	return field_kib(text, "\nPss_Anon:") + field_kib(text, "\nPss_Shmem:") + field_kib(text, "\nSwapPss:");
}

static uint64_t processes(uint64_t (*measure)(const char *pid, uint64_t resident))
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	unsigned long long size, resident;
	uint64_t sum = 0;
	char text[128];
	DIR *proc = opendir("/proc");

	for (struct dirent *e; proc && (e = readdir(proc));) {
		if (e->d_name[0] < '0' || e->d_name[0] > '9' || strcmp(e->d_name, "1") == 0)
			continue;
		if (read_proc(e->d_name, "statm", text, sizeof(text)) > 0 && sscanf(text, "%llu %llu", &size, &resident) == 2)
			sum += measure(e->d_name, resident * page);
	}
	if (proc)
		(void)closedir(proc);
	return sum;
}

static uint64_t resident_bytes(const char *pid, uint64_t resident)
{
	(void)pid;
	return resident;
}

static uint64_t tmpfs_bytes(void)
{
	static const char *const mounts[] = { "/tmp", "/dev/shm", "/home", KS_CODE_DIR };
	struct statfs fs;
	struct stat st[KS_COUNT(mounts)] = { 0 };
	uint64_t sum = 0;

	/* a setup has directories of its workspace in some of these places: on a disk, or all in one memory file system */
	for (size_t i = 0; i < KS_COUNT(mounts); i++) {
		bool seen = stat(mounts[i], &st[i]) < 0 || statfs(mounts[i], &fs) < 0 || fs.f_type != TMPFS_MAGIC;
		for (size_t k = 0; k < i && !seen; k++)
			seen = st[k].st_dev == st[i].st_dev;
		if (!seen)
			sum += (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize;
	}
	return sum;
}

uint64_t ks_box_memory(uint64_t enough)
{
	uint64_t files = tmpfs_bytes(), bound = processes(resident_bytes) + files;

	return bound <= enough ? bound : processes(exact_bytes) + files;
}

unsigned ks_box_memory_pause_ms(uint64_t bytes, uint64_t max, unsigned cpus)
{
	const uint64_t lasts_ms = bytes < max ? (max - bytes) / TAKEN_PER_MS / (cpus > 0 ? cpus : 1) : 0;

	return lasts_ms < PAUSE_MIN_MS ? PAUSE_MIN_MS : lasts_ms > PAUSE_MAX_MS ? PAUSE_MAX_MS : (unsigned)lasts_ms;
}
