/* test_cwd.c: ks_open_cwd: ordinary paths and links are fine, links of /proc are not, on any step of the way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "box/cwd.h"

static char room[64];

static int setup(void **state)
{
	(void)state;
	(void)snprintf(room, sizeof(room), "/tmp/ks-cwd-XXXXXX");
	return !mkdtemp(room) || chdir(room) < 0 || mkdir("a", 0755) < 0 || mkdir("a/b", 0755) < 0 || symlink("a", "rel") < 0 ||
	       symlink("../a/b", "a/up") < 0 || symlink("/proc/self/root", "root") < 0 || symlink("/proc/self/cwd", "cwd") < 0 ||
	       symlink("loop2", "loop1") < 0 || symlink("loop1", "loop2") < 0 || symlink("/", "abs") < 0 ||
	       close(creat("file", 0600)) < 0;
}

static int teardown(void **state)
{
	static const char *const names[] = { "file", "abs", "loop1", "loop2", "cwd", "root", "a/up", "rel" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		(void)unlink(names[i]);
	(void)rmdir("a/b");
	(void)rmdir("a");
	return chdir("/") < 0 || rmdir(room) < 0;
}

/* Opens `room`/path and says whether that is the directory `same`; -errno when it cannot be opened. */
static int opens(const char *path, const char *same)
{
	char whole[2 * PATH_MAX];
	struct stat a, b;

	(void)snprintf(whole, sizeof(whole), "%s%s%s", path[0] == '/' ? "" : room, path[0] == '/' ? "" : "/", path);
	int fd = ks_open_cwd(whole);
	if (fd < 0)
		return fd;
	assert_int_equal(fstat(fd, &a), 0);
	assert_int_equal(stat(same, &b), 0);
	(void)close(fd);
	return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static void test_fine(void **state)
{
	(void)state;
	assert_int_equal(opens("/", "/"), 1);
	assert_int_equal(opens("//", "/"), 1);
	assert_int_equal(opens("/..", "/"), 1);
	assert_int_equal(opens("/proc", "/proc"), 1);
	assert_int_equal(opens("a/b", "a/b"), 1);
	assert_int_equal(opens("a//b/./", "a/b"), 1);
	assert_int_equal(opens("a/../a/b/..", "a"), 1);
	assert_int_equal(opens("rel/b", "a/b"), 1);
	assert_int_equal(opens("rel/up", "a/b"), 1);
	assert_int_equal(opens("abs/proc", "/proc"), 1);
}

static void test_refused(void **state)
{
	char path[PATH_MAX + 8];

	(void)state;
	assert_int_equal(opens("/proc/self/root", "/"), -ELOOP);
	assert_int_equal(opens("/proc/self", "/"), -ELOOP);
	assert_int_equal(opens("/proc/self/fd/0", "/"), -ELOOP);
	(void)snprintf(path, sizeof(path), "/proc/%d/root", getpid());
	assert_int_equal(opens(path, "/"), -ELOOP);
	(void)snprintf(path, sizeof(path), "/proc/%d/cwd/a", getpid());
	assert_int_equal(opens(path, "/"), -ELOOP);
	assert_int_equal(opens("root", "/"), -ELOOP);
	assert_int_equal(opens("cwd/a", "/"), -ELOOP);
	assert_int_equal(opens("loop1", "/"), -ELOOP);
	assert_int_equal(opens("file", "/"), -ENOTDIR);
	assert_int_equal(opens("file/x", "/"), -ENOTDIR);
	assert_int_equal(opens("none", "/"), -ENOENT);
	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[NAME_MAX + 2] = '\0';
	assert_int_equal(opens(path, "/"), -ENAMETOOLONG);
	memset(path, '/', sizeof(path));
	path[PATH_MAX] = '\0';
	assert_int_equal(opens(path, "/"), -ENAMETOOLONG);
	path[PATH_MAX - 1] = '\0';
	assert_int_equal(opens(path, "/"), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_fine), cmocka_unit_test(test_refused) };

	return cmocka_run_group_tests(tests, setup, teardown);
}
