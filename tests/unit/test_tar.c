/* test_tar.c: worker/jobs/tar.h: what is written is read again; the rules for links; the table of names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "worker/jobs/links.h"
#include "worker/jobs/seen.h"
#include "worker/jobs/tar.h"
#include "worker/jobs/tar_header.h"

struct memory {
	const char *at;
	size_t left;
};

static ssize_t read_memory(void *arg, void *buf, size_t len, struct ks_error *err)
{
	struct memory *memory = arg;
	const size_t n = len < memory->left ? len : memory->left;

	(void)err;
	memcpy(buf, memory->at, n);
	memory->at += n;
	memory->left -= n;
	return (ssize_t)n;
}

static void check_same(const struct ks_tar_entry *entry)
{
	struct ks_buf out = { 0 };
	struct ks_tar_reader reader = { 0 };
	struct ks_tar_entry got;
	struct ks_error err;
	char content[64];
	int64_t offset = -1, total = 0;
	ssize_t n;

	ks_tar_write(&out, entry);
	for (int64_t i = 0; i < entry->content; i++)
		ks_buf_char(&out, (char)('a' + i % 26));
	for (size_t i = 0; i < ks_tar_padding(entry->content) + KS_TAR_END; i++)
		ks_buf_char(&out, '\0');
	assert_int_equal(out.len % KS_TAR_BLOCK, 0);
	struct memory memory = { out.data, out.len };
	reader.source = (struct ks_tar_source){ read_memory, &memory };
	assert_int_equal(ks_tar_next(&reader, &got, &err), 1);
	assert_string_equal(got.path, entry->path);
	assert_int_equal(got.type, entry->type);
	assert_int_equal(got.size, entry->size);
	assert_int_equal(got.content, entry->content);
	assert_int_equal(got.mode, entry->mode);
	assert_int_equal(got.mtime.tv_sec, entry->mtime.tv_sec);
	assert_int_equal(got.mtime.tv_nsec, entry->mtime.tv_nsec);
	assert_int_equal(got.extent_count, entry->extent_count);
	if (entry->target)
		assert_string_equal(got.target, entry->target);
	while ((n = ks_tar_content(&reader, &got, content, 7, &offset, &err)) > 0) {
		assert_int_equal(content[0], 'a' + total % 26);
		total += n;
	}
	assert_int_equal(n, 0);
	assert_int_equal(total, entry->content);
	assert_int_equal(ks_tar_next(&reader, &got, &err), 0);
	ks_tar_reader_free(&reader);
	ks_buf_free(&out);
}

static void test_there_and_back(void **state)
{
	char name[300];
	const struct ks_extent extents[] = { { 0, 5 }, { 5, 0 }, { 1000, 20 }, { 5000, 0 } };
	static const struct timespec times[] = { { 0, 0 },  { 5, 7 },  { -1, 500000000 },
						 { -2, 0 }, { -2, 1 }, { INT64_C(1) << 35, 999999999 } };

	(void)state;
	for (size_t len = 1; len < sizeof(name); len++) { /* over every border of the header and of the record's own length */
		memset(name, 'n', len);
		name[len] = '\0';
		check_same(&(struct ks_tar_entry){ .type = KS_TAR_FILE, .path = name, .size = 3, .content = 3, .mode = 0644 });
		check_same(&(struct ks_tar_entry){ .type = KS_TAR_SYMLINK, .path = "l", .target = name, .mode = 0777 });
	}
	for (size_t i = 0; i < KS_COUNT(times); i++)
		check_same(&(struct ks_tar_entry){ .type = KS_TAR_DIRECTORY, .path = "d\xff", .mode = 0700, .mtime = times[i] });
	check_same(&(struct ks_tar_entry){ .type = KS_TAR_HARDLINK, .path = "e\xcc\x81", .target = "\xc3\xa9", .mode = 0600 });
	check_same(&(struct ks_tar_entry){ .type = KS_TAR_FILE, .path = "sparse", .size = 5000, .content = 25, .mode = 0600,
					   .extents = extents, .extent_count = 4 });
}

static void test_numbers(void **state)
{
	static const struct {
		const char *field;
		size_t len;
		int rc;
		int64_t value;
	} rows[] = {
		{ "0000644\0", 8, 0, 0644 }, { "    644 ", 8, 0, 0644 }, { "\0\0\0\0\0\0\0\0", 8, 0, 0 }, { "77777777", 8, 0, 077777777 },
		{ "777777777777", 12, 0, 0777777777777 }, { "0000648\0", 8, -1, 0 }, { "644\0x   ", 8, -1, 0 }, { "-000001\0", 8, -1, 0 },
		{ "6 44    ", 8, -1, 0 }, { "\x80\0\0\0\0\0\1\0", 8, 0, 256 }, { "\xff\xff\xff\xff\xff\xff\xff\xfe", 8, 0, -2 },
		{ "\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff", 12, 0, INT64_MAX }, { "\x80\0\0\0\x80\0\0\0\0\0\0\0", 12, -1, 0 },
		{ "\x80\1\0\0\0\0\0\0\0\0\0\0", 12, -1, 0 }, { "\x81\0\0\0\0\0\0\0", 8, -1, 0 },
	};
	int64_t value;

	(void)state;
	for (size_t i = 0; i < KS_COUNT(rows); i++) {
		assert_int_equal(ks_tar_number(rows[i].field, rows[i].len, &value), rows[i].rc);
		if (rows[i].rc == 0)
			assert_int_equal(value, rows[i].value);
	}
}

static void test_links(void **state)
{
	static const struct {
		const char *path, *target;
		bool inside;
	} rows[] = {
		{ "l", "a", true },
		{ "l", "./a/./b//c", true },
		{ "l", ".", true },
		{ "d/l", "..", true },
		{ "d/l", "../a", true },
		{ "a/b/l", "../../c", true },
		{ "l", "..", false },
		{ "d/l", "../..", false },
		{ "a/b/l", "../../../c", false },
		{ "l", "/a", false },
		{ "l", "", false },
		{ "a/b/l", "c/../d", false },
		{ "a/b/l", "./../d", true },
		{ "a/b/l", "../c/..", false },
		{ "l", "...", true },
		{ "l", "a..", true },
	};

	(void)state;
	for (size_t i = 0; i < KS_COUNT(rows); i++)
		assert_int_equal(ks_link_stays_inside(rows[i].path, rows[i].target), rows[i].inside);
}

static void test_seen(void **state)
{
	struct ks_seen seen;
	char name[16];

	(void)state;
	assert_int_equal(ks_seen_init(&seen), 0);
	assert_int_equal(ks_seen_find(&seen, "a", 1), KS_SEEN_NOTHING);
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 5000; i++) {
			(void)snprintf(name, sizeof(name), "%d", i);
			assert_true(ks_seen_put(&seen, name, strlen(name), round ? KS_SEEN_DIRECTORY : KS_SEEN_FILE));
			assert_int_equal(ks_seen_index(&seen, name, strlen(name)), i);
		}
	assert_int_equal(seen.count, 5000);
	assert_int_equal(ks_seen_find(&seen, "4999", 4), KS_SEEN_DIRECTORY);
	assert_int_equal(ks_seen_find(&seen, "4999", 3), KS_SEEN_DIRECTORY);
	assert_int_equal(ks_seen_find(&seen, "5000", 4), KS_SEEN_NOTHING);
	ks_seen_free(&seen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_and_back),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_links),
		cmocka_unit_test(test_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
