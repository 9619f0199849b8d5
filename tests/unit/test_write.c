/* test_write.c: what leaves on the wire: escapes, replacement of invalid bytes, separators, base64, sizes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <json-c/json_object.h>

#include "proto/messages.h"
#include "proto/scan.h"
#include "proto/write.h"

#define TEXT(literal) (literal), sizeof(literal) - 1
#define FFFD "\xEF\xBF\xBD"

static void check_string(const char *data, size_t len, const char *want)
{
	KS_AUTOBUF struct ks_buf buf = { 0 };

	ks_write_utf8_lossy(&buf, data, len);
	if (buf.len != strlen(want) || memcmp(buf.data, want, buf.len) != 0)
		fail_msg("got %.*s, want %s", (int)buf.len, buf.data, want);
	assert_int_equal(ks_json_escaped_size(data, len), buf.len);
}

static void test_escapes(void **state)
{
	(void)state;
	check_string(TEXT(""), "\"\"");
	check_string(TEXT("plain / text"), "\"plain / text\"");
	check_string(TEXT("\"\\"), "\"\\\"\\\\\"");
	check_string(TEXT("\b\f\n\r\t"), "\"\\b\\f\\n\\r\\t\"");
	check_string(TEXT("\0\x01\x0B\x1F\x7F"), "\"\\u0000\\u0001\\u000b\\u001f\\u007f\"");
	check_string(TEXT("\xC2\x85\xE2\x80\xA8\xE2\x80\xA9"), "\"\\u0085\\u2028\\u2029\"");
	check_string(TEXT("\xC2\x84\xC2\x86\xE2\x80\xA7\xE2\x80\xAA"), "\"\xC2\x84\xC2\x86\xE2\x80\xA7\xE2\x80\xAA\"");
	check_string(TEXT("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z"), "\"a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z\"");
}

/* The examples of Unicode 15, section 3.9 (tables 3-8 to 3-11), and some ends of input. */
static void test_maximal_subparts(void **state)
{
	(void)state;
	check_string(TEXT("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"), "\"" FFFD FFFD FFFD FFFD FFFD FFFD FFFD FFFD "A\"");
	check_string(TEXT("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"), "\"" FFFD FFFD FFFD FFFD FFFD FFFD FFFD FFFD "A\"");
	check_string(TEXT("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"), "\"" FFFD FFFD FFFD FFFD FFFD "A" FFFD FFFD "B\"");
	check_string(TEXT("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), "\"" FFFD FFFD FFFD FFFD "A\"");
	check_string(TEXT("\xE2\x82"), "\"" FFFD "\"");
	check_string(TEXT("\xF0\x9F\x98"), "\"" FFFD "\"");
	check_string(TEXT("a\xFF"), "\"a" FFFD "\"");
	check_string(TEXT("\xC3\n\xC3\""), "\"" FFFD "\\n" FFFD "\\\"\"");
}

/* Whatever the bytes: the scanner takes the string, it has one line, and valid text comes back unchanged. */
static void test_round_trip(void **state)
{
	uint32_t random = 12345;
	char data[64];

	(void)state;
	for (int round = 0; round < 20000; round++) {
		size_t len = (size_t)round % sizeof(data);
		for (size_t i = 0; i < len; i++) {
			random = random * 1664525 + 1013904223;
			data[i] = (char)(random >> 24);
			if (random & 0x400) /* often a sequence that could be valid */
				data[i] = "\xE2\x80\xA8\xC2\x85\xF0\x9F\x98\x80\xED\xA0"[random >> 20 & 7];
		}
		KS_AUTOBUF struct ks_buf buf = { 0 };
		struct ks_error err;
		ks_write_utf8_lossy(&buf, data, len);
		assert_int_equal(ks_json_escaped_size(data, len), buf.len);
		for (size_t i = 0; i < buf.len; i++)
			assert_true((unsigned char)buf.data[i] >= 0x20 && buf.data[i] != 0x7F);
		struct json_object *back = ks_json_parse(buf.data, buf.len, &err);
		if (!back)
			fail_msg("%s", err.text);
		if (ks_utf8_valid(data, len)) {
			assert_int_equal(json_object_get_string_len(back), len);
			assert_memory_equal(json_object_get_string(back), data, len);
		}
		json_object_put(back);
	}
}

static void test_integers(void **state)
{
	KS_AUTOBUF struct ks_buf buf = { 0 };
	char want[32];
	int64_t value = 1;

	(void)state;
	for (int digits = 1; digits < 20; digits++) { /* 9, 10, 99, 100 ... and both ends */
		const int64_t next = digits < 19 ? value * 10 : INT64_MAX;
		const int64_t values[] = { value, next - 1, -value, 1 - next, digits < 19 ? 0 : INT64_MAX, digits < 19 ? 0 : INT64_MIN };
		for (size_t i = 0; i < KS_COUNT(values); i++) {
			ks_buf_clear(&buf);
			ks_write_int(&buf, values[i]);
			(void)snprintf(want, sizeof(want), "%lld", (long long)values[i]);
			assert_int_equal(buf.len, strlen(want));
			assert_memory_equal(buf.data, want, buf.len);
		}
		value = next;
	}
}

static void test_structure(void **state)
{
	static const char want[] =
		"{\"a\":1,\"b\":[true,false,\"x\",-5,{},[]],\"c\":{\"d\":\"AQID\"},\"r\":{\"ready\":1},\"last\":\"\"}\n"
		"{\"line\":2}";
	KS_AUTOBUF struct ks_buf buf = { 0 };

	(void)state;
	ks_write_open(&buf, '{');
	ks_write_key_int(&buf, "a", 1);
	ks_write_key_int(&buf, "absent", KS_ABSENT);
	ks_write_key_string(&buf, "absent", NULL);
	ks_write_key(&buf, "b");
	ks_write_open(&buf, '[');
	ks_write_bool(&buf, true);
	ks_write_bool(&buf, false);
	ks_write_string(&buf, "x");
	ks_write_int(&buf, -5);
	ks_write_open(&buf, '{');
	ks_write_close(&buf, '}');
	ks_write_open(&buf, '[');
	ks_write_close(&buf, ']');
	ks_write_close(&buf, ']');
	ks_write_key(&buf, "c");
	ks_write_open(&buf, '{');
	ks_write_key(&buf, "d");
	ks_write_base64(&buf, "\1\2\3", 3);
	ks_write_close(&buf, '}');
	ks_write_key(&buf, "r");
	ks_write_raw(&buf, TEXT("{\"ready\":1}"));
	ks_write_key_string(&buf, "last", "");
	ks_write_close(&buf, '}');
	ks_buf_char(&buf, '\n');
	ks_write_open(&buf, '{');
	ks_write_key_int(&buf, "line", 2);
	ks_write_close(&buf, '}');
	assert_int_equal(buf.len, sizeof(want) - 1);
	assert_memory_equal(buf.data, want, buf.len);
}

/* Strings that end in what would suppress a comma must not. */
static void test_separator_is_not_fooled(void **state)
{
	static const char want[] = "[\"{\",\"[\",\":\",\"\\n\",1]";
	KS_AUTOBUF struct ks_buf buf = { 0 };

	(void)state;
	ks_write_open(&buf, '[');
	ks_write_string(&buf, "{");
	ks_write_string(&buf, "[");
	ks_write_string(&buf, ":");
	ks_write_string(&buf, "\n");
	ks_write_int(&buf, 1);
	ks_write_close(&buf, ']');
	assert_int_equal(buf.len, sizeof(want) - 1);
	assert_memory_equal(buf.data, want, buf.len);
}

static void check_text(int encoding, const char *data, size_t len, const char *want)
{
	KS_AUTOBUF struct ks_buf buf = { 0 };

	ks_write_text(&buf, encoding, data, len);
	ks_buf_char(&buf, '\0');
	assert_string_equal(buf.data, want);
}

static void test_text(void **state)
{
	(void)state;
	check_text(KS_ENCODING_UTF8, TEXT("a\xFF"), "\"a" FFFD "\"");
	check_text(KS_ENCODING_AUTO, TEXT("a\xFF"), "{\"base64\":\"Yf8=\"}");
	check_text(KS_ENCODING_AUTO, TEXT("a\xC3\xA9"), "\"a\xC3\xA9\"");
	check_text(KS_ENCODING_BASE64, TEXT("a"), "{\"base64\":\"YQ==\"}");
	check_text(KS_ENCODING_BASE64, TEXT(""), "{\"base64\":\"\"}");
}

static void test_base64(void **state)
{
	/* RFC 4648, section 10 */
	static const char *const vectors[][2] = { { "", "\"\"" },
						  { "f", "\"Zg==\"" },
						  { "fo", "\"Zm8=\"" },
						  { "foo", "\"Zm9v\"" },
						  { "foob", "\"Zm9vYg==\"" },
						  { "fooba", "\"Zm9vYmE=\"" },
						  { "foobar", "\"Zm9vYmFy\"" } };

	(void)state;
	for (size_t i = 0; i < KS_COUNT(vectors); i++) {
		KS_AUTOBUF struct ks_buf buf = { 0 };
		size_t len = strlen(vectors[i][0]);
		ks_write_base64(&buf, vectors[i][0], len);
		assert_int_equal(buf.len, strlen(vectors[i][1]));
		assert_memory_equal(buf.data, vectors[i][1], buf.len);
		assert_int_equal(ks_json_base64_size(len), buf.len);
	}
}

static void test_indent(void **state)
{
	static const char json[] = "{\"a\":[1,2],\"b\":{},\"c\":[],\"d\":\"x\\\\\",\"e\":\"{[,:]}\\\"\"}";
	static const char want[] =
		"{\n\t\"a\": [\n\t\t1,\n\t\t2\n\t],\n\t\"b\": {},\n\t\"c\": [],\n\t\"d\": \"x\\\\\",\n"
		"\t\"e\": \"{[,:]}\\\"\"\n}";
	KS_AUTOBUF struct ks_buf buf = { 0 };

	(void)state;
	ks_json_indent(&buf, json, sizeof(json) - 1);
	ks_buf_char(&buf, '\0');
	assert_string_equal(buf.data, want);
}

/* Out of memory: nothing is written, the flag says so. */
static void test_failed_buffer(void **state)
{
	struct ks_buf buf = { .failed = true };

	(void)state;
	ks_write_open(&buf, '{');
	ks_write_key_string(&buf, "a", "b");
	ks_write_key(&buf, "c");
	ks_write_base64(&buf, "abc", 3);
	ks_write_close(&buf, '}');
	assert_true(buf.failed);
	assert_int_equal(buf.len, 0);
	assert_null(buf.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_escapes),
		cmocka_unit_test(test_maximal_subparts),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_integers),
		cmocka_unit_test(test_structure),
		cmocka_unit_test(test_separator_is_not_fooled),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_base64),
		cmocka_unit_test(test_indent),
		cmocka_unit_test(test_failed_buffer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
