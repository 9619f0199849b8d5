/* scan.c: the strict pass. A small pushdown automaton: the stack says object or array, `expect` what may come next. */
#include "scan.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>

#include <json-c/json_tokener.h>

#include "base/utf8.h"

#define MAX_INTEGER 9007199254740992 /* 2^53: the integers that every JSON reader keeps exact (RFC 8259, section 6) */
#define KEY_SLOTS 64

enum expect {
	VALUE,
	VALUE_OR_END, /* behind [ */
	KEY,
	KEY_OR_END, /* behind { */
	COLON,
	COMMA_OR_END,
	NOTHING, /* the value at the top is complete */
};

/* The keys seen so far, as 64-bit hashes in an open-addressed table. Equal keys of one object have equal hashes, so
 * a duplicate is never missed; two different keys that collide by chance (below 1e-9 in the largest message) only
 * refuse the message. The seed keeps a hostile client from choosing keys that fall into one slot. */
struct keys {
	uint64_t few[KEY_SLOTS];
	uint64_t *slots; /* `few`, or the heap when it became too small; 0 is empty */
	size_t size, used;
	uint64_t seed;
};

struct scan {
	const unsigned char *line;
	size_t len, at;
	struct ks_error *err;
	struct ks_scan_limits limits;
	size_t values;
	unsigned depth;
	bool is_object[KS_SCAN_DEPTH_MAX + 1];
	uint64_t serial[KS_SCAN_DEPTH_MAX + 1]; /* of the container at that depth, to tell the keys of objects apart */
	uint64_t containers;
	struct keys keys;
};

static int not_json(struct scan *scan, const char *what)
{
	return ks_fail(scan->err, KS_E_PARSE, "not JSON: %s at byte %zu", what, scan->at);
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9E3779B97F4A7C15u; /* odd, from the golden ratio */
	return hash ^ hash >> 29;
}

static uint64_t *keys_slot(uint64_t *slots, size_t size, uint64_t hash)
{
	size_t i = (size_t)hash & (size - 1);

	while (slots[i] != 0 && slots[i] != hash)
		i = (i + 1) & (size - 1);
	return &slots[i];
}

static int keys_grow(struct keys *keys)
{
	size_t size = keys->size * 4;
	uint64_t *slots = calloc(size, sizeof(*slots));

	if (!slots)
		return -1;
	for (size_t i = 0; i < keys->size; i++)
		if (keys->slots[i])
			*keys_slot(slots, size, keys->slots[i]) = keys->slots[i];
	if (keys->slots != keys->few)
		free(keys->slots);
	keys->slots = slots;
	keys->size = size;
	return 0;
}

static int add_key(struct scan *scan, uint64_t hash, size_t start)
{
	struct keys *keys = &scan->keys;

	hash = mix(hash, scan->serial[scan->depth]);
	hash = mix(hash, hash >> 32);
	hash = hash ? hash : 1; /* 0 is the empty slot */
	if (keys->used * 2 >= keys->size && keys_grow(keys) < 0)
		return ks_fail(scan->err, KS_E_INTERNAL, "out of memory");
	uint64_t *slot = keys_slot(keys->slots, keys->size, hash);
	if (*slot)
		return ks_fail(scan->err, KS_E_INVALID_REQUEST, "a key stands twice in one object, at byte %zu", start);
	*slot = hash;
	keys->used++;
	return 0;
}

static int hex4(struct scan *scan, unsigned *ret)
{
	unsigned value = 0;

	for (unsigned i = 0; i < 4; i++, scan->at++) {
		unsigned char c = scan->at < scan->len ? scan->line[scan->at] : 0;
		unsigned digit = c - (unsigned)'0';

		if (digit > 9)
			digit = (c | 0x20u) - (unsigned)'a' < 6 ? (c | 0x20u) - (unsigned)'a' + 10 : 16;
		if (digit > 15)
			return not_json(scan, "\\u needs four hexadecimal digits");
		value = value << 4 | digit;
	}
	*ret = value;
	return 0;
}

/* Behind \u. */
static int scan_code_point(struct scan *scan, unsigned *ret)
{
	unsigned high = 0, low = 0;

	if (hex4(scan, &high) < 0)
		return -1;
	if (high >= 0xDC00 && high <= 0xDFFF)
		return not_json(scan, "a low surrogate without the high one, before");
	if (high >= 0xD800 && high <= 0xDBFF) {
		if (scan->len - scan->at < 2 || memcmp(scan->line + scan->at, "\\u", 2) != 0)
			return not_json(scan, "a high surrogate without the low one");
		scan->at += 2;
		if (hex4(scan, &low) < 0)
			return -1;
		if (low < 0xDC00 || low > 0xDFFF)
			return not_json(scan, "a high surrogate without the low one, before");
		high = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
	}
	*ret = high;
	return 0;
}

/* Behind a backslash; *ret is the code point that it stands for. */
static int scan_escape(struct scan *scan, unsigned *ret)
{
	static const char names[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
	unsigned char c = scan->at < scan->len ? scan->line[scan->at] : 0;

	if (c == 'u') {
		scan->at++;
		return scan_code_point(scan, ret);
	}
	const char *name = c ? strchr(names, c) : NULL;
	if (!name)
		return not_json(scan, "an unknown escape");
	*ret = (unsigned char)meanings[name - names];
	scan->at++;
	return 0;
}

/* An escaped code point must hash like the bytes that spell it plainly. */
static uint64_t hash_code_point(uint64_t hash, unsigned code)
{
	if (code < 0x80)
		return mix(hash, code);
	if (code < 0x800) {
		hash = mix(hash, 0xC0 | code >> 6);
	} else {
		if (code < 0x10000) {
			hash = mix(hash, 0xE0 | code >> 12);
		} else {
			hash = mix(hash, 0xF0 | code >> 18);
			hash = mix(hash, 0x80 | (code >> 12 & 0x3F));
		}
		hash = mix(hash, 0x80 | (code >> 6 & 0x3F));
	}
	return mix(hash, 0x80 | (code & 0x3F));
}

/* At the opening quote. `hash` is set for keys only: the hash of the unescaped bytes. */
static int scan_string(struct scan *scan, uint64_t *hash)
{
	unsigned state = KS_UTF8_OK, code = 0;

	scan->at++;
	while (scan->at < scan->len) {
		unsigned char c = scan->line[scan->at];

		state = ks_utf8_step(state, c);
		if (state == KS_UTF8_BAD)
			return not_json(scan, "invalid UTF-8");
		if (c == '"') {
			scan->at++;
			return 0;
		}
		if (c < 0x20)
			return not_json(scan, "a raw control character in a string");
		scan->at++;
		if (c != '\\') {
			if (hash)
				*hash = mix(*hash, c);
			continue;
		}
		if (scan_escape(scan, &code) < 0)
			return -1;
		if (hash && code == 0)
			return ks_fail(scan->err, KS_E_INVALID_REQUEST, "a key holds NUL, before byte %zu", scan->at);
		if (hash)
			*hash = hash_code_point(*hash, code);
	}
	return not_json(scan, "a string without end");
}

static size_t count_digits(const struct scan *scan, size_t at)
{
	size_t start = at;

	while (at < scan->len && scan->line[at] >= '0' && scan->line[at] <= '9')
		at++;
	return at - start;
}

/* No field takes a fraction or an exponent: decoding refuses them with the field's name. Here only their size matters,
 * so that json-c never sees an infinity. */
static bool number_in_range(const struct scan *scan, size_t digits_at, size_t digits, int64_t exponent)
{
	uint64_t value = 0;

	if (digits > 16 || exponent > 15)
		return false;
	for (size_t i = 0; i < digits; i++)
		value = value * 10 + (scan->line[digits_at + i] - (unsigned)'0');
	return value <= MAX_INTEGER;
}

static int scan_number(struct scan *scan)
{
	size_t start = scan->at, digits_at, digits;
	bool negative = false;
	int64_t exponent = 0;

	if (scan->line[scan->at] == '-')
		scan->at++;
	digits_at = scan->at;
	digits = count_digits(scan, scan->at);
	if (digits == 0)
		return not_json(scan, "a number without digits");
	if (digits > 1 && scan->line[digits_at] == '0')
		return not_json(scan, "a number with a leading zero");
	scan->at += digits;
	if (scan->at < scan->len && scan->line[scan->at] == '.') {
		scan->at++;
		size_t fraction = count_digits(scan, scan->at);
		if (fraction == 0)
			return not_json(scan, "a number without digits behind the point");
		scan->at += fraction;
	}
	if (scan->at < scan->len && (scan->line[scan->at] | 0x20) == 'e') {
		scan->at++;
		if (scan->at < scan->len && (scan->line[scan->at] == '+' || scan->line[scan->at] == '-'))
			negative = scan->line[scan->at++] == '-';
		size_t places = count_digits(scan, scan->at);
		if (places == 0)
			return not_json(scan, "a number without digits in the exponent");
		for (size_t i = 0; i < places && exponent < 1000; i++)
			exponent = exponent * 10 + (scan->line[scan->at + i] - '0');
		scan->at += places;
	}
	if (!number_in_range(scan, digits_at, digits, negative ? 0 : exponent))
		return ks_fail(scan->err, KS_E_INVALID_REQUEST, "the number at byte %zu is beyond 2^53", start);
	return 0;
}

static int scan_word(struct scan *scan, const char *word)
{
	size_t len = strlen(word);

	if (scan->len - scan->at < len || memcmp(scan->line + scan->at, word, len) != 0)
		return not_json(scan, "an unknown word");
	scan->at += len;
	return 0;
}

static int open_container(struct scan *scan, bool is_object)
{
	if (scan->depth >= scan->limits.depth)
		return ks_fail(scan->err, KS_E_INVALID_REQUEST, "nested deeper than %u at byte %zu", scan->limits.depth,
			       scan->at);
	scan->depth++;
	scan->is_object[scan->depth] = is_object;
	scan->serial[scan->depth] = ++scan->containers;
	scan->at++;
	return 0;
}

/* At the first byte of a value. */
static int scan_value(struct scan *scan, unsigned char c, enum expect *expect)
{
	if (++scan->values > scan->limits.values)
		return ks_fail(scan->err, KS_E_INVALID_REQUEST, "more than %zu values, at byte %zu",
			       scan->limits.values, scan->at);
	*expect = scan->depth ? COMMA_OR_END : NOTHING;
	switch (c) {
	case '{':
		*expect = KEY_OR_END;
		return open_container(scan, true);
	case '[':
		*expect = VALUE_OR_END;
		return open_container(scan, false);
	case '"':
		return scan_string(scan, NULL);
	case 't':
		return scan_word(scan, "true");
	case 'f':
		return scan_word(scan, "false");
	case 'n':
		return scan_word(scan, "null");
	case 'N':
	case 'I':
		return not_json(scan, "NaN and Infinity are not JSON numbers");
	case '\'':
		return not_json(scan, "strings need double quotes");
	case '/':
		return not_json(scan, "comments are not JSON");
	case ']':
	case '}':
	case ',':
		return not_json(scan, "a value is missing");
	default:
		if (c == '-' || (c >= '0' && c <= '9'))
			return scan_number(scan);
		return not_json(scan, "no value starts like this");
	}
}

static int close_container(struct scan *scan, unsigned char c, enum expect *expect)
{
	if (scan->depth == 0 || c != (scan->is_object[scan->depth] ? '}' : ']'))
		return not_json(scan, scan->depth ? "the wrong closing bracket" : "a closing bracket too many");
	scan->depth--;
	scan->at++;
	*expect = scan->depth ? COMMA_OR_END : NOTHING;
	return 0;
}

static int scan_key(struct scan *scan, unsigned char c, enum expect *expect)
{
	uint64_t hash = scan->keys.seed;
	size_t start = scan->at;

	if (c != '"')
		return not_json(scan, c == '}' ? "a trailing comma" : "a key in double quotes is missing");
	if (scan_string(scan, &hash) < 0)
		return -1;
	*expect = COLON;
	return add_key(scan, hash, start);
}

/* One token at scan->at, which is not white space. */
static int scan_token(struct scan *scan, enum expect *expect)
{
	unsigned char c = scan->line[scan->at];

	switch (*expect) {
	case VALUE_OR_END:
	case KEY_OR_END:
		if (c == '}' || c == ']')
			return close_container(scan, c, expect);
		return *expect == KEY_OR_END ? scan_key(scan, c, expect) : scan_value(scan, c, expect);
	case VALUE:
		if (c == ']' && scan->depth && !scan->is_object[scan->depth])
			return not_json(scan, "a trailing comma");
		return scan_value(scan, c, expect);
	case KEY:
		return scan_key(scan, c, expect);
	case COLON:
		if (c != ':')
			return not_json(scan, "a colon is missing");
		scan->at++;
		*expect = VALUE;
		return 0;
	case COMMA_OR_END:
		if (c != ',')
			return c == '}' || c == ']' ? close_container(scan, c, expect)
						    : not_json(scan, "a comma is missing");
		scan->at++;
		*expect = scan->is_object[scan->depth] ? KEY : VALUE;
		return 0;
	case NOTHING:
	default:
		return not_json(scan, "something behind the end of the value");
	}
}

static int scan_all(struct scan *scan)
{
	enum expect expect = VALUE;

	if (scan->len >= 3 && memcmp(scan->line, "\xEF\xBB\xBF", 3) == 0)
		return ks_fail(scan->err, KS_E_PARSE,
			       "the line starts with a byte order mark (U+FEFF); send UTF-8 without one");
	while (scan->at < scan->len) {
		unsigned char c = scan->line[scan->at];

		if (c == ' ' || c == '\t' || c == '\n' || c == '\r')
			scan->at++;
		else if (scan_token(scan, &expect) < 0)
			return -1;
	}
	return expect == NOTHING ? 0 : not_json(scan, "the text ends too early,");
}

int ks_json_scan(const char *line, size_t len, const struct ks_scan_limits *limits, struct ks_error *err)
{
	struct scan scan = { .line = (const unsigned char *)line, .len = len, .err = err };
	static uint64_t seed; /* one a process; the program has one thread */

	scan.limits = limits ? *limits : (struct ks_scan_limits){ KS_SCAN_DEPTH, KS_SCAN_VALUES };
	if (scan.limits.depth > KS_SCAN_DEPTH_MAX)
		scan.limits.depth = KS_SCAN_DEPTH_MAX;
	if (seed == 0 && getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		seed = (uintptr_t)&scan; /* no entropy yet: the address of the stack has to do */
	scan.keys.seed = seed;
	scan.keys.slots = scan.keys.few;
	scan.keys.size = KEY_SLOTS;
	int result = scan_all(&scan);
	if (scan.keys.slots != scan.keys.few)
		free(scan.keys.slots);
	return result;
}

static struct json_object *parse(const char *line, size_t len, const struct ks_scan_limits *limits, struct ks_error *err)
{
	if (len > INT_MAX / 2) { /* json-c counts in int */
		(void)ks_fail(err, KS_E_INVALID_REQUEST, "%zu bytes are too many for one message", len);
		return NULL;
	}
	if (ks_json_scan(line, len, limits, err) < 0)
		return NULL;

	/* json-c counts the level of the scalars, too */
	struct json_tokener *tokener = json_tokener_new_ex(KS_SCAN_DEPTH + 2);
	if (!tokener) {
		(void)ks_fail(err, KS_E_INTERNAL, "out of memory");
		return NULL;
	}
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
	struct json_object *value = json_tokener_parse_ex(tokener, line, (int)len);
	enum json_tokener_error status = json_tokener_get_error(tokener);
	size_t end = json_tokener_get_parse_end(tokener);
	if (status == json_tokener_continue) { /* a number at the top could go on: a NUL ends it */
		value = json_tokener_parse_ex(tokener, "", 1);
		status = json_tokener_get_error(tokener);
		end = len;
	}
	json_tokener_free(tokener);
	if (status == json_tokener_success && end == len && value)
		return value;
	json_object_put(value);
	if (status == json_tokener_success && !value)
		(void)ks_fail(err, KS_E_INVALID_REQUEST, "the message is null");
	else
		(void)ks_fail(err, KS_E_PARSE, "not JSON: %s at byte %zu", json_tokener_error_desc(status), end);
	return NULL;
}

struct json_object *ks_json_parse(const char *line, size_t len, struct ks_error *err)
{
	return parse(line, len, NULL, err);
}

struct json_object *ks_json_parse_own(const char *text, size_t len, struct ks_error *err)
{
	static const struct ks_scan_limits any = { .depth = KS_SCAN_DEPTH, .values = SIZE_MAX };

	return parse(text, len, &any, err);
}
