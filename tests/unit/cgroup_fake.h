/* cgroup_fake.h: a fake cgroup tree: plain files in a temporary directory, which hooks make as cgroupfs would. Shared
 * by the tests of the cgroup layer, so everything is static inline. */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/clock.h"
#include "box/cgroup.h"
#include "box/cgroup_impl.h"

/* ---- a fake tree ---- */

static char top[64];	      /* the temporary directory */
static bool fake_v2;	      /* all of it is one v2 hierarchy */
static const char *v2_has;    /* its controllers */
static const char *sabotage;  /* this file swallows what is written to it */
static const char *forbidden; /* below this no directory can be made */
static int made;	      /* directories */

static inline const char *path_of(const char *fmt, ...) KS_PRINTF(1, 2);
static inline const char *path_of(const char *fmt, ...)
{
	static char paths[4][600];
	static unsigned turn;
	char tail[500];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(tail, sizeof(tail), fmt, ap);
	va_end(ap);
	char *path = paths[turn++ % 4];
	(void)snprintf(path, sizeof(paths[0]), "%s/%s", top, tail);
	return path;
}

static inline void put(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

/* The first line of a file below top; "(none)" when there is no such file. */
static inline const char *got(const char *path)
{
	static char lines[4][256];
	static unsigned turn;
	char *line = lines[turn++ % 4];
	FILE *f = fopen(path, "re");

	(void)snprintf(line, sizeof(lines[0]), "(none)");
	if (f) {
		if (!fgets(line, sizeof(lines[0]), f))
			*line = '\0';
		(void)fclose(f);
	}
	line[strcspn(line, "\n")] = '\0';
	return line;
}

struct fake_file {
	const char *hierarchy, *name, *text;
};

static const struct fake_file v1_files[] = {
	{ "memory", "memory.limit_in_bytes", "9223372036854771712\n" },
	{ "memory", "memory.memsw.limit_in_bytes", "9223372036854771712\n" },
	{ "memory", "memory.usage_in_bytes", "0\n" },
	{ "memory", "memory.max_usage_in_bytes", "0\n" },
	{ "memory", "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n" },
	{ "memory", "memory.failcnt", "0\n" },
	{ "memory", "memory.kmem.tcp.limit_in_bytes", "9223372036854771712\n" },
	{ "pids", "pids.max", "max\n" },
	{ "pids", "pids.events", "max 0\n" },
	{ "pids", "pids.peak", "0\n" },
	{ "pids", "pids.current", "0\n" },
	{ "cpu", "cpu.cfs_quota_us", "-1\n" },
	{ "cpuacct", "cpuacct.usage_user", "0\n" },
	{ "cpuacct", "cpuacct.usage_sys", "0\n" },
	{ "blkio", "blkio.throttle.io_service_bytes", "Total 0\n" },
};

static const struct fake_file v2_files[] = {
	{ "memory", "memory.max", "max\n" },
	{ "memory", "memory.swap.max", "max\n" },
	{ "memory", "memory.current", "0\n" },
	{ "memory", "memory.peak", "0\n" },
	{ "memory", "memory.events.local", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0\n" },
	{ "pids", "pids.max", "max\n" },
	{ "pids", "pids.events", "max 0\n" },
	{ "cpu", "cpu.max", "max 100000\n" },
	{ "io", "io.stat", "" },
	{ "", "cpu.stat", "usage_usec 0\nuser_usec 0\nsystem_usec 0\n" },
	{ "", "cgroup.type", "domain\n" },
	{ "", "cgroup.subtree_control", "" },
	{ "", "cgroup.kill", "" },
};

static inline void make_file(int dir, const char *name, const char *text)
{
	if (sabotage && strcmp(name, sabotage) == 0) {
		assert_int_equal(symlinkat("/dev/null", dir, name), 0);
		return;
	}
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

/* Fills a directory as cgroupfs does. `path` is below top: its first part names the v1 hierarchy. */
static inline void fill(int dir, const char *path)
{
	const struct fake_file *files = fake_v2 ? v2_files : v1_files;
	size_t count = fake_v2 ? KS_COUNT(v2_files) : KS_COUNT(v1_files);
	char hierarchies[64] = "";

	(void)snprintf(hierarchies, sizeof(hierarchies), "%.*s", (int)strcspn(path, "/"), path);
	make_file(dir, "cgroup.procs", "");
	if (fake_v2)
		make_file(dir, "cgroup.controllers", v2_has);
	for (size_t i = 0; i < count; i++)
		if (!*files[i].hierarchy ||
		    ks_cgroup_word(fake_v2 ? v2_has : hierarchies, fake_v2 ? ' ' : ',', files[i].hierarchy))
			make_file(dir, files[i].name, files[i].text);
}

static inline int fake_make_dir(int parent, const char *name, mode_t mode)
{
	char link[64], where[600];

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", parent);
	ssize_t n = readlink(link, where, sizeof(where) - 1);
	assert_true(n > 0);
	where[n] = '\0';
	const char *inside = where + strlen(top) + 1;
	if (forbidden && strncmp(inside, forbidden, strlen(forbidden)) == 0) {
		errno = EROFS;
		return -1;
	}
	if (mkdirat(parent, name, mode) < 0)
		return -1;
	made++;
	int dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(dir >= 0);
	fill(dir, inside);
	close(dir);
	return 0;
}

/* As the kernel: EBUSY for one with processes or children, else it goes with its files. */
static inline int fake_remove_dir(int parent, const char *name, int flags)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct stat procs;

	assert_int_equal(flags, AT_REMOVEDIR);
	if (!dir)
		return -1;
	bool busy = fstatat(fd, "cgroup.procs", &procs, 0) == 0 && procs.st_size > 0;
	for (struct dirent *e; !busy && (e = readdir(dir));)
		busy = e->d_type == DT_DIR && e->d_name[0] != '.';
	rewinddir(dir);
	for (struct dirent *e; !busy && (e = readdir(dir));)
		if (e->d_name[0] != '.')
			assert_int_equal(unlinkat(fd, e->d_name, 0), 0);
	closedir(dir);
	if (busy) {
		errno = EBUSY;
		return -1;
	}
	made--;
	return unlinkat(parent, name, AT_REMOVEDIR);
}

static inline void make_cgroup(const char *path)
{
	assert_int_equal(mkdir(path_of("%s", path), 0755), 0);
	int fd = open(path_of("%s", path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	fill(fd, path);
	close(fd);
}

static inline int setup(void **state)
{
	(void)state;
	(void)snprintf(top, sizeof(top), "/tmp/ks-test-cgroup-XXXXXX");
	fake_v2 = false;
	v2_has = "cpu io memory pids\n";
	sabotage = forbidden = NULL;
	made = 0;
	if (!mkdtemp(top))
		return -1;
	put(path_of("proc"), "");
	put(path_of("mountinfo"), "");
	return 0;
}

static inline int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static inline int teardown(void **state)
{
	(void)state;
	return nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline struct ks_cgroups *open_with(struct ks_cgroups_config config)
{
	struct ks_cgroups *cgroups = NULL;
	struct ks_error err = { 0 };
	static char proc[128], mountinfo[128], absent[128];

	(void)snprintf(proc, sizeof(proc), "%s/proc", top);
	(void)snprintf(mountinfo, sizeof(mountinfo), "%s/mountinfo", top);
	(void)snprintf(absent, sizeof(absent), "%s/absent", top);
	config.root = top;
	config.proc_cgroup = proc;
	config.proc_mountinfo = mountinfo;
	config.systemd_booted = config.systemd_booted ? config.systemd_booted : absent;
	config.make_dir = fake_make_dir;
	config.remove_dir = fake_remove_dir;
	if (ks_cgroups_open(&config, &cgroups, &err) < 0)
		fail_msg("%s", err.text);
	return cgroups;
}

static inline struct ks_cgroups *open_fake(void)
{
	return open_with((struct ks_cgroups_config){ 0 });
}

static inline void mount_line(FILE *f, const char *root, const char *dir, const char *type, const char *options)
{
	(void)fprintf(f, "30 20 0:30 %s %s%s%s rw,relatime shared:5 - %s none rw,%s\n", root, top,
		      *dir ? "/" : "", dir, type, options);
}

/* The usual: each hierarchy at its own mount, we are in /job of it. */
static inline void make_v1(const char *const *hierarchies)
{
	FILE *proc = fopen(path_of("proc"), "we"), *mounts = fopen(path_of("mountinfo"), "we");

	for (int i = 0; hierarchies[i]; i++) {
		(void)fprintf(proc, "%d:%s:/job\n", i + 2, hierarchies[i]);
		mount_line(mounts, "/", hierarchies[i], "cgroup", hierarchies[i]);
		make_cgroup(hierarchies[i]);
		make_cgroup(path_of("%s/job", hierarchies[i]) + strlen(top) + 1);
	}
	(void)fputs("1:name=systemd:/job\n", proc);
	(void)fclose(proc);
	(void)fclose(mounts);
}

static const char *const v1_all[] = { "memory", "pids", "cpu", "cpuacct", "blkio", NULL };

/* One hierarchy, we are alone in /job. */
static inline void make_v2(void)
{
	char pid[32];
	FILE *mounts = fopen(path_of("mountinfo"), "we");

	fake_v2 = true;
	mount_line(mounts, "/", "", "cgroup2", "nsdelegate");
	(void)fclose(mounts);
	put(path_of("proc"), "0::/job\n");
	put(path_of("cgroup.controllers"), v2_has);
	make_cgroup("job");
	(void)snprintf(pid, sizeof(pid), "%d\n", getpid());
	put(path_of("job/cgroup.procs"), pid);
}

static inline struct ks_leaf *take(struct ks_cgroups *cgroups)
{
	struct ks_error err = { 0 };
	struct ks_leaf *leaf = ks_leaf_take(cgroups, &err);

	if (!leaf)
		fail_msg("%s", err.text);
	return leaf;
}

static inline void limit(struct ks_leaf *leaf, int64_t memory, int64_t pids, int64_t cpus)
{
	struct ks_error err = { 0 };

	if (ks_leaf_limit(leaf, memory, pids, cpus, &err) < 0)
		fail_msg("%s", err.text);
}

static inline int enter(struct ks_leaf *leaf, unsigned what, int fds[KS_LEAF_FDS])
{
	struct ks_error err = { 0 };
	int count = ks_leaf_enter_fds(leaf, what, fds, &err);

	if (count < 0)
		fail_msg("%s", err.text);
	return count;
}

static inline const char *leaf_path(struct ks_leaf *leaf, const char *above, const char *file)
{
	return path_of("%s/%s/%s/%s", above, leaf->cgroups->set, leaf->name, file);
}

static inline void assert_status(struct ks_cgroups *cgroups, const char *backend, enum ks_enforced memory,
			  enum ks_enforced pids, enum ks_enforced cpu)
{
	const struct ks_cgroup_status *status = ks_cgroups_status(cgroups);

	assert_string_equal(status->backend, backend);
	assert_int_equal(status->enforced[KS_LIMIT_MEMORY], memory);
	assert_int_equal(status->enforced[KS_LIMIT_PIDS], pids);
	assert_int_equal(status->enforced[KS_LIMIT_CPU], cpu);
	for (int i = 0; i < KS_LIMIT_KINDS; i++)
		assert_int_equal(status->reason[i][0] == '\0', status->enforced[i] == KS_ENFORCED_KERNEL);
}

#define FAKE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
