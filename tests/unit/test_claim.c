/* test_claim.c: what a command gets to know, packed by one side and read by the other: every count and length at its
 * cap, below and above, and a reader that believes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "box/claim.h"

static const char *const no_words[] = { NULL };

static struct ks_command_spec spec_of(const char *const *argv, const char *const *env)
{
	return (struct ks_command_spec){ .cwd = "/workspace", .argv = argv, .env = env, .join_fd = -1 };
}

/* A copy that is exactly as long as it says, so that a read behind its end is seen by a sanitizer. */
static const char *read_exact(const struct ks_claim *head, const void *body, size_t len, struct ks_claim_view *view,
			      char **ret_copy)
{
	*ret_copy = malloc(len ? len : 1);
	assert_non_null(*ret_copy);
	memcpy(*ret_copy, body, len);
	return ks_claim_read(head, *ret_copy, view);
}

static void assert_read(const struct ks_claim *head, const void *body, size_t len, const char *want)
{
	struct ks_claim_view view = { 0 };
	char *copy;
	const char *damage = read_exact(head, body, len, &view, &copy);

	if (want)
		assert_string_equal(damage, want);
	else
		assert_null(damage);
	free(copy);
}

/* ---- both together ---- */

static void test_round_trip(void **state)
{
	(void)state;
	const char *argv[] = { "/usr/bin/env", "", "a b\n", NULL }, *env[] = { "A=", "B=\xff\x01", NULL };
	const struct ks_command_file files[] = {
		{ "main.py", "print(1)\n", 9, 0644 }, { "empty", NULL, 0, 0600 }, { "..x", "\0\0", 2, 0755 },
	};
	struct ks_command_spec spec = spec_of(argv, env);
	struct ks_claim head = { .flags = KS_CLAIM_RESULT, .nofile = 7 };
	struct ks_claim_view view;
	struct ks_command_file file;
	struct ks_error err;
	KS_AUTOBUF struct ks_buf body = { 0 };
	char *copy;

	spec.files = files;
	spec.nfiles = 3;
	assert_int_equal(ks_claim_pack(&spec, &head, &body, &err), 0);
	assert_int_equal(head.argc, 3);
	assert_int_equal(head.envc, 2);
	assert_int_equal(head.nfiles, 3);
	assert_int_equal(head.length, body.len);
	/* 11 + 13 + 1 + 5 + 3 + 5, then the records of 12 bytes with names 8, 6, 4 and contents 9, 0, 2 */
	assert_int_equal(body.len, 38 + 3 * 12 + 18 + 11);
	assert_int_equal(head.flags, KS_CLAIM_RESULT);
	assert_int_equal(head.nofile, 7);

	assert_null(read_exact(&head, body.data, body.len, &view, &copy));
	assert_string_equal(view.cwd, "/workspace");
	for (int i = 0; i < 3; i++)
		assert_string_equal(view.words[i], argv[i]);
	assert_null(view.words[3]);
	for (int i = 0; i < 2; i++)
		assert_string_equal(view.words[4 + i], env[i]);
	assert_null(view.words[6]);
	for (int i = 0; i < 3; i++) {
		assert_true(ks_claim_next_file(&view, &file));
		assert_string_equal(file.name, files[i].name);
		assert_int_equal(file.len, files[i].len);
		assert_int_equal(file.mode, files[i].mode);
		if (file.len > 0)
			assert_memory_equal(file.data, files[i].data, file.len);
	}
	assert_false(ks_claim_next_file(&view, &file));
	assert_false(ks_claim_next_file(&view, &file));
	free(copy);
}

static void test_nothing_but_a_program(void **state)
{
	(void)state;
	const char *argv[] = { "true", NULL };
	struct ks_command_spec spec = spec_of(argv, no_words);
	struct ks_claim head = { 0 };
	struct ks_claim_view view;
	struct ks_command_file file;
	struct ks_error err;
	KS_AUTOBUF struct ks_buf body = { 0 };
	char *copy;

	spec.cwd = "";
	assert_int_equal(ks_claim_pack(&spec, &head, &body, &err), 0);
	assert_int_equal(body.len, 6);
	assert_memory_equal(body.data, "\0true", 6);
	assert_null(read_exact(&head, body.data, body.len, &view, &copy));
	assert_string_equal(view.cwd, "");
	assert_string_equal(view.words[0], "true");
	assert_null(view.words[1]);
	assert_null(view.words[2]);
	assert_false(ks_claim_next_file(&view, &file));
	free(copy);
}

/* ---- caps ---- */

static const char **many(size_t count)
{
	const char **words = calloc(count + 1, sizeof(*words));

	assert_non_null(words);
	for (size_t i = 0; i < count; i++)
		words[i] = "w";
	return words;
}

static void check_words(size_t argc, size_t envc, int want)
{
	const char **argv = many(argc), **env = many(envc);
	struct ks_command_spec spec = spec_of(argv, env);
	struct ks_claim head = { 0 };
	struct ks_error err = { 0 };
	KS_AUTOBUF struct ks_buf body = { 0 };

	assert_int_equal(ks_claim_pack(&spec, &head, &body, &err), want);
	if (want == 0) {
		assert_int_equal(head.argc, argc);
		assert_int_equal(head.envc, envc);
		assert_read(&head, body.data, body.len, NULL);
	} else {
		assert_int_equal(err.reason, KS_E_TOO_LARGE);
		assert_string_equal(err.text, "arguments, environment and code are too large together");
		assert_int_equal(body.len, 0);
		assert_int_equal(head.argc + head.envc + head.length, 0);
	}
	free(argv);
	free(env);
}

static void test_words_cap(void **state)
{
	(void)state;
	check_words(KS_CLAIM_WORDS - 1, 0, 0);
	check_words(KS_CLAIM_WORDS, 0, 0);
	check_words(KS_CLAIM_WORDS + 1, 0, -1);
	check_words(2 * KS_CLAIM_WORDS, 0, -1);
	check_words(1, KS_CLAIM_WORDS - 2, 0);
	check_words(1, KS_CLAIM_WORDS - 1, 0);
	check_words(1, KS_CLAIM_WORDS, -1);
	check_words(KS_CLAIM_WORDS / 2, KS_CLAIM_WORDS / 2, 0);
	check_words(KS_CLAIM_WORDS / 2, KS_CLAIM_WORDS / 2 + 1, -1);
	check_words(KS_CLAIM_WORDS, 2 * KS_CLAIM_WORDS, -1);
}

/* One file that fills the claim up to `total` bytes. */
static void check_total(size_t total, size_t nfiles, int want)
{
	const char *argv[] = { "true", NULL };
	const size_t around = 11 + 5 + nfiles * (12 + 2), len = (total - around) / nfiles;
	struct ks_command_spec spec = spec_of(argv, no_words);
	struct ks_command_file files[2];
	struct ks_claim head = { 0 };
	struct ks_error err = { 0 };
	KS_AUTOBUF struct ks_buf body = { 0 };
	char *data = calloc(1, len);

	assert_non_null(data);
	assert_int_equal(around + len * nfiles, total);
	files[0] = files[1] = (struct ks_command_file){ "f", data, len, 0600 };
	spec.files = files;
	spec.nfiles = nfiles;
	assert_int_equal(ks_claim_pack(&spec, &head, &body, &err), want);
	assert_int_equal(body.len, want == 0 ? total : 0);
	assert_int_equal(head.length, body.len);
	if (want == 0)
		assert_read(&head, body.data, body.len, NULL);
	else
		assert_int_equal(err.reason, KS_E_TOO_LARGE);
	free(data);
}

static void test_length_cap(void **state)
{
	(void)state;
	check_total(KS_CLAIM_MAX - 1, 1, 0);
	check_total(KS_CLAIM_MAX, 1, 0);
	check_total(KS_CLAIM_MAX + 1, 1, -1);
	check_total(KS_CLAIM_MAX, 2, 0);
	check_total(KS_CLAIM_MAX + 2, 2, -1);
	check_total(2 * KS_CLAIM_MAX + 12, 2, -1);
}

/* A length that a 32-bit record cannot hold is refused before a byte of it is looked at. */
static void test_length_beyond_32_bits(void **state)
{
	(void)state;
	const char *argv[] = { "true", NULL };
	const struct ks_command_file file = { "f", "x", ((size_t)1 << 32) + 1, 0600 };
	struct ks_command_spec spec = spec_of(argv, no_words);
	struct ks_claim head = { 0 };
	struct ks_error err = { 0 };
	KS_AUTOBUF struct ks_buf body = { 0 };

	spec.files = &file;
	spec.nfiles = 1;
	assert_int_equal(ks_claim_pack(&spec, &head, &body, &err), -1);
	assert_int_equal(err.reason, KS_E_TOO_LARGE);
	assert_int_equal(body.len, 0);
}

/* ---- a reader that believes nothing ---- */

static void test_counts(void **state)
{
	(void)state;
	static const struct {
		uint32_t argc, envc;
		const char *want;
	} cases[] = {
		{ 0, 0, "counts" },
		{ 0, 1, "counts" },
		{ 1, 0, NULL },
		{ 1, 1, "words" }, /* there is one word less */
		{ 2, 0, "words" },
		{ KS_CLAIM_WORDS, 0, "words" },
		{ KS_CLAIM_WORDS + 1, 0, "counts" },
		{ 1, KS_CLAIM_WORDS, "counts" },
		{ UINT32_MAX, 0, "counts" },
		{ UINT32_MAX, 2, "counts" }, /* the sum is 1 */
		{ 1, UINT32_MAX, "counts" }, /* the sum is 0 */
		{ 0x80000000u, 0x80000001u, "counts" },
	};

	for (size_t i = 0; i < KS_COUNT(cases); i++) {
		struct ks_claim head = { .argc = cases[i].argc, .envc = cases[i].envc, .length = 7 };
		assert_read(&head, "/\0true", 7, cases[i].want);
	}
}

static void test_every_cut(void **state)
{
	(void)state;
	const char *argv[] = { "sh", "-c", NULL }, *env[] = { "A=1", NULL };
	const struct ks_command_file files[] = { { "a", "xy", 2, 0644 }, { "b", "", 0, 0644 } };
	struct ks_command_spec spec = spec_of(argv, env);
	struct ks_claim head = { 0 };
	struct ks_error err;
	KS_AUTOBUF struct ks_buf body = { 0 };

	spec.files = files;
	spec.nfiles = 2;
	assert_int_equal(ks_claim_pack(&spec, &head, &body, &err), 0);
	assert_int_equal(body.len, 11 + 3 + 3 + 4 + 16 + 14);
	for (uint32_t len = 0; len < body.len; len++) {
		struct ks_claim cut = head;
		cut.length = len;
		assert_read(&cut, body.data, len, len < 21 ? "words" : "files");
	}
	/* and one byte too many */
	ks_buf_char(&body, '\0');
	head.length++;
	assert_read(&head, body.data, body.len, "files");
	head.nfiles++;
	assert_read(&head, body.data, body.len, "files");
}

static void test_length_of_the_head(void **state)
{
	(void)state;
	struct ks_claim head = { .argc = 1, .length = KS_CLAIM_MAX + 1 };
	struct ks_claim_view view;

	assert_string_equal(ks_claim_read(&head, "", &view), "length");
	head.length = UINT32_MAX;
	assert_string_equal(ks_claim_read(&head, "", &view), "length");
	head.length = 0;
	assert_string_equal(ks_claim_read(&head, "", &view), "words");
}

static void check_file(uint32_t name_len, const void *name, size_t len, uint32_t content, const char *want)
{
	struct ks_claim head = { .argc = 1, .nfiles = 1 };
	const struct ks_claim_file record = { name_len, 0600, content };
	KS_AUTOBUF struct ks_buf body = { 0 };

	ks_buf_add(&body, "/\0true", 7);
	ks_buf_add(&body, &record, sizeof(record));
	ks_buf_add(&body, name, len);
	head.length = (uint32_t)body.len;
	assert_read(&head, body.data, body.len, want);
}

static void test_file_records(void **state)
{
	(void)state;
	char name[258];

	memset(name, 'n', sizeof(name));
	check_file(2, "f", 2, 0, NULL);
	check_file(2, "f\0xy", 4, 2, NULL);
	check_file(2, "f\0xy", 4, 1, "files");	/* a byte is left over */
	check_file(2, "f\0xy", 4, 3, "files");	/* a byte is missing */
	check_file(1, "f", 1, 0, "files");	/* no NUL */
	check_file(2, "fx", 2, 0, "files");
	check_file(3, "f\0", 3, 0, "files");	/* one too early */
	check_file(0, "", 0, 0, "files");
	check_file(1, "", 1, 0, "files");	/* an empty name */
	check_file(2, ".", 2, 0, "files");
	check_file(3, "..", 3, 0, "files");
	check_file(4, "...", 4, 0, NULL);
	check_file(4, "a/b", 4, 0, "files");
	check_file(3, "/a", 3, 0, "files");
	check_file(3, "a/", 3, 0, "files");
	check_file(2, "\n", 2, 0, NULL);
	check_file(UINT32_MAX, "f", 2, 0, "files");
	check_file(2, "f", 2, UINT32_MAX, "files");
	check_file(UINT32_MAX, "f", 2, UINT32_MAX, "files");
	check_file(2, "f", 2, UINT32_MAX - 1, "files"); /* the sum is 0 in 32 bits */
	name[254] = '\0';
	check_file(255, name, 255, 0, NULL);
	name[254] = 'n', name[255] = '\0';
	check_file(256, name, 256, 0, NULL); /* 255 bytes, as NAME_MAX */
	name[255] = 'n', name[256] = '\0';
	check_file(257, name, 257, 0, "files");
}

static void test_more_files_than_there_are(void **state)
{
	(void)state;
	struct ks_claim head = { .argc = 1, .nfiles = UINT32_MAX, .length = 7 };

	assert_read(&head, "/\0true", 7, "files");
	head.nfiles = 1;
	assert_read(&head, "/\0true", 7, "files");
	head.nfiles = 0;
	assert_read(&head, "/\0true", 7, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_nothing_but_a_program),
		cmocka_unit_test(test_words_cap),
		cmocka_unit_test(test_length_cap),
		cmocka_unit_test(test_length_beyond_32_bits),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_every_cut),
		cmocka_unit_test(test_length_of_the_head),
		cmocka_unit_test(test_file_records),
		cmocka_unit_test(test_more_files_than_there_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
