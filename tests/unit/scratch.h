/* scratch.h: a directory of a test's own, and running a part of a test as an ordinary user or in its own namespaces. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "workspace/remove.h"

#define SCRATCH_UID 54321

/* For what runs in a child of the test, where cmocka's assertions would go on with the next test. */
#define CHECK(condition)                                                                       \
	do {                                                                                   \
		if (!(condition)) {                                                            \
			(void)fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);  \
			_exit(1);                                                              \
		}                                                                              \
	} while (0)

struct scratch {
	char path[PATH_MAX];
	int fd;
};

static inline void scratch_open(struct scratch *s)
{
	const char *base = getenv("TMPDIR");
	char real[PATH_MAX];

	(void)snprintf(s->path, sizeof(s->path), "%s/ks-test-XXXXXX", base ? base : "/tmp");
	assert_non_null(mkdtemp(s->path));
	assert_int_equal(chmod(s->path, 0755), 0);
	assert_non_null(realpath(s->path, real));
	memcpy(s->path, real, sizeof(real));
	s->fd = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(s->fd >= 0);
}

static inline int run_remove(struct ks_remove *r, struct ks_error *err)
{
	int rc;

	while ((rc = ks_remove_step(r, 1000, err)) == 0)
		;
	return rc;
}

static inline void scratch_close(struct scratch *s)
{
	struct ks_remove *r;
	struct ks_error err;

	assert_int_equal(ks_remove_start(s->fd, NULL, &r, &err), 0);
	assert_int_equal(run_remove(r, &err), 1);
	ks_remove_free(r);
	assert_int_equal(rmdir(s->path), 0);
	(void)close(s->fd);
}

static inline void put_mode(int dir, const char *name, const void *data, size_t len, mode_t mode)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	if (fd < 0 || write(fd, data, len) != (ssize_t)len || fchmod(fd, mode) < 0)
		abort();
	(void)close(fd);
}

static inline void put(int dir, const char *name, const char *text)
{
	put_mode(dir, name, text, strlen(text), 0644);
}

/* Sparse. */
static inline void put_size(int dir, const char *name, off_t size)
{
	put(dir, name, "");
	int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || ftruncate(fd, size) < 0)
		abort();
	(void)close(fd);
}

static inline int open_dir_at(int dir, const char *name)
{
	return openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* `depth` directories called `name`, one in the other; an fd of the last. */
static inline int dig(int dir, const char *name, unsigned depth)
{
	int at = dup(dir);

	while (at >= 0 && depth--) {
		if (mkdirat(at, name, 0755) < 0)
			abort();
		int next = open_dir_at(at, name);
		(void)close(at);
		at = next;
	}
	return at;
}

static inline void become_user(void)
{
	if (geteuid() == 0 &&
	    (setgroups(0, NULL) < 0 || setresgid(SCRATCH_UID, SCRATCH_UID, SCRATCH_UID) < 0 ||
	     setresuid(SCRATCH_UID, SCRATCH_UID, SCRATCH_UID) < 0))
		_exit(2);
}

static inline bool put_proc(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	(void)close(fd);
	return done;
}

/* A mount namespace, with a user namespace where that is what it takes. False: this machine does not give one. */
static inline bool own_mounts(void)
{
	char uid[64], gid[64];

	if (geteuid() == 0)
		return unshare(CLONE_NEWNS) == 0 && mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) == 0;
	(void)snprintf(uid, sizeof(uid), "%u %u 1", geteuid(), geteuid());
	(void)snprintf(gid, sizeof(gid), "%u %u 1", getegid(), getegid());
	return unshare(CLONE_NEWNS | CLONE_NEWUSER) == 0 && put_proc("/proc/self/setgroups", "deny") &&
	       put_proc("/proc/self/uid_map", uid) && put_proc("/proc/self/gid_map", gid);
}

/* Runs `part` in a child: 0 when it returned, else its exit status. */
static inline int in_child(void (*part)(struct scratch *), struct scratch *s)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		part(s);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* A whole test: `part` in a child and a directory of its own; it ends with 77 where this machine cannot do it. */
static inline void scratch_child(void (*part)(struct scratch *))
{
	struct scratch s;

	scratch_open(&s);
	int rc = in_child(part, &s);
	scratch_close(&s);
	if (rc == 77)
		skip();
	assert_int_equal(rc, 0);
}
