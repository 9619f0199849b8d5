/* test_glob.c: patterns of names (worker/jobs/wildcard.h): what matches what, where a walk need not go, and that no pattern is slow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/base.h"
#include "worker/jobs/utf8.h"
#include "worker/jobs/wildcard.h"

static struct ks_wild_states states_of(const struct ks_wild *wild)
{
	struct ks_wild_states states = { calloc(ks_wild_width(wild) + 1, sizeof(uint32_t)), 0 };

	assert_non_null(states.list);
	ks_wild_begin(wild, &states);
	return states;
}

static struct ks_wild wild_of(const char *pattern)
{
	struct ks_wild wild = { .flags = KS_WILD_BRACES };
	const char *wrong = ks_wild_add(&wild, pattern, strlen(pattern), 0);

	if (wrong)
		fail_msg("%s: %s", pattern, wrong);
	assert_true(ks_wild_ready(&wild));
	return wild;
}

/* Name by name, as a walk does it. A slash at the end of the path: it is a directory. */
static bool matches(const char *pattern, const char *path, bool hidden)
{
	struct ks_wild wild = wild_of(pattern);
	struct ks_wild_states states = states_of(&wild);
	size_t len = strlen(path);
	const bool directory = len > 0 && path[len - 1] == '/';

	len -= directory;
	for (size_t at = 0; at < len;) {
		const char *slash = memchr(path + at, '/', len - at);
		const size_t end = slash ? (size_t)(slash - path) : len;
		ks_wild_step(&wild, &states, path + at, end - at, !hidden, &states);
		if (slash)
			ks_wild_step(&wild, &states, "/", 1, false, &states);
		at = slash ? end + 1 : end;
	}
	const bool found = ks_wild_match(&wild, &states, directory) >= 0;
	free(states.list);
	ks_wild_free(&wild);
	return found;
}

struct expect {
	const char *pattern, *yes, *no; /* paths between spaces */
};

static const struct expect cases[] = {
	{ "*.c", "a.c d/a.c d/e/.x/../a.c", "a.h a.c/x .c d/.c a.cc" },
	{ "/*.c", "a.c", "d/a.c" },
	{ "./*.c", "a.c", "d/a.c" },
	{ "a.c", "a.c d/a.c", "aXc a.c/b xa.c" },
	{ "d/*.c", "d/a.c", "a.c d/e/a.c x/d/a.c" },
	{ "d/**/*.c", "d/a.c d/e/a.c d/e/f/a.c", "a.c x/d/a.c d/a.h" },
	{ "**/*.c", "a.c d/a.c d/e/a.c", "a.h" },
	{ "**", "a a/b a/b/c", ".a a/.b" },
	{ "d/**", "d/a d/e/f", "d/ d x/d/a" },
	{ "**/d/**", "d/a x/d/a x/d/e/f", "d d/ x/d a" },
	{ "**/**/x", "x a/x a/b/x", "a y" },
	{ "a/**/**/b", "a/b a/x/b a/x/y/b", "ab a/bb" },
	{ "a/**b", "a/b a/xb", "a/x/b" },
	{ "***/x", "x a/b/x", "a" },
	{ "a/***", "a/b a/b/c", "a" },
	{ "a**c", "ac abc abbc", "a/c" },
	{ "?", "a x/b \xc3\xa9 \xff", "ab" },
	{ "??.c", "ab.c \xc3\xa9x.c", "a.c abc.c" },
	{ "[a-c]x", "ax bx cx", "dx x -x" },
	{ "[!a-c]x", "dx -x", "ax x /x" },
	{ "[^a]", "b \xc3\xa9", "a" },
	{ "[]]", "]", "a" },
	{ "[!]]", "a", "]" },
	{ "[]-a]", "] ^ a", "b" },
	{ "[a-]", "a -", "b" },
	{ "[\\]]", "]", "\\" },
	{ "[[:alpha:]]1", "a1 Z1", "11 _1" },
	{ "[![:digit:]_]", "a", "1 _" },
	{ "[\xc3\xa0-\xc3\xbf]", "\xc3\xa9", "e \xc3" },
	{ "[*]", "*", "a" },
	{ "\\*", "*", "a" },
	{ "\\{a,b\\}", "{a,b}", "a b" },
	{ "a\\b", "ab", "a\\b" },
	{ "{a,b}", "a b x/a", "c ab {a,b}" },
	{ "*.{c,h}", "a.c a.h d/a.h", "a.o" },
	{ "{a,b{c,d}}x", "ax bcx bdx", "bx cx" },
	{ "{a,}b", "ab b", "a" },
	{ "{}a", "a", "{}a" },
	{ "[{]a", "{a", "a" },
	{ "[{,}]a", "{a ,a }a", "a" },
	{ "{x[,]y,z}", "x,y z", "x y" },
	{ "{src,test}/**/*.{c,h}", "src/a.c test/d/a.h", "a.c lib/a.c src/a.o" },
	{ "{src,**/lib}/*.c", "src/a.c lib/a.c x/y/lib/a.c", "x/src/a.c" },
	{ "{**/a,b/**}", "a x/a b/c b/c/d", "b c" },
	{ "a,b}", "a,b}", "a" },
	{ "d/", "d/ x/d/", "d x/d" },
	{ "a/d/", "a/d/", "a/d x/a/d/" },
	{ "d//a", "d/a", "a" },
	{ "a//**//b", "a/b a/x/b", "b" },
	{ ".*", ".a x/.a", "a" },
	{ ".github/**/*.yml", ".github/a.yml .github/x/a.yml", "a.yml .github/.x/a.yml" },
	{ "*/.x", "a/.x", ".a/.x .x" },
	{ "[.]x", "", ".x" },
	{ "?x", "ax", ".x" },
	{ "{.,}x", ".x x", ".y" },
};

static void each_path(const struct expect *expect, const char *paths, bool want)
{
	char copy[512], *rest = copy;

	(void)snprintf(copy, sizeof(copy), "%s", paths);
	for (char *path = strsep(&rest, " "); path; path = strsep(&rest, " "))
		if (*path && !strstr(path, "/../") && matches(expect->pattern, path, false) != want)
			fail_msg("%s %s %s", expect->pattern, want ? "does not match" : "matches", path);
}

static void test_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < KS_COUNT(cases); i++) {
		each_path(&cases[i], cases[i].yes, true);
		each_path(&cases[i], cases[i].no, false);
	}
}

static void test_hidden(void **state)
{
	(void)state;
	assert_true(matches("*", ".a", true));
	assert_true(matches("**/x", ".a/x", true));
	assert_false(matches("**/x", ".a/x", false));
	assert_true(matches("*.c", ".c", true));
}

static void test_bad_patterns(void **state)
{
	static const char *const bad[] = { "[", "[a", "[!", "[a-", "[[:alpha:]", "[[:foo:]]", "\\",	"a\\",	    "{a", "{a,{b}",
					   "/", "//", "",   "{,}", "../a",	 "a/..",      "a/../b", "{..,a}/b", "./", "[a\\" };

	(void)state;
	for (size_t i = 0; i < KS_COUNT(bad); i++) {
		struct ks_wild wild = { .flags = KS_WILD_BRACES };
		if (!ks_wild_add(&wild, bad[i], strlen(bad[i]), 0))
			fail_msg("%s was taken", bad[i]);
		ks_wild_free(&wild);
	}
}

static void test_too_large(void **state)
{
	struct ks_wild wild = { .flags = KS_WILD_BRACES };
	char nested[4096];
	const char *braces = "{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}";

	(void)state;
	assert_non_null(ks_wild_add(&wild, braces, strlen(braces), 0));
	memset(nested, '{', 2000);
	memset(nested + 2000, '}', 2000);
	(void)ks_wild_add(&wild, nested, 4000, 0); /* nothing but quick */
	memset(nested, 'a', 4000);
	int taken = 0;
	while (taken < 100 && !ks_wild_add(&wild, nested, 4000, 0))
		taken++;
	assert_in_range(taken, 10, 20);
	ks_wild_free(&wild);
}

/* Where nothing can match any more there are no states; where all does, it covers. */
static void test_pruning(void **state)
{
	struct ks_wild wild = wild_of("src/**/*.c"), ignore = wild_of("**/node_modules/**");
	struct ks_wild_states states = states_of(&wild), left_out = states_of(&ignore);

	(void)state;
	ks_wild_step(&wild, &states, "docs/", 5, true, &states);
	assert_int_equal(states.count, 0);
	ks_wild_begin(&wild, &states);
	ks_wild_step(&wild, &states, "src/", 4, true, &states);
	assert_true(states.count > 0);
	assert_false(ks_wild_covers(&wild, &states));
	ks_wild_step(&ignore, &left_out, "a/", 2, false, &left_out);
	assert_false(ks_wild_covers(&ignore, &left_out));
	ks_wild_step(&ignore, &left_out, "node_modules", 12, false, &left_out);
	assert_int_equal(ks_wild_match(&ignore, &left_out, true), -1);
	ks_wild_step(&ignore, &left_out, "/", 1, false, &left_out);
	assert_true(ks_wild_covers(&ignore, &left_out));
	free(states.list);
	free(left_out.list);
	ks_wild_free(&wild);
	ks_wild_free(&ignore);
}

static void test_largest_id(void **state)
{
	struct ks_wild wild = { .flags = KS_WILD_BYTES };

	(void)state;
	assert_null(ks_wild_add(&wild, "*.c", 3, 3));
	assert_null(ks_wild_add(&wild, "a*", 2, 7));
	assert_null(ks_wild_add(&wild, "a.c/", 4, 9));
	assert_true(ks_wild_ready(&wild));
	struct ks_wild_states states = states_of(&wild);
	ks_wild_step(&wild, &states, "a.c", 3, false, &states);
	assert_int_equal(ks_wild_match(&wild, &states, false), 7);
	assert_int_equal(ks_wild_match(&wild, &states, true), 9);
	free(states.list);
	ks_wild_free(&wild);
}

static void test_no_blow_up(void **state)
{
	char pattern[400], text[4096];
	const clock_t begin = clock();

	(void)state;
	pattern[0] = '\0';
	for (int i = 0; i < 60; i++)
		(void)strcat(pattern, "a*");
	(void)strcat(pattern, "b");
	memset(text, 'a', 4095);
	text[4095] = '\0';
	assert_false(matches(pattern, text, false));
	pattern[0] = '\0';
	for (int i = 0; i < 40; i++)
		(void)strcat(pattern, "**/a*/");
	(void)strcat(pattern, "b");
	for (int i = 1; i < 4095; i += 2)
		text[i] = '/';
	assert_false(matches(pattern, text, false));
	assert_in_range(clock() - begin, 0, 5 * CLOCKS_PER_SEC); /* sanitizers and valgrind are slow; blow-up is for ever */
}

static void test_characters(void **state)
{
	static const struct {
		const char *text;
		size_t len;
		uint32_t c;
	} chars[] = { { "a", 1, 'a' },
		      { "\xc3\xa9", 2, 0xe9 },
		      { "\xe2\x82\xac", 3, 0x20ac },
		      { "\xf0\x9f\x98\x80", 4, 0x1f600 },
		      { "\xff", 1, KS_NOT_UTF8 + 0xff },
		      { "\xe2\x82", 2, KS_NOT_UTF8 + 0xe2 },
		      { "\xe2\x28\xa1", 1, KS_NOT_UTF8 + 0xe2 },
		      { "\xed\xa0\x80", 1, KS_NOT_UTF8 + 0xed },
		      { "\xc0\x80", 1, KS_NOT_UTF8 + 0xc0 },
		      { "\xf4\x90\x80\x80", 1, KS_NOT_UTF8 + 0xf4 } };
	uint32_t c;

	(void)state;
	for (size_t i = 0; i < KS_COUNT(chars); i++) {
		assert_int_equal(ks_char_at(chars[i].text, strlen(chars[i].text), &c), chars[i].len);
		assert_int_equal(c, chars[i].c);
	}
	assert_int_equal(ks_char_count("a\xc3\xa9\xe2\x82z", 6), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),	   cmocka_unit_test(test_hidden),     cmocka_unit_test(test_bad_patterns),
		cmocka_unit_test(test_too_large), cmocka_unit_test(test_pruning),    cmocka_unit_test(test_largest_id),
		cmocka_unit_test(test_no_blow_up), cmocka_unit_test(test_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
