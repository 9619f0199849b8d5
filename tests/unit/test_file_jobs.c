/* The pure parts of the file jobs: replacements in a text, pages of names, cursors, ranges of lines; and the etag. */
#include "memcheck.h"
#include "scratch.h"

#include "worker/jobs/edit_text.h"
#include "worker/jobs/etag.h"
#include "worker/jobs/line_range.h"
#include "worker/jobs/page.h"

/* ---- edit_text ---- */

static struct ks_text_edit edit(const char *old_text, const char *new_text, bool all)
{
	return (struct ks_text_edit){ old_text, new_text, strlen(old_text), strlen(new_text), all };
}

static void test_edit(void **unused)
{
	static const struct {
		const char *text, *old_text, *new_text;
		bool all;
		const char *wanted; /* NULL: an empty text */
		int64_t done;
	} cases[] = {
		{ "a b c", "b", "x", false, "a x c", 1 },
		{ "a b c", "a b c", "", false, NULL, 1 },
		{ "aaa", "a", "bb", true, "bbbbbb", 3 },
		{ "aaa", "aa", "b", true, "ba", 1 },
		{ "abab", "ab", "", true, NULL, 2 },
		/* line ends of the file are kept, whatever the request has */
		{ "a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", false, "x\r\ny\r\nz\r\nc\r\n", 1 },
		{ "a\r\nb\r\n", "a\r\nb", "x\r\ny", false, "x\r\ny\r\n", 1 },
		{ "a\nb\n", "a\r\nb", "x\r\ny", false, "x\ny\n", 1 },
		{ "a\r\nb\r\n", "a", "1\n2", false, "1\r\n2\r\nb\r\n", 1 },
		{ "a\nb", "b", "1\r\n2", false, "a\n1\n2", 1 },
		{ "a\r\nb\r\n", "\nb", "", false, "a\r\n", 1 },
		{ "a\r\nb\r\n", "b\n", "", false, "a\r\n", 1 },
		{ "a\r\nb\r\nc", "\n", ";", true, "a;b;c", 2 },
		/* mixed: what is replaced decides */
		{ "a\r\nb\nc\n", "b\nc", "1\n2", false, "a\r\n1\n2\n", 1 },
		{ "a\nb\r\nc\r\n", "b\nc", "1\n2", false, "a\n1\r\n2\r\n", 1 },
		{ "a\rb", "\r", "-", false, "a-b", 1 },
		/* a byte order mark stays in front */
		{ "\xef\xbb\xbf" "a", "a", "b", false, "\xef\xbb\xbf" "b", 1 },
		{ "\xef\xbb\xbf" "a", "\xef\xbb\xbf" "a", "\xef\xbb\xbf" "b", false, "\xef\xbb\xbf" "b", 1 },
		{ "\xef\xbb\xbf" "a", "\xef\xbb\xbf" "a", "b", false, "\xef\xbb\xbf" "b", 1 },
		/* invalid UTF-8 around is not touched */
		{ "\xff\xfe\x80x\xc3", "x", "y", false, "\xff\xfe\x80y\xc3", 1 },
	};

	(void)unused;
	for (size_t i = 0; i < KS_COUNT(cases); i++) {
		KS_AUTOBUF struct ks_buf text = { 0 };
		struct ks_text_edit one = edit(cases[i].old_text, cases[i].new_text, cases[i].all);
		const char *wanted = cases[i].wanted ? cases[i].wanted : "";
		struct ks_error err;
		int64_t done = 0;
		ks_buf_str(&text, cases[i].text);
		assert_int_equal(ks_edit_text(&text, &one, 1, 1000, &done, &err), 0);
		assert_int_equal(done, cases[i].done);
		assert_int_equal(text.len, strlen(wanted));
		assert_memory_equal(text.data ? text.data : "", wanted, text.len);
	}
}

static void check_refused(const char *content, const struct ks_text_edit *edits, size_t count, enum ks_reason reason,
			  const char *pointer, const char *says)
{
	KS_AUTOBUF struct ks_buf text = { 0 };
	struct ks_error err;
	int64_t done[8];

	ks_buf_str(&text, content);
	assert_int_equal(ks_edit_text(&text, edits, count, 1000, done, &err), -1);
	assert_int_equal(err.reason, reason);
	assert_string_equal(err.pointer, pointer);
	if (!strstr(err.text, says) && !strstr(err.hint, says))
		fail_msg("\"%s\" is neither in \"%s\" nor in \"%s\"", says, err.text, err.hint);
}

static void test_edit_refused(void **unused)
{
	const struct ks_text_edit none[] = { edit("zz", "y", false) };
	const struct ks_text_edit later[] = { edit("a", "b", false), edit("a", "c", false) };
	const struct ks_text_edit twice[] = { edit("x", "y", false) };
	const struct ks_text_edit overlapping[] = { edit("aa", "b", false) };
	const struct ks_text_edit near[] = { edit("\n  first line\n\tsecond", "", false) };
	const struct ks_text_edit html[] = { edit("a &amp;&amp; b", "", false) };
	const struct ks_text_edit mixed[] = { edit("a\nb", "", false) };
	char large[1000];
	const struct ks_text_edit grows[] = { { "x", large, 1, sizeof(large), false } };

	(void)unused;
	memset(large, 'y', sizeof(large));
	check_refused("abc", none, 1, KS_E_EDIT_NO_MATCH, "/edits/0/oldText", "nowhere");
	check_refused("", none, 1, KS_E_EDIT_NO_MATCH, "/edits/0/oldText", "nowhere");
	check_refused("a", later, 2, KS_E_EDIT_NO_MATCH, "/edits/1/oldText", "edits before");
	check_refused("x\n\nx x\nx\nx\nx\nx", twice, 1, KS_E_EDIT_NOT_UNIQUE, "/edits/0/oldText", "7 times, in lines 1, 3, 3, 4, 5, ..");
	check_refused("aaa", overlapping, 1, KS_E_EDIT_NOT_UNIQUE, "/edits/0/oldText", "2 times, in lines 1, 1");
	check_refused("0\n1\nfirst line\nother", near, 1, KS_E_EDIT_NO_MATCH, "/edits/0/oldText", "line 3 ");
	check_refused("a && b", html, 1, KS_E_EDIT_NO_MATCH, "/edits/0/oldText", "HTML");
	check_refused("a\nb a\r\nb", mixed, 1, KS_E_EDIT_NOT_UNIQUE, "/edits/0/oldText", "2 times");
	check_refused("ax", grows, 1, KS_E_TOO_LARGE, "/edits/0/newText", "1000 bytes");
}

/* Places are counted to an end, however many there are and however long each is. */
static void test_edit_of_much_alike(void **unused)
{
	KS_AUTOBUF struct ks_buf text = { 0 };
	const size_t half = under_memcheck() ? 1 << 14 : 1 << 20;
	KS_AUTOFREE char *old_text = malloc(half);
	struct ks_error err;
	int64_t done;

	(void)unused;
	assert_non_null(old_text);
	memset(old_text, 'a', half);
	ks_buf_add(&text, old_text, half);
	ks_buf_add(&text, old_text, half);
	const struct ks_text_edit one = { old_text, "", half, 0, false };
	assert_int_equal(ks_edit_text(&text, &one, 1, 4 * half, &done, &err), -1);
	assert_int_equal(err.reason, KS_E_EDIT_NOT_UNIQUE);
	assert_non_null(strstr(err.text, "at least 1000 times"));
}

/* ---- pages ---- */

/* The keys of a directory in which every name is a file and a directory at once. */
static void check_page(const char *const *names, size_t count, const char *after, size_t most, const char *wanted, bool more)
{
	KS_AUTOBUF struct ks_buf got = { 0 };
	struct ks_page page;

	ks_page_begin(&page, after, most);
	for (size_t i = 0; i < count; i++) {
		ks_page_add(&page, names[i], true);
		ks_page_add(&page, names[i], false);
	}
	ks_page_end(&page);
	for (size_t i = 0; i < page.count; i++)
		ks_buf_printf(&got, "%s ", page.entries[i].key);
	ks_buf_char(&got, '\0');
	assert_string_equal(got.data, wanted);
	assert_int_equal(page.more, more);
	assert_false(page.failed);
	ks_page_free(&page);
	assert_int_equal(page.bytes, 0);
}

static void test_page(void **unused)
{
	static const char *const names[] = { "b", "a", "a.c", "a-b", "\xff", "a", "ab", "B" };
	const size_t n = KS_COUNT(names);

	(void)unused;
	check_page(names, n, "", 100, "B B/ a a-b a-b/ a.c a.c/ a/ ab ab/ b b/ \xff \xff/ ", false);
	check_page(names, n, "a", 4, "a-b a-b/ a.c a.c/ ", true);
	check_page(names, n, "a/", 4, "ab ab/ b b/ ", true);
	check_page(names, n, "a/", 6, "ab ab/ b b/ \xff \xff/ ", false);
	check_page(names, n, "\xff", 1, "\xff/ ", false);
	check_page(names, n, "\xff/", 1, "", false);
	check_page(names, n, "", 1, "B ", true);
	check_page(names, 0, "", 1, "", false);
}

/* The memory is that of two pages, in whatever order the names come. */
static void test_page_of_many(void **unused)
{
	char name[16];

	(void)unused;
	for (int order = 0; order < 3; order++) {
		struct ks_page page;
		ks_page_begin(&page, "", 10);
		for (unsigned i = 0; i < 100000; i++) {
			const unsigned k = order == 0 ? i : order == 1 ? 99999 - i : i * 7919u % 100000;
			(void)snprintf(name, sizeof(name), "%05u", k);
			ks_page_add(&page, name, false);
			assert_true(page.count < 20 && page.cap <= 64);
		}
		ks_page_end(&page);
		assert_int_equal(page.count, 10);
		for (unsigned i = 0; i < 10; i++)
			assert_int_equal(atoi(page.entries[i].key), i);
		assert_true(page.more);
		ks_page_free(&page);
	}
}

static void test_cursor(void **unused)
{
	static const struct {
		const char *cursor;
		size_t len;
		bool recursive;
		const char *path;
	} cases[] = {
		{ "ra/b", 4, true, "a/b" }, { "da", 2, false, "a" },  { "d..a", 4, false, "..a" }, { "r...", 4, true, "..." },
		{ "r", 1, true, NULL },	    { "da", 2, true, NULL },  { "ra", 2, false, NULL },	   { "da/b", 4, false, NULL },
		{ "r/a", 3, true, NULL },   { "ra/", 3, true, NULL }, { "ra//b", 5, true, NULL },  { "r..", 3, true, NULL },
		{ "ra/../b", 7, true, NULL }, { "r.", 2, true, NULL }, { "ra\0b", 4, true, NULL }, { "xa", 2, true, NULL },
	};
	char large[PATH_MAX + 2];

	(void)unused;
	for (size_t i = 0; i < KS_COUNT(cases); i++) {
		const char *path = ks_cursor_path(cases[i].cursor, cases[i].len, cases[i].recursive);
		if (cases[i].path)
			assert_string_equal(path, cases[i].path);
		else
			assert_null(path);
	}
	memset(large, 'a', sizeof(large));
	for (size_t i = 2; i < sizeof(large); i += 2)
		large[i] = '/';
	large[0] = 'r';
	large[PATH_MAX] = '\0';
	assert_non_null(ks_cursor_path(large, PATH_MAX, true));
	large[PATH_MAX] = '/';
	large[PATH_MAX + 1] = '\0';
	assert_null(ks_cursor_path(large, PATH_MAX + 1, true));
	memset(large, 'a', 258);
	large[0] = 'd';
	large[257] = '\0';
	assert_null(ks_cursor_path(large, 257, false)); /* a name of 256 bytes */
}

/* ---- lines ---- */

static void check_lines(const char *text, int64_t start, int64_t count, const char *wanted, int64_t end, int64_t total)
{
	for (size_t piece = 1; piece <= strlen(text) + 1; piece++) {
		KS_AUTOBUF struct ks_buf kept = { 0 };
		struct ks_line_range range = { .start = start, .count = count, .most = 100, .kept = &kept };
		for (size_t at = 0; at < strlen(text); at += piece)
			ks_line_range_feed(&range, text + at, strlen(text) - at < piece ? strlen(text) - at : piece);
		assert_int_equal(kept.len, strlen(wanted));
		assert_memory_equal(kept.data ? kept.data : "", wanted, kept.len);
		assert_int_equal(ks_line_range_end(&range), end);
		assert_int_equal(ks_line_range_seen(&range), total);
		assert_false(range.full);
	}
}

static void test_lines(void **unused)
{
	KS_AUTOBUF struct ks_buf kept = { 0 };
	struct ks_line_range range = { .start = 1, .count = 9, .most = 4, .kept = &kept };

	(void)unused;
	check_lines("", 1, 1, "", 0, 0);
	check_lines("a", 1, 1, "a", 1, 1);
	check_lines("a\n", 1, 1, "a\n", 1, 1);
	check_lines("a\nb", 1, INT64_C(1) << 53, "a\nb", 2, 2);
	check_lines("a\nb\n\nc", 2, 2, "b\n\n", 3, 4);
	check_lines("a\nb\n\nc", 4, 2, "c", 4, 4);
	check_lines("a\nb\n", 3, 1, "", 2, 2);
	check_lines("a\nb\n", INT64_C(1) << 53, INT64_C(1) << 53, "", (INT64_C(1) << 53) - 1, 2);
	check_lines("a\r\nb\r\n", 2, 1, "b\r\n", 2, 2);
	ks_line_range_feed(&range, "ab\ncd\nef", 8);
	assert_true(range.full);
	assert_int_equal(kept.len, 3);
}

/* ---- etag ---- */

static void test_etag(void **unused)
{
	char small[KS_ETAG_TEXT], again[KS_ETAG_TEXT], other[KS_ETAG_TEXT];
	struct scratch s;

	(void)unused;
	scratch_open(&s);
	put(s.fd, "a", "one");
	put(s.fd, "b", "one");
	put(s.fd, "c", "two");
	put_size(s.fd, "large", (off_t)KS_ETAG_CONTENT + 1);
	put_size(s.fd, "edge", (off_t)KS_ETAG_CONTENT);
	int a = openat(s.fd, "a", O_RDONLY), b = openat(s.fd, "b", O_RDONLY), c = openat(s.fd, "c", O_RDONLY);
	int large = openat(s.fd, "large", O_RDWR), edge = openat(s.fd, "edge", O_RDONLY);
	ks_etag_of_bytes("one", 3, small);
	assert_int_equal(ks_etag_of_file(a, again), 0);
	assert_string_equal(small, again);
	assert_int_equal(ks_etag_of_file(b, again), 0);
	assert_string_equal(small, again); /* of the bytes, whatever file they are in */
	assert_int_equal(ks_etag_of_file(c, other), 0);
	assert_string_not_equal(small, other);
	assert_int_equal(strlen(small), KS_ETAG_TEXT - 1);
	assert_int_equal(ks_etag_of_file(edge, again), 0);
	assert_int_equal(again[0], 'b');
	assert_int_equal(ks_etag_of_file(large, again), 0);
	assert_int_equal(again[0], 's');
	(void)usleep(20000); /* ctime is that of the clock tick */
	assert_int_equal(pwrite(large, "x", 1, 5), 1);
	assert_int_equal(ks_etag_of_file(large, other), 0);
	assert_string_not_equal(again, other);
	(void)close(a), (void)close(b), (void)close(c), (void)close(large), (void)close(edge);
	scratch_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_edit),	     cmocka_unit_test(test_edit_refused),
		cmocka_unit_test(test_edit_of_much_alike), cmocka_unit_test(test_page),
		cmocka_unit_test(test_page_of_many), cmocka_unit_test(test_cursor),
		cmocka_unit_test(test_lines),	     cmocka_unit_test(test_etag),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
