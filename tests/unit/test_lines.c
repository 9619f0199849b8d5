/* test_lines.c: rpc/lines cuts at LF only, whatever the pieces it is fed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "rpc/lines.h"

/* What came out, as text: lines in brackets, "!" for one that was too long. */
struct sink {
	struct ks_buf seen;
	size_t longest;
};

static void on_line(void *arg, const char *line, size_t len)
{
	struct sink *sink = arg;

	ks_buf_char(&sink->seen, '[');
	ks_buf_add(&sink->seen, line, len);
	ks_buf_char(&sink->seen, ']');
	sink->longest = len > sink->longest ? len : sink->longest;
}

static void on_too_long(void *arg)
{
	struct sink *sink = arg;

	ks_buf_char(&sink->seen, '!');
}

static struct ks_lines new_lines(struct sink *sink, size_t max)
{
	return (struct ks_lines){ .max = max, .line = on_line, .too_long = on_too_long, .arg = sink };
}

static void assert_seen(struct sink *sink, const char *want)
{
	ks_buf_char(&sink->seen, '\0');
	assert_string_equal(sink->seen.data, want);
	ks_buf_free(&sink->seen);
}

/* The same stream in pieces of every size from 1 byte to all of it. */
static void every_split(const char *input, size_t max, const char *want)
{
	size_t len = strlen(input);

	for (size_t piece = 1; piece <= len; piece++) {
		struct sink sink = { 0 };
		struct ks_lines lines = new_lines(&sink, max);
		for (size_t at = 0; at < len; at += piece)
			ks_lines_feed(&lines, input + at, len - at < piece ? len - at : piece);
		ks_lines_end(&lines);
		assert_seen(&sink, want);
	}
}

static void test_line_ends(void **state)
{
	(void)state;
	every_split("a\nbc\n", 8, "[a][bc]");
	every_split("a\r\nbc\r\n", 8, "[a][bc]");
	every_split("\n\r\n\na\n\n\r\n", 8, "[a]");
	every_split("a\r\r\n", 8, "[a\r]"); /* one CR only */
	every_split("a\rb\n", 8, "[a\rb]");
	every_split("no end", 8, "[no end]");
	every_split("x\nno end\r", 8, "[x][no end]");
	/* What other line readers take for a line's end: VT, FF, FS, NEL, LS, PS. */
	every_split("a\vb\fc\x1c"
		    "d\xc2\x85"
		    "e\xe2\x80\xa8"
		    "f\xe2\x80\xa9g\n",
		    64,
		    "[a\vb\fc\x1c"
		    "d\xc2\x85"
		    "e\xe2\x80\xa8"
		    "f\xe2\x80\xa9g]");
}

static void test_length_at_below_and_above(void **state)
{
	(void)state;
	every_split("1234567\n", 8, "[1234567]");
	every_split("12345678\n", 8, "[12345678]");
	every_split("12345678\r\n", 8, "[12345678]");
	every_split("12345678", 8, "[12345678]");
	every_split("123456789\nok\n", 8, "![ok]");
	every_split("123456789\r\nok\n", 8, "![ok]");
	every_split("12345678\r\r\nok\n", 8, "![ok]");
	every_split("12345678\rX\nok\n", 8, "![ok]");
	every_split("ab\n123456789012345678901234567890\nok\n1234567890\n", 8, "[ab]![ok]!");
	every_split("123456789", 8, "!"); /* reported before its end is known */
	every_split("123456789\n\nok", 8, "![ok]");
}

static void test_too_long_is_reported_at_once(void **state)
{
	(void)state;
	struct sink sink = { 0 };
	struct ks_lines lines = new_lines(&sink, 8);

	ks_lines_feed(&lines, "12345678", 8);
	assert_int_equal(sink.seen.len, 0);
	ks_lines_feed(&lines, "9", 1);
	assert_int_equal(sink.seen.len, 1);
	ks_lines_feed(&lines, "still the same line", 19);
	assert_int_equal(lines.held.len, 0);
	ks_lines_feed(&lines, "\nok\n", 4);
	ks_lines_end(&lines);
	assert_seen(&sink, "![ok]");
}

static void test_200_lines_in_one_piece(void **state)
{
	(void)state;
	struct sink sink = { 0 };
	struct ks_lines lines = new_lines(&sink, 64);
	struct ks_buf input = { 0 }, want = { 0 };

	for (int i = 0; i < 200; i++) {
		ks_buf_printf(&input, "{\"line\":%d}\n", i);
		ks_buf_printf(&want, "[{\"line\":%d}]", i);
	}
	ks_lines_feed(&lines, input.data, input.len);
	assert_int_equal(lines.held.cap, 0); /* whole lines are not copied */
	ks_buf_char(&want, '\0');
	assert_seen(&sink, want.data);
	ks_buf_free(&input);
	ks_buf_free(&want);
	ks_lines_end(&lines);
}

/* 8 MiB as in the program: exactly the cap passes, in two pieces, and the memory comes back. */
static void test_big_line_gives_its_memory_back(void **state)
{
	(void)state;
	struct sink sink = { 0 };
	size_t max = (size_t)8 << 20;
	struct ks_lines lines = new_lines(&sink, max);
	char *big = malloc(max + 1);

	assert_non_null(big);
	memset(big, 'x', max + 1);
	ks_lines_feed(&lines, big, max / 2);
	ks_lines_feed(&lines, big, max / 2);
	assert_true(lines.held.cap >= max);
	ks_lines_feed(&lines, "\n", 1);
	assert_int_equal(sink.longest, max);
	assert_int_equal(lines.held.cap, 0);
	ks_buf_clear(&sink.seen);
	ks_lines_feed(&lines, big, max + 1);
	ks_lines_feed(&lines, "\nsmall", 6);
	assert_int_equal(lines.held.len, 5);
	assert_true(lines.held.cap <= 65536);
	ks_lines_end(&lines);
	assert_seen(&sink, "![small]");
	free(big);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_line_ends),
		cmocka_unit_test(test_length_at_below_and_above),
		cmocka_unit_test(test_too_long_is_reported_at_once),
		cmocka_unit_test(test_200_lines_in_one_piece),
		cmocka_unit_test(test_big_line_gives_its_memory_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
