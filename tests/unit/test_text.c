/* test_text.c: how bytes travel in a result, and what becomes a blob when the line is full. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memcheck.h"
#include "proto/write.h"
#include "session/text.h"

static struct ks_blobs *blobs;

static int set_up(void **state)
{
	struct ks_error err;

	(void)state;
	return ks_blobs_new(1 << 20, &blobs, &err);
}

static int tear_down(void **state)
{
	(void)state;
	ks_blobs_free(blobs);
	return 0;
}

static struct ks_text_item item_of(char *data, size_t len, int encoding)
{
	return (struct ks_text_item){ .data = data, .len = len, .encoding = encoding };
}

static void check_inline(const char *data, size_t len, int encoding, const char *want)
{
	struct ks_buf json = { 0 };
	struct ks_error err;
	char *copy = malloc(len + 1);

	assert_non_null(copy);
	memcpy(copy, data, len);
	struct ks_text_item item = item_of(copy, len, encoding);
	item.owned = true;
	size_t planned = ks_text_plan(&item, 1, 1000);
	assert_int_equal(planned, strlen(want));
	assert_int_equal(item.size, strlen(want));
	assert_int_equal(ks_text_write(&json, &item, blobs, NULL, &err), 0);
	ks_buf_char(&json, '\0');
	assert_string_equal(json.data, want);
	assert_null(item.data);
	ks_buf_free(&json);
}

static void test_inline_forms(void **state)
{
	(void)state;
	check_inline("", 0, KS_ENCODING_UTF8, "\"\"");
	check_inline("hi\n\"\xe2\x82\xac", 7, KS_ENCODING_UTF8, "\"hi\\n\\\"\xe2\x82\xac\"");
	check_inline("a\xff" "b", 3, KS_ENCODING_UTF8, "\"a\xef\xbf\xbd" "b\"");
	check_inline("a\xff" "b", 3, KS_ENCODING_AUTO, "{\"base64\":\"Yf9i\"}");
	check_inline("ab", 2, KS_ENCODING_AUTO, "\"ab\"");
	check_inline("ab", 2, KS_ENCODING_BASE64, "{\"base64\":\"YWI=\"}");
	check_inline("", 0, KS_ENCODING_BASE64, "{\"base64\":\"\"}");
	check_inline("a\0b", 3, KS_ENCODING_UTF8, "\"a\\u0000b\"");
}

static void test_blob_form(void **state)
{
	(void)state;
	struct ks_buf json = { 0 };
	struct ks_error err;
	char *data = malloc(300), want[400], id[KS_BLOB_ID_BYTES + 1];

	assert_non_null(data);
	memset(data, 'x', 300);
	struct ks_text_item item = item_of(data, 300, KS_ENCODING_UTF8);
	item.owned = true;
	size_t planned = ks_text_plan(&item, 1, 301); /* 302 as a string */
	assert_int_equal(item.form, KS_FORM_BLOB);
	assert_int_equal(ks_text_write(&json, &item, blobs, NULL, &err), 0);
	ks_buf_char(&json, '\0');
	assert_true(json.len - 1 <= planned);
	assert_memory_equal(json.data, "{\"blob\":{\"id\":\"", 15);
	memcpy(id, json.data + 15, KS_BLOB_ID_BYTES);
	id[KS_BLOB_ID_BYTES] = '\0';
	/* sha256sum of 300 times x */
	(void)snprintf(want, sizeof(want),
		       "{\"blob\":{\"id\":\"%s\",\"bytes\":300,\"sha256\":\"%s\",\"mime\":\"text/plain; charset=utf-8\"}}", id,
		       "0d4e2ca9e9cbced7a7a5380eb29e1a3783b9b6d0db72de36a1051038e1c1fbc7");
	assert_string_equal(json.data, want);
	struct ks_blob *blob;
	assert_int_equal(ks_blob_find(blobs, id, &blob, &err), 0);
	assert_ptr_equal(ks_blob_data(blob), data); /* taken, not copied */
	ks_buf_free(&json);
}

static void test_mime_of_blobs(void **state)
{
	(void)state;
	static char bytes[300] = { (char)0xff }, object[302] = "[";
	struct ks_buf json = { 0 };
	struct ks_error err;

	memset(object + 1, ' ', 299);
	object[300] = ']';
	struct ks_text_item items[] = {
		{ .data = bytes, .len = 300, .encoding = KS_ENCODING_AUTO },
		{ .data = object, .len = 301, .json = true },
		{ .data = bytes, .len = 300, .mime = "image/\"png\"" },
	};
	size_t planned = ks_text_plan(items, 3, 0);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(items[i].form, KS_FORM_BLOB);
		assert_int_equal(ks_text_write(&json, &items[i], blobs, NULL, &err), 0);
		ks_buf_char(&json, '\n');
	}
	assert_true(json.len <= planned);
	ks_buf_char(&json, '\0');
	assert_non_null(strstr(json.data, "\"mime\":\"application/octet-stream\"}}\n{"));
	assert_non_null(strstr(json.data, "\"mime\":\"application/json\"}}\n{"));
	assert_non_null(strstr(json.data, "\"mime\":\"image/\\\"png\\\"\"}}\n"));
	ks_buf_free(&json);
}

/* A digest that saw only the beginning is completed; a cut code point is no text; the hash is the one of all bytes. */
static void test_digest_of_blobs(void **state)
{
	(void)state;
	static const char *const mimes[] = { "application/octet-stream", "text/plain; charset=utf-8" };
	char data[300];

	memset(data, 'x', sizeof(data));
	memcpy(data + 297, "\xe2\x82\xac", 3);
	for (size_t told = 0; told <= sizeof(data); told++)
		for (int whole = 0; whole < 2; whole++) {
			struct ks_digest digest;
			struct ks_buf json = { 0 };
			struct ks_error err;
			struct ks_blob *plain;
			size_t len = whole ? 300 : 299;

			ks_digest_init(&digest);
			ks_digest_update(&digest, data, told < len ? told : len);
			struct ks_text_item item = { .data = data, .len = len, .digest = &digest };
			(void)ks_text_plan(&item, 1, 0);
			assert_int_equal(ks_text_write(&json, &item, blobs, NULL, &err), 0);
			ks_buf_char(&json, '\0');
			assert_non_null(strstr(json.data, mimes[whole]));
			assert_int_equal(ks_blob_copy(blobs, NULL, data, len, "a/b", &plain, &err), 0);
			assert_non_null(strstr(json.data, ks_blob_sha256(plain)));
			ks_buf_free(&json);
		}
}

static void test_json_inline(void **state)
{
	(void)state;
	struct ks_buf json = { 0 };
	struct ks_error err;
	char list[] = "[1,2]";
	struct ks_text_item item = { .data = list, .len = 5, .json = true };

	assert_int_equal(ks_text_plan(&item, 1, 5), 5);
	assert_int_equal(item.form, KS_FORM_JSON);
	assert_int_equal(ks_text_write(&json, &item, blobs, NULL, &err), 0);
	assert_int_equal(json.len, 5);
	assert_memory_equal(json.data, "[1,2]", 5);
	ks_buf_free(&json);
}

/* Largest first, and only as many as needed. */
static void test_plan_takes_the_largest(void **state)
{
	(void)state;
	static char data[4000];

	memset(data, 'x', sizeof(data));
	struct ks_text_item items[3] = { item_of(data, 1000, 0), item_of(data, 3000, 0), item_of(data, 2000, 0) };
	assert_int_equal(ks_text_plan(items, 3, 6006), 6006);
	for (int i = 0; i < 3; i++)
		assert_int_equal(items[i].form, KS_FORM_STRING);
	size_t total = ks_text_plan(items, 3, 6005);
	assert_int_equal(items[0].form, KS_FORM_STRING);
	assert_int_equal(items[1].form, KS_FORM_BLOB);
	assert_int_equal(items[2].form, KS_FORM_STRING);
	assert_int_equal(total, 1002 + 2002 + items[1].size);
	size_t ref = items[1].size;
	assert_int_equal(ks_text_plan(items, 3, total - 1), 1002 + ref + ref);
	assert_int_equal(items[2].form, KS_FORM_BLOB);
	assert_int_equal(ks_text_plan(items, 3, 1001 + ref + ref), 3 * ref);
	/* Too small for anything: the sum tells. What is shorter than a reference stays as it is. */
	items[0].len = 100;
	assert_int_equal(ks_text_plan(items, 3, 10), 102 + ref + ref);
	assert_int_equal(items[0].form, KS_FORM_STRING);
}

/* What counts is the size on the wire: few control bytes take more room than many letters. */
static void test_plan_counts_wire_bytes(void **state)
{
	(void)state;
	static char letters[1000], controls[400];

	memset(letters, 'x', sizeof(letters));
	memset(controls, 1, sizeof(controls));
	struct ks_text_item items[2] = { item_of(letters, 1000, 0), item_of(controls, 400, 0) };
	assert_int_equal(ks_text_plan(items, 2, 3404), 3404);
	(void)ks_text_plan(items, 2, 3403);
	assert_int_equal(items[0].form, KS_FORM_STRING);
	assert_int_equal(items[1].form, KS_FORM_BLOB);
}

static void test_no_room_for_the_blob(void **state)
{
	(void)state;
	struct ks_buf json = { 0 };
	struct ks_error err;
	size_t len = (1 << 20) + 1;
	struct ks_text_item item = item_of(calloc(1, len), len, KS_ENCODING_UTF8);

	item.owned = true;
	(void)ks_text_plan(&item, 1, 1000);
	assert_int_equal(ks_text_write(&json, &item, blobs, NULL, &err), -1);
	assert_int_equal(err.reason, KS_E_LIMIT);
	assert_int_equal(json.len, 0);
	assert_null(item.data);
	ks_buf_free(&json);
}

/* Every result fits, cuts no code point, and leaves out little. */
static void test_fit(void **state)
{
	(void)state;
	static const char *const patterns[] = {
		"x", "\x01", "\xff", "\xc3\xa9", "\xe2\x82\xac", "\xe2\x80\xa8", "\xf0\x9f\x98\x80", "a\n\xe2\x82\xac\x01\xff"
	};
	char data[600];
	const size_t step = under_memcheck() ? 49 : 7;

	for (size_t p = 0; p < KS_COUNT(patterns); p++) {
		size_t unit = strlen(patterns[p]);
		for (size_t i = 0; i < sizeof(data); i++)
			data[i] = patterns[p][i % unit];
		for (size_t len = 0; len <= sizeof(data); len += step)
			for (size_t budget = 16; budget < 700; budget++) {
				size_t n = ks_text_fit(data, len, budget);
				assert_true(n <= len);
				assert_true(ks_json_escaped_size(data, n) <= budget);
				assert_int_equal(ks_utf8_complete_prefix(data, n), n);
				if (n < ks_utf8_complete_prefix(data, len))
					assert_true(n > 0 && ks_json_escaped_size(data, n) + 3 * 14 >= budget);
			}
	}
	assert_int_equal(ks_text_fit("\xe2\x82", 2, 100), 0);
	assert_int_equal(ks_text_fit("xxxxxxxxxxxxxxxxxxxx", 20, 22), 20);
	assert_int_equal(ks_text_fit("xxxxxxxxxxxxxxxxxxxx", 20, 21), 19);
	assert_int_equal(ks_base64_fit(100, 17), 9);
	assert_int_equal(ks_base64_fit(100, 18), 12);
	assert_int_equal(ks_base64_fit(5, 18), 5);
}

static void check_slice(const char *data, size_t len, size_t budget, size_t want_n, const char *want)
{
	struct ks_buf json = { 0 };

	ks_write_open(&json, '{');
	assert_int_equal(ks_text_write_slice(&json, data, len, budget), want_n);
	ks_write_close(&json, '}');
	ks_buf_char(&json, '\0');
	assert_string_equal(json.data, want);
	ks_buf_free(&json);
}

static void test_slices(void **state)
{
	(void)state;
	check_slice("", 0, 100, 0, "{\"text\":\"\"}");
	check_slice("abc", 3, 100, 3, "{\"text\":\"abc\"}");
	check_slice("ab\xe2\x82\xac", 4, 100, 2, "{\"text\":\"ab\"}");
	check_slice("\xe2\x82\xac", 2, 100, 2, "{\"base64\":\"4oI=\"}");
	check_slice("\x82\xac", 2, 100, 2, "{\"base64\":\"gqw=\"}");
	check_slice("a\xff" "c", 3, 100, 3, "{\"base64\":\"Yf9j\"}");
	check_slice("0123456789abcdefghij", 20, 16, 14, "{\"text\":\"0123456789abcd\"}");
	check_slice("\xff" "123456789abcdef", 16, 16, 9, "{\"base64\":\"/zEyMzQ1Njc4\"}");
}

static void test_bytes_of_a_request_text(void **state)
{
	(void)state;
	struct ks_error err;
	struct ks_blob *blob;
	const char *data;
	size_t len;
	char hello[] = "hello";

	assert_int_equal(ks_text_bytes(&(struct ks_text){ .present = true, .data = hello, .len = 5 }, blobs, &data, &len, &err), 0);
	assert_ptr_equal(data, hello);
	assert_int_equal(len, 5);
	assert_int_equal(ks_blob_copy(blobs, NULL, "in a blob", 9, "a/b", &blob, &err), 0);
	char *id = strdup(ks_blob_id(blob));
	assert_int_equal(ks_text_bytes(&(struct ks_text){ .present = true, .blob = id }, blobs, &data, &len, &err), 0);
	assert_int_equal(len, 9);
	assert_memory_equal(data, "in a blob", 9);
	ks_blob_drop(blobs, blob);
	assert_int_equal(ks_text_bytes(&(struct ks_text){ .present = true, .blob = id }, blobs, &data, &len, &err), -1);
	assert_int_equal(err.reason, KS_E_GONE);
	free(id);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_inline_forms),
		cmocka_unit_test(test_blob_form),
		cmocka_unit_test(test_mime_of_blobs),
		cmocka_unit_test(test_digest_of_blobs),
		cmocka_unit_test(test_json_inline),
		cmocka_unit_test(test_plan_takes_the_largest),
		cmocka_unit_test(test_plan_counts_wire_bytes),
		cmocka_unit_test(test_no_room_for_the_blob),
		cmocka_unit_test(test_fit),
		cmocka_unit_test(test_slices),
		cmocka_unit_test(test_bytes_of_a_request_text),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
