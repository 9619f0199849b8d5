/* test_ignore.c: the rules of .gitignore files (worker/jobs/ignore.h). test_glob.py compares whole trees with git. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "worker/jobs/ignore.h"

static enum ks_ignored match(struct ks_ignore *ignore, const char *path)
{
	size_t len = strlen(path);
	const bool directory = len > 0 && path[len - 1] == '/';

	len -= directory;
	const char *slash = memrchr(path, '/', len), *name = slash ? slash + 1 : path;
	return ks_ignore_match(ignore, path, len, name, len - (size_t)(name - path), directory);
}

struct expect {
	const char *rules, *yes, *no, *silent; /* paths between spaces; a slash at the end: a directory */
};

static const struct expect cases[] = {
	{ "", "", "", "a" },
	{ "a", "a d/a a/", "", "b ab" },
	{ "a\n", "a", "", "b" },
	{ "a\r\nb\r\n", "a b", "", "c" },
	{ "\xef\xbb\xbf" "a", "a", "", "b" },
	{ "# a\n#b", "", "", "a #b" },
	{ "\\#b", "#b", "", "b" },
	{ "\\!b", "!b", "", "b" },
	{ "a   ", "a", "", "b" },
	{ "\ta", "\ta", "", "a" },
	{ "a/", "a/ d/a/", "", "a d/a" },
	{ "/a", "a", "", "d/a" },
	{ "d/a", "d/a", "", "a x/d/a" },
	{ "/d/a/", "d/a/", "", "d/a" },
	{ "*.o", "a.o d/a.o .o", "", "a.c" },
	{ "*.o\n!a.o", "b.o", "a.o d/a.o", "a.c" },
	{ "!a.o\n*.o", "a.o", "", "a.c" },
	{ "*\n!*.c", "a a.h", "a.c d/a.c", "" },
	{ "*\n!*/", "a", "d/", "" },
	{ "**/a", "a d/a d/e/a", "", "b" },
	{ "a/**", "a/b a/b/c", "", "a/ a" },
	{ "a/**/b", "a/b a/x/b a/x/y/b", "", "b a/x" },
	{ "**/d/a", "d/a x/d/a", "", "a" },
	{ "d/**/", "d/a/ d/a/b/", "", "d/a d/" },
	{ "a**b", "ab axb", "", "a" },
	{ "d/a**b", "d/axb", "", "d/a/b" },
	{ "d/*", "d/a d/.a", "", "d/e/a d" },
	{ "?", "a", "", "ab \xc3\xa9" },
	{ "[ab]", "a b", "", "c" },
	{ "[!ab]", "c", "", "a" },
	{ "[^ab]", "c", "", "a" },
	{ "[a", "", "", "[a a" },
	{ "a\\", "", "", "a a\\" },
	{ "[[:space:]x]", "x", "", "y" },
	{ "{a,b}", "{a,b}", "", "a b" },
	{ "/", "", "", "a /" },
	{ "!", "", "", "a !" },
	{ "a\\*", "a*", "", "ab" },
	{ "foo/bar/*\n!foo/bar/keep", "foo/bar/x", "foo/bar/keep", "foo/bar/" },
};

static void each_path(const struct expect *expect, struct ks_ignore *ignore, const char *paths, enum ks_ignored want)
{
	char copy[256], *rest = copy;

	(void)snprintf(copy, sizeof(copy), "%s", paths);
	for (char *path = strsep(&rest, " "); path; path = strsep(&rest, " "))
		if (*path && match(ignore, path) != want)
			fail_msg("rules %s: %s gives %d, not %d", expect->rules, path, (int)match(ignore, path), (int)want);
}

static void test_cases(void **state)
{
	struct ks_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ks_ignore *ignore;
		assert_int_equal(ks_ignore_new(cases[i].rules, strlen(cases[i].rules), &ignore, &err), 0);
		each_path(&cases[i], ignore, cases[i].yes, KS_IGNORE_YES);
		each_path(&cases[i], ignore, cases[i].no, KS_IGNORE_NO);
		each_path(&cases[i], ignore, cases[i].silent, KS_IGNORE_SILENT);
		ks_ignore_free(ignore);
	}
}

static void test_spaces(void **state)
{
	struct ks_ignore *ignore;
	struct ks_error err;
	static const char rules[] = "a\\ \nb\\  \nc\\\\ \n";

	(void)state;
	assert_int_equal(ks_ignore_new(rules, strlen(rules), &ignore, &err), 0);
	assert_int_equal(match(ignore, "a "), KS_IGNORE_YES);
	assert_int_equal(match(ignore, "a"), KS_IGNORE_SILENT);
	assert_int_equal(match(ignore, "b "), KS_IGNORE_YES);
	assert_int_equal(match(ignore, "b  "), KS_IGNORE_SILENT);
	assert_int_equal(match(ignore, "c\\"), KS_IGNORE_YES);
	ks_ignore_free(ignore);
}

/* Rules beyond what a set may have are refused, not forgotten. */
static void test_too_many(void **state)
{
	static char rules[512 << 10];
	struct ks_ignore *ignore = NULL;
	struct ks_error err;

	(void)state;
	memset(rules, 'a', sizeof(rules));
	for (size_t i = 9; i < sizeof(rules); i += 10)
		rules[i] = '\n';
	assert_int_equal(ks_ignore_new(rules, sizeof(rules), &ignore, &err), -1);
	assert_int_equal(err.reason, KS_E_LIMIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_cases), cmocka_unit_test(test_spaces), cmocka_unit_test(test_too_many) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
