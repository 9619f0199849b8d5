/* Opening names below a directory, with openat2 and without it: no link is followed, nothing outside is reached. */
#include "scratch.h"

#include "workspace/beneath.h"

static void test_beneath(void **unused)
{
	struct scratch s;
	static const struct {
		const char *path;
		int flags, wanted;
	} cases[] = {
		{ "d/f", O_RDONLY, 0 },
		{ "d/f", O_PATH, 0 },
		{ "d", O_RDONLY | O_DIRECTORY, 0 },
		{ ".", O_RDONLY | O_DIRECTORY, 0 },
		{ "pipe", O_RDONLY, 0 }, /* does not block */
		{ "", O_RDONLY, -EINVAL },
		{ "/etc/passwd", O_RDONLY, -EINVAL },
		{ "..", O_RDONLY, -EINVAL },
		{ "d/../f", O_RDONLY, -EINVAL },
		{ "d//f", O_RDONLY, -EINVAL },
		{ "d/", O_RDONLY, -EINVAL },
		{ "missing", O_RDONLY, -ENOENT },
		{ "d/f/g", O_RDONLY, -ENOTDIR },
		{ "link", O_RDONLY, -ELOOP },
		{ "link", O_PATH, -ELOOP },
		{ "dirlink/f", O_RDONLY, -ELOOP },
		{ "rootlink/etc/passwd", O_RDONLY, -ELOOP },
		{ "dirlink", O_PATH | O_DIRECTORY, -ELOOP },
		{ "d/f", O_PATH | O_DIRECTORY, -ENOTDIR },
	};

	(void)unused;
	scratch_open(&s);
	assert_int_equal(mkdirat(s.fd, "d", 0755) | symlinkat("d/f", s.fd, "link") | symlinkat("d", s.fd, "dirlink") |
				 symlinkat("/", s.fd, "rootlink") | mkfifoat(s.fd, "pipe", 0644), 0);
	put(s.fd, "d/f", "x");
	for (int without = 0; without <= 1; without++) {
		ks_beneath_without_openat2(without);
		for (size_t i = 0; i < KS_COUNT(cases); i++) {
			int fd = ks_open_beneath(s.fd, cases[i].path, cases[i].flags, KS_BENEATH_STAY);
			if (cases[i].wanted)
				assert_int_equal(fd, cases[i].wanted);
			else
				assert_true(fd >= 0 && (fcntl(fd, F_GETFD) & FD_CLOEXEC));
			if (fd >= 0)
				(void)close(fd);
		}
		assert_int_equal(ks_open_regular(s.fd, "pipe"), -EINVAL);
		assert_int_equal(ks_open_regular(s.fd, "d"), -EINVAL);
	}
	ks_beneath_without_openat2(false);
	scratch_close(&s);
}

/* Where links lead that are followed by hand, and that they lead nowhere else. */
static void test_follow(void **unused)
{
	static const struct {
		const char *path;
		bool keep_last;
		int wanted;
		const char *leads_to;
	} cases[] = {
		{ "d/f", false, 0, "d/f" },	     { ".", false, 0, "." },
		{ "link", false, 0, "d/f" },	     { "link", true, 0, "link" },
		{ "dirlink/f", false, 0, "d/f" },    { "dirlink/f", true, 0, "d/f" },
		{ "d/up", false, 0, "." },	     { "d/up/d/up/d/f", false, 0, "d/f" },
		{ "d/round/f", false, 0, "d/f" },    { "dangling", false, 0, "d/none" },
		{ "dangling/x", false, 0, "d/none/x" }, { "none/x/y", false, 0, "none/x/y" },
		{ "d/out", false, -EXDEV, NULL },    { "d/out", true, 0, "d/out" },
		{ "rootlink/etc", false, -EXDEV, NULL }, { "loop", false, -ELOOP, NULL },
		{ "loop/x", true, -ELOOP, NULL },    { "l39", false, 0, "d" },
		{ "l40", false, -ELOOP, NULL },	     { "d/f/x", false, -ENOTDIR, NULL },
		{ "../x", false, -EINVAL, NULL },    { "/x", false, -EINVAL, NULL },
	};
	struct scratch s;
	char name[8], target[8];

	(void)unused;
	scratch_open(&s);
	assert_int_equal(mkdirat(s.fd, "d", 0755) | symlinkat("d/f", s.fd, "link") | symlinkat("d", s.fd, "dirlink") |
				 symlinkat("/", s.fd, "rootlink") | symlinkat("..", s.fd, "d/up") | symlinkat("../../x", s.fd, "d/out") |
				 symlinkat(".././/d/../dirlink", s.fd, "d/round") | symlinkat("d/none", s.fd, "dangling") |
				 symlinkat("loop", s.fd, "loop") | symlinkat("d", s.fd, "l0"), 0);
	put(s.fd, "d/f", "x");
	for (int i = 1; i <= 40; i++) { /* l39 takes 40 links, l40 one more */
		(void)snprintf(name, sizeof(name), "l%d", i);
		(void)snprintf(target, sizeof(target), "l%d", i - 1);
		assert_int_equal(symlinkat(target, s.fd, name), 0);
	}
	for (int without = 0; without <= 1; without++) {
		ks_beneath_without_openat2(without);
		for (size_t i = 0; i < KS_COUNT(cases); i++) {
			char *found = NULL;
			assert_int_equal(ks_follow_beneath(s.fd, cases[i].path, cases[i].keep_last, KS_BENEATH_STAY, &found),
					 cases[i].wanted);
			if (cases[i].leads_to)
				assert_string_equal(found, cases[i].leads_to);
			else
				assert_null(found);
			free(found);
		}
	}
	ks_beneath_without_openat2(false);
	scratch_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_beneath), cmocka_unit_test(test_follow) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
