/* test_scan.c: the strict scanner and the UTF-8 automaton against an independent oracle and against jansson. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/buf.h"
#include "base/clock.h"
#include "proto/envelope.h"
#include "proto/scan.h"
#include "base/utf8.h"

/* The headers of json-c and jansson cannot be included together. */
int json_object_put(struct json_object *value);
int json_object_object_length(const struct json_object *value);

#define TEXT(literal) (literal), sizeof(literal) - 1

struct line {
	const char *text;
	size_t len;
	enum ks_reason reason; /* KS_E_NONE: fine */
	const char *says;      /* part of the error's sentence */
};

static const struct line lines[] = {
	/* valid */
	{ TEXT("{}"), KS_E_NONE, NULL },
	{ TEXT(" \t\r\n{ \"a\" : [ 1 , -0 , 2.5 , 1e5 , 1E-7, true,false,null,\"\" ] } \r\n"), KS_E_NONE, NULL },
	{ TEXT("[[],{}]"), KS_E_NONE, NULL },
	{ TEXT("\"top\""), KS_E_NONE, NULL },
	{ TEXT("17"), KS_E_NONE, NULL },
	{ TEXT("9007199254740992"), KS_E_NONE, NULL },
	{ TEXT("-9007199254740992"), KS_E_NONE, NULL },
	{ TEXT("{\"a\":\"x\\u0000y\"}"), KS_E_NONE, NULL },
	{ TEXT("{\"a\":1,\"b\":{\"a\":1},\"c\":[{\"a\":1},{\"a\":2}]}"), KS_E_NONE, NULL },
	{ TEXT("\"\\ud83d\\ude00 \xF0\x9F\x98\x80 \\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\""), KS_E_NONE, NULL },
	{ TEXT("\"\xE2\x80\xA8\xC2\x85\x7F\""), KS_E_NONE, NULL },
	/* not JSON */
	{ TEXT(""), KS_E_PARSE, "too early" },
	{ TEXT("   "), KS_E_PARSE, "at byte 3" },
	{ TEXT("{"), KS_E_PARSE, "at byte 1" },
	{ TEXT("{\"a\""), KS_E_PARSE, "too early" },
	{ TEXT("{\"a\":"), KS_E_PARSE, "too early" },
	{ TEXT("{\"a\":1"), KS_E_PARSE, "too early" },
	{ TEXT("[1"), KS_E_PARSE, "too early" },
	{ TEXT("\"abc"), KS_E_PARSE, "string without end" },
	{ TEXT("\"abc\\"), KS_E_PARSE, "unknown escape" },
	{ TEXT("{\"a\":1}}"), KS_E_PARSE, "behind the end of the value at byte 7" },
	{ TEXT("{} {}"), KS_E_PARSE, "behind the end of the value at byte 3" },
	{ TEXT("1 2"), KS_E_PARSE, "behind the end" },
	{ TEXT("]"), KS_E_PARSE, "at byte 0" },
	{ TEXT("[}"), KS_E_PARSE, "wrong closing bracket at byte 1" },
	{ TEXT("{]"), KS_E_PARSE, "wrong closing bracket at byte 1" },
	{ TEXT("[1,]"), KS_E_PARSE, "trailing comma at byte 3" },
	{ TEXT("{\"a\":1,}"), KS_E_PARSE, "trailing comma at byte 7" },
	{ TEXT("[,1]"), KS_E_PARSE, "value is missing at byte 1" },
	{ TEXT("[1 2]"), KS_E_PARSE, "comma is missing at byte 3" },
	{ TEXT("{\"a\" 1}"), KS_E_PARSE, "colon is missing at byte 5" },
	{ TEXT("{a:1}"), KS_E_PARSE, "double quotes" },
	{ TEXT("{'a':1}"), KS_E_PARSE, "double quotes" },
	{ TEXT("['a']"), KS_E_PARSE, "double quotes at byte 1" },
	{ TEXT("{1:2}"), KS_E_PARSE, "double quotes" },
	{ TEXT("[NaN]"), KS_E_PARSE, "NaN and Infinity" },
	{ TEXT("[Infinity]"), KS_E_PARSE, "NaN and Infinity" },
	{ TEXT("[-Infinity]"), KS_E_PARSE, "without digits at byte 2" },
	{ TEXT("[nul]"), KS_E_PARSE, "unknown word" },
	{ TEXT("[True]"), KS_E_PARSE, "no value starts" },
	{ TEXT("[1.]"), KS_E_PARSE, "behind the point" },
	{ TEXT("[.5]"), KS_E_PARSE, "no value starts" },
	{ TEXT("[+1]"), KS_E_PARSE, "no value starts" },
	{ TEXT("[01]"), KS_E_PARSE, "leading zero" },
	{ TEXT("[-]"), KS_E_PARSE, "without digits" },
	{ TEXT("[1e]"), KS_E_PARSE, "exponent" },
	{ TEXT("[0x10]"), KS_E_PARSE, "comma is missing" },
	{ TEXT("[1]//x"), KS_E_PARSE, "behind the end" },
	{ TEXT("[/*x*/1]"), KS_E_PARSE, "comments" },
	{ TEXT("\xEF\xBB\xBF{}"), KS_E_PARSE, "byte order mark" },
	{ TEXT("\"a\tb\""), KS_E_PARSE, "raw control character in a string at byte 2" },
	{ TEXT("\"\x01\""), KS_E_PARSE, "raw control" },
	{ TEXT("\"a\0b\""), KS_E_PARSE, "raw control" },
	{ TEXT("\0"), KS_E_PARSE, "no value starts" },
	{ TEXT("{}\0"), KS_E_PARSE, "behind the end" },
	{ TEXT("\"\\x41\""), KS_E_PARSE, "unknown escape" },
	{ TEXT("\"\\u12g4\""), KS_E_PARSE, "four hexadecimal digits" },
	{ TEXT("\"\\u12"), KS_E_PARSE, "four hexadecimal digits" },
	{ TEXT("\"\\ud800\""), KS_E_PARSE, "high surrogate without" },
	{ TEXT("\"\\ud800\\u0041\""), KS_E_PARSE, "high surrogate without" },
	{ TEXT("\"\\ud800\\ud800\""), KS_E_PARSE, "high surrogate without" },
	{ TEXT("\"\\ude00\""), KS_E_PARSE, "low surrogate without" },
	{ TEXT("\"\xC0\xAF\""), KS_E_PARSE, "invalid UTF-8 at byte 1" },
	{ TEXT("\"\xED\xA0\x80\""), KS_E_PARSE, "invalid UTF-8 at byte 2" },
	{ TEXT("\"\xF4\x90\x80\x80\""), KS_E_PARSE, "invalid UTF-8 at byte 2" },
	{ TEXT("\"\xE2\x82\""), KS_E_PARSE, "invalid UTF-8 at byte 3" },
	{ TEXT("\"\xFF\""), KS_E_PARSE, "invalid UTF-8" },
	{ TEXT("{\"\xC0\x80\":1}"), KS_E_PARSE, "invalid UTF-8" },
	/* JSON that breaks our rules */
	{ TEXT("9007199254740993"), KS_E_INVALID_REQUEST, "number at byte 0 is beyond 2^53" },
	{ TEXT("-9007199254740993"), KS_E_INVALID_REQUEST, "beyond 2^53" },
	{ TEXT("[18446744073709551616]"), KS_E_INVALID_REQUEST, "number at byte 1 is beyond" },
	{ TEXT("[1e400]"), KS_E_INVALID_REQUEST, "beyond 2^53" },
	{ TEXT("[1e99999999999999999999]"), KS_E_INVALID_REQUEST, "beyond 2^53" },
	{ TEXT("{\"a\":1,\"a\":2}"), KS_E_INVALID_REQUEST, "twice in one object, at byte 7" },
	{ TEXT("{\"a\":1,\"\\u0061\":2}"), KS_E_INVALID_REQUEST, "twice" },
	{ TEXT("{\"\xC3\xA9\":1,\"\\u00E9\":2}"), KS_E_INVALID_REQUEST, "twice" },
	{ TEXT("{\"\xE2\x82\xAC\":1,\"\\u20ac\":2}"), KS_E_INVALID_REQUEST, "twice" },
	{ TEXT("{\"\xF0\x9F\x98\x80\":1,\"\\uD83D\\uDE00\":2}"), KS_E_INVALID_REQUEST, "twice" },
	{ TEXT("{\"\":1,\"\":2}"), KS_E_INVALID_REQUEST, "twice" },
	{ TEXT("[{\"x\":{\"k\":1,\"l\":2,\"k\":3}}]"), KS_E_INVALID_REQUEST, "twice" },
	{ TEXT("{\"a\\u0000b\":1,\"a\":2}"), KS_E_INVALID_REQUEST, "NUL" },
};

/* What json-c, behind the scan, must agree with. */
static bool parses(const char *text, size_t len)
{
	struct ks_error err;
	struct json_object *value = ks_json_parse(text, len, &err);

	json_object_put(value);
	return value != NULL;
}

static void test_lines(void **state)
{
	(void)state;
	for (size_t i = 0; i < KS_COUNT(lines); i++) {
		struct ks_error err = { 0 };
		int result = ks_json_scan(lines[i].text, lines[i].len, NULL, &err);

		if (lines[i].reason == KS_E_NONE) {
			if (result != 0)
				fail_msg("%s: %s", lines[i].text, err.text);
			if (!parses(lines[i].text, lines[i].len))
				fail_msg("json-c refuses %s", lines[i].text);
			continue;
		}
		if (result != -1 || err.reason != lines[i].reason || !strstr(err.text, lines[i].says))
			fail_msg("%s: got %d %s \"%s\", want %s \"%s\"", lines[i].text, result,
				 ks_reason_name(err.reason), err.text, ks_reason_name(lines[i].reason), lines[i].says);
		assert_false(parses(lines[i].text, lines[i].len));
	}
}

/* Each of the 32 raw controls in a string is refused; the byte above them and DEL are not. */
static void test_controls(void **state)
{
	(void)state;
	for (unsigned c = 0; c <= 0x80; c++) {
		char line[] = "[\"a?b\"]";
		struct ks_error err;
		bool fine = c >= 0x20 && c < 0x80;
		line[3] = (char)c;
		if (c == '"' || c == '\\')
			continue;
		assert_int_equal(ks_json_scan(line, sizeof(line) - 1, NULL, &err), fine ? 0 : -1);
		assert_int_equal(parses(line, sizeof(line) - 1), fine);
	}
}

/* Every prefix of a valid line is invalid, and nothing is read behind its end (the copy has the exact size). */
static void test_prefixes(void **state)
{
	static const char line[] = "{\"a\":[1,-2.5e1,\"\\ud83d\\ude00\xF0\x9F\x98\x80\",true,false,null],\"b\":{}}";

	(void)state;
	for (size_t len = 0; len < sizeof(line) - 1; len++) {
		struct ks_error err;
		char *copy = malloc(len + !len);
		assert_non_null(copy);
		memcpy(copy, line, len);
		assert_int_equal(ks_json_scan(copy, len, NULL, &err), -1);
		assert_int_equal(err.reason, KS_E_PARSE);
		free(copy);
	}
	assert_true(parses(line, sizeof(line) - 1));
}

/* jansson (RFC 8259, duplicates rejected) must agree on every one-byte change of some seeds. Known differences: jansson
 * refuses NUL in values unless told, and takes integers up to 2^63. */
static void test_against_jansson(void **state)
{
	static const char *const seeds[] = {
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"run/code\",\"params\":{\"code\":\"a\\nb\"}}",
		("[1,-0.5,1e5,\"\\ud83d\\ude00\",\"\xF0\x9F\x98\x80\xE2\x82\xAC\xC3\xA9\",{\"a\":1,\"b\":[]},true,false,"
		 "null]"),
		"{\"k1\":{\"k2\":{\"k3\":[[[]]]}},\"k2\":\"\\u0041\\\\\\/\"}",
		"{\"aa\":1,\"ab\":2,\"ba\":3,\"bb\":4}",
	};
	static const unsigned char bytes[] =
		"\"\\{}[]:,0159-+.eEtfnuaAbB/' \t\n\x01\x7F\x80\xA0\xBF\xC0\xC2\xE0\xED\xF0\xF4\xFF";
	size_t checked = 0, valid = 0;

	(void)state;
	for (size_t s = 0; s < KS_COUNT(seeds); s++) {
		size_t len = strlen(seeds[s]);
		for (size_t at = 0; at < len; at++) {
			for (size_t b = 0; b < sizeof(bytes); b++) { /* the NUL at the end, too */
				char line[256];
				struct ks_error err;
				json_error_t theirs;
				memcpy(line, seeds[s], len);
				line[at] = (char)bytes[b];
				json_t *value = json_loadb(
					line, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, &theirs);
				bool ours = ks_json_scan(line, len, NULL, &err) == 0;
				if (ours != (value != NULL) &&
				    !(value && err.reason == KS_E_INVALID_REQUEST && strstr(err.text, "beyond 2^53")))
					fail_msg("%.*s: ours %s, jansson %s", (int)len, line, ours ? "yes" : err.text,
						 value ? "yes" : theirs.text);
				if (ours != parses(line, len))
					fail_msg("%.*s: json-c disagrees with the scan", (int)len, line);
				json_decref(value);
				checked++;
				valid += ours;
			}
		}
	}
	assert_true(valid > 500); /* the mutations are not all of one kind */
	assert_true(checked > 8000);
}

static void repeat(struct ks_buf *buf, const char *text, size_t times)
{
	for (size_t i = 0; i < times; i++)
		ks_buf_str(buf, text);
}

static int scan_nested(size_t depth, const struct ks_scan_limits *limits, struct ks_error *err)
{
	KS_AUTOBUF struct ks_buf buf = { 0 };

	repeat(&buf, "[", depth);
	repeat(&buf, "]", depth);
	return ks_json_scan(buf.data, buf.len, limits, err);
}

static void test_depth(void **state)
{
	KS_AUTOBUF struct ks_buf buf = { 0 };
	struct ks_error err;

	(void)state;
	assert_int_equal(scan_nested(31, NULL, &err), 0);
	assert_int_equal(scan_nested(32, NULL, &err), 0);
	assert_int_equal(scan_nested(33, NULL, &err), -1);
	assert_int_equal(err.reason, KS_E_INVALID_REQUEST);
	assert_string_equal(err.text, "nested deeper than 32 at byte 32");
	assert_int_equal(scan_nested(100000, NULL, &err), -1);
	assert_int_equal(scan_nested(3, &(struct ks_scan_limits){ 3, 10 }, &err), 0);
	assert_int_equal(scan_nested(4, &(struct ks_scan_limits){ 3, 10 }, &err), -1);
	assert_int_equal(scan_nested(64, &(struct ks_scan_limits){ 1000, 1000 }, &err), 0);
	assert_int_equal(scan_nested(65, &(struct ks_scan_limits){ 1000, 1000 }, &err), -1);
	repeat(&buf, "{\"a\":", 31); /* json-c, too, must take the deepest that we take */
	ks_buf_str(&buf, "[7]");
	repeat(&buf, "}", 31);
	assert_true(parses(buf.data, buf.len));
}

static void test_values(void **state)
{
	struct ks_error err;
	KS_AUTOBUF struct ks_buf buf = { 0 };

	(void)state;
	for (size_t count = 65534; count <= 65536; count++) { /* and the array itself */
		ks_buf_clear(&buf);
		ks_buf_str(&buf, "[0");
		repeat(&buf, ",0", count - 1);
		ks_buf_char(&buf, ']');
		int result = ks_json_scan(buf.data, buf.len, NULL, &err);
		assert_int_equal(result, count <= 65535 ? 0 : -1);
	}
	assert_int_equal(err.reason, KS_E_INVALID_REQUEST);
	assert_non_null(strstr(err.text, "more than 65536 values"));
}

/* Many keys stay cheap, and a duplicate among them is found wherever it is. */
static void test_many_keys(void **state)
{
	const struct ks_scan_limits wide = { 32, 1 << 20 };
	KS_AUTOBUF struct ks_buf buf = { 0 };
	struct ks_error err;

	(void)state;
	ks_buf_str(&buf, "{\"k0\":0");
	for (int i = 1; i < 100000; i++)
		ks_buf_printf(&buf, ",\"k%d\":0", i);
	int64_t start = ks_now_us();
	ks_buf_str(&buf, "}");
	assert_int_equal(ks_json_scan(buf.data, buf.len, &wide, &err), 0);
	assert_true(ks_now_us() - start < 5000000); /* quadratic would be minutes */
	buf.len--;
	ks_buf_str(&buf, ",\"k31415\":0}");
	assert_int_equal(ks_json_scan(buf.data, buf.len, &wide, &err), -1);
	assert_non_null(strstr(err.text, "twice"));
}

/* Written out row by row, as table 3-7 is printed; shares nothing with the automaton. */
static bool oracle(const unsigned char *s, size_t len)
{
	size_t i = 0;

	while (i < len) {
		uint32_t code, least;
		size_t more;
		if (s[i] < 0x80) {
			i++;
			continue;
		} else if ((s[i] & 0xE0) == 0xC0) {
			code = s[i] & 0x1F, more = 1, least = 0x80;
		} else if ((s[i] & 0xF0) == 0xE0) {
			code = s[i] & 0x0F, more = 2, least = 0x800;
		} else if ((s[i] & 0xF8) == 0xF0) {
			code = s[i] & 0x07, more = 3, least = 0x10000;
		} else {
			return false;
		}
		if (len - i <= more)
			return false;
		for (size_t j = 1; j <= more; j++) {
			if ((s[i + j] & 0xC0) != 0x80)
				return false;
			code = code << 6 | (s[i + j] & 0x3F);
		}
		if (code < least || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
			return false;
		i += 1 + more;
	}
	return true;
}

static void check_utf8(const unsigned char *bytes, size_t len)
{
	if (ks_utf8_valid(bytes, len) != oracle(bytes, len))
		fail_msg("%02x %02x %02x %02x (%zu)", bytes[0], bytes[1], bytes[2], bytes[3], len);
}

static void test_utf8_exhaustive(void **state)
{
	unsigned char b[4] = { 0 };
	size_t count[4] = { 0 };

	(void)state;
	for (unsigned i = 0; i < 1u << 24; i++) {
		b[0] = (unsigned char)(i >> 16), b[1] = (unsigned char)(i >> 8), b[2] = (unsigned char)i;
		check_utf8(b, 3);
		count[3] += ks_utf8_valid(b, 3);
		if (b[2] == 0) {
			check_utf8(b, 2);
			count[2] += ks_utf8_valid(b, 2);
		}
		if (b[1] == 0 && b[2] == 0) {
			check_utf8(b, 1);
			count[1] += ks_utf8_valid(b, 1);
		}
	}
	/* How many there are, by arithmetic: 128 ASCII, 1920 of two bytes, 61440 of three. */
	assert_int_equal(count[1], 128);
	assert_int_equal(count[2], 128 * 128 + 1920);
	assert_int_equal(count[3], 128 * 128 * 128 + 2 * 128 * 1920 + 61440);
}

static void test_utf8_four_bytes(void **state)
{
	static const unsigned char edges[] = { 0x00, 0x22, 0x7F, 0x80, 0x81, 0x8F, 0x90, 0x91, 0x9F,
					       0xA0, 0xBE, 0xBF, 0xC0, 0xC2, 0xE0, 0xF0, 0xFF };
	unsigned char b[4];

	(void)state;
	for (unsigned lead = 0xC0; lead <= 0xFF; lead++) {
		b[0] = (unsigned char)lead;
		for (unsigned second = 0; second < 256; second++) {
			b[1] = (unsigned char)second;
			for (size_t i = 0; i < sizeof(edges); i++)
				for (size_t j = 0; j < sizeof(edges); j++) {
					b[2] = edges[i], b[3] = edges[j];
					check_utf8(b, 4);
				}
		}
	}
	for (uint32_t code = 0x10000; code <= 0x10FFFF; code += 257) {
		b[0] = (unsigned char)(0xF0 | code >> 18), b[1] = (unsigned char)(0x80 | (code >> 12 & 0x3F));
		b[2] = (unsigned char)(0x80 | (code >> 6 & 0x3F)), b[3] = (unsigned char)(0x80 | (code & 0x3F));
		assert_true(ks_utf8_valid(b, 4));
	}
}

/* Runs of ASCII are passed over by the word: what precedes, follows or cuts them is seen all the same, wherever it stands. */
static void test_utf8_between_ascii(void **state)
{
	(void)state;
	static const char *const pieces[] = { "",     "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\x80",
					      "\xc3", "\xe2\x82", "\xed\xa0\x80", "\xff" };

	for (size_t before = 0; before < 20; before++)
		for (size_t after = 0; after < 20; after++)
			for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
				unsigned char text[64];
				const size_t len = strlen(pieces[i]);
				memset(text, 'a', sizeof(text));
				memcpy(text + before, pieces[i], len);
				check_utf8(text, before + len + after);
			}
}

static void test_utf8_prefix(void **state)
{
	static const struct {
		const char *text;
		size_t len, prefix;
	} cases[] = {
		{ TEXT(""), 0 },
		{ TEXT("abc"), 3 },
		{ TEXT("a\xC3"), 1 },
		{ TEXT("a\xC3\xA9"), 3 },
		{ TEXT("a\xE2"), 1 },
		{ TEXT("a\xE2\x82"), 1 },
		{ TEXT("a\xE2\x82\xAC"), 4 },
		{ TEXT("a\xF0"), 1 },
		{ TEXT("a\xF0\x9F"), 1 },
		{ TEXT("a\xF0\x9F\x98"), 1 },
		{ TEXT("a\xF0\x9F\x98\x80"), 5 },
		{ TEXT("\xF0\x9F\x98"), 0 },
		{ TEXT("a\x80"), 2 },
		{ TEXT("\x80\x80\x80\x80"), 4 }, /* never valid: not held back */
		{ TEXT("a\xC0"), 2 },
		{ TEXT("a\xED\xA0"), 3 },
		{ TEXT("a\xF4\x90"), 3 },
		{ TEXT("a\xFF"), 2 },
		{ TEXT("\xE0\x80"), 2 },
		{ TEXT("\xE0\xA0"), 0 },
	};

	(void)state;
	for (size_t i = 0; i < KS_COUNT(cases); i++)
		assert_int_equal(ks_utf8_complete_prefix(cases[i].text, cases[i].len), cases[i].prefix);
}

static void check_envelope(const char *line, enum ks_reason reason, const char *id, const char *says)
{
	struct ks_envelope envelope;
	struct ks_error err = { 0 };
	int result = ks_envelope_parse(line, strlen(line), &envelope, &err);

	if (result != (reason == KS_E_NONE ? 0 : -1) || err.reason != reason)
		fail_msg("%s: %d %s", line, result, err.text);
	assert_int_equal(envelope.has_id, id != NULL);
	assert_string_equal(envelope.id, id ? id : "");
	if (says && !strstr(err.text, says))
		fail_msg("%s: %s", line, err.text);
	assert_true((envelope.root != NULL) == (result == 0));
	ks_envelope_free(&envelope);
}

static void test_envelope(void **state)
{
	struct ks_envelope envelope;
	struct ks_error err;
	static const char good[] =
		"{\"params\":{\"a\":1},\"method\":\"run/code\",\"id\":\"x\\u0079\\u2028\",\"jsonrpc\":\"2.0\"}";

	(void)state;
	assert_int_equal(ks_envelope_parse(good, strlen(good), &envelope, &err), 0);
	assert_string_equal(envelope.method, "run/code");
	assert_string_equal(envelope.id, "\"xy\\u2028\"");
	assert_true(envelope.has_id);
	assert_int_equal(json_object_object_length(envelope.params), 1);
	ks_envelope_free(&envelope);

	check_envelope("{\"jsonrpc\":\"2.0\",\"method\":\"a\"}", KS_E_NONE, NULL, NULL);
	check_envelope("{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"id\":-0}", KS_E_NONE, "0", NULL);
	check_envelope("{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"id\":9007199254740992}", KS_E_NONE, "9007199254740992",
		       NULL);
	check_envelope("{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"id\":\"\"}", KS_E_NONE, "\"\"", NULL);
	check_envelope("{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"id\":\"n\\u0000\"}", KS_E_NONE, "\"n\\u0000\"", NULL);
	check_envelope("[]", KS_E_BATCH_UNSUPPORTED, NULL, "batches");
	check_envelope("[{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"id\":1}]", KS_E_BATCH_UNSUPPORTED, NULL, "batches");
	check_envelope("7", KS_E_INVALID_REQUEST, NULL, "JSON object");
	check_envelope("null", KS_E_INVALID_REQUEST, NULL, "null");
	check_envelope("{}", KS_E_INVALID_REQUEST, NULL, "jsonrpc");
	check_envelope("{\"id\":1,\"method\":\"a\"}", KS_E_INVALID_REQUEST, "1", "jsonrpc");
	check_envelope("{\"jsonrpc\":2.0,\"id\":1,\"method\":\"a\"}", KS_E_INVALID_REQUEST, "1", "jsonrpc");
	check_envelope("{\"jsonrpc\":\"2.0\\u0000\",\"id\":1,\"method\":\"a\"}", KS_E_INVALID_REQUEST, "1", "jsonrpc");
	check_envelope("{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"a\"}", KS_E_INVALID_REQUEST, NULL, "id must be");
	check_envelope("{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"a\"}", KS_E_INVALID_REQUEST, NULL, "id must be");
	check_envelope("{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"a\"}", KS_E_INVALID_REQUEST, NULL, "id must be");
	check_envelope("{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"a\"}", KS_E_INVALID_REQUEST, NULL, "id must be");
	check_envelope("{\"jsonrpc\":\"2.0\",\"id\":4}", KS_E_INVALID_REQUEST, "4", "method must be a string");
	check_envelope("{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":5}", KS_E_INVALID_REQUEST, "4",
		       "method must be a string");
	check_envelope("{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"\"}", KS_E_INVALID_REQUEST, "4", "1 to 128");
	check_envelope("{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"a\\u0000\"}", KS_E_INVALID_REQUEST, "4", "NUL");
	check_envelope("{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"a\",\"params\":[]}", KS_E_INVALID_REQUEST, "4",
		       "params");
	check_envelope("{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"a\",\"params\":null}", KS_E_INVALID_REQUEST, "4",
		       "params");
	check_envelope("{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"a\",\"extra\":1}", KS_E_INVALID_REQUEST, "4",
		       "\"extra\"");
	check_envelope("{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{}}", KS_E_INVALID_REQUEST, "4", "sends no requests");
	check_envelope("{\"id\":1,\"id\":2}", KS_E_INVALID_REQUEST, NULL, "twice");
	check_envelope("{\"id\":1", KS_E_PARSE, NULL, "too early");
}

/* 128 bytes of the worst kind of id fit, 129 do not; a method of 128 bytes does, of 129 does not. */
static void test_envelope_caps(void **state)
{
	(void)state;
	for (size_t len = 127; len <= 129; len++) {
		KS_AUTOBUF struct ks_buf line = { 0 }, id = { 0 };
		struct ks_envelope envelope;
		struct ks_error err;

		ks_buf_str(&id, "\"");
		repeat(&id, "\\u0001", len);
		ks_buf_str(&id, "\"");
		ks_buf_printf(&line, "{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"id\":%.*s}", (int)id.len, id.data);
		int result = ks_envelope_parse(line.data, line.len, &envelope, &err);
		assert_int_equal(result, len <= 128 ? 0 : -1);
		if (result == 0) {
			assert_int_equal(strlen(envelope.id), id.len);
			assert_memory_equal(envelope.id, id.data, id.len);
		}
		ks_envelope_free(&envelope);

		ks_buf_clear(&line);
		ks_buf_str(&line, "{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"id\":\"");
		repeat(&line, "i", len);
		ks_buf_str(&line, "\"}");
		assert_int_equal(ks_envelope_parse(line.data, line.len, &envelope, &err), len <= 128 ? 0 : -1);
		ks_envelope_free(&envelope);

		ks_buf_clear(&line);
		ks_buf_str(&line, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"");
		repeat(&line, "m", len);
		ks_buf_str(&line, "\"}");
		assert_int_equal(ks_envelope_parse(line.data, line.len, &envelope, &err), len <= 128 ? 0 : -1);
		ks_envelope_free(&envelope);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),		cmocka_unit_test(test_controls),
		cmocka_unit_test(test_prefixes),	cmocka_unit_test(test_against_jansson),
		cmocka_unit_test(test_depth),		cmocka_unit_test(test_values),
		cmocka_unit_test(test_many_keys),	cmocka_unit_test(test_utf8_exhaustive),
		cmocka_unit_test(test_utf8_four_bytes), cmocka_unit_test(test_utf8_between_ascii),
		cmocka_unit_test(test_utf8_prefix),
		cmocka_unit_test(test_envelope),	cmocka_unit_test(test_envelope_caps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
