/* write.c: see write.h. One walk over the bytes serves writing and measuring. */
#include "write.h"

#include <string.h>

#include <nettle/base64.h>

#include "proto/messages.h"

/* 1: ends a run of plain bytes: must be escaped, or starts a sequence that has to be looked at. */
#define ONES16 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1
static const uint8_t special[256] = {
	[0x00] = ONES16, ONES16, [0x22] = 1, [0x5C] = 1, [0x7F] = 1,			     /* C0, ", \, DEL */
	ONES16,		 ONES16, ONES16,     ONES16,	 ONES16,     ONES16, ONES16, ONES16, /* 80..FF */
};
#undef ONES16

static void put(struct ks_buf *buf, size_t *size, const void *data, size_t len)
{
	*size += len;
	if (buf)
		ks_buf_add(buf, data, len);
}

static void put_ascii(struct ks_buf *buf, size_t *size, unsigned char c)
{
	static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt", hex[] = "0123456789abcdef";
	char text[6] = { '\\', 'u', '0', '0', hex[c >> 4], hex[c & 15] };
	const char *short_form = c ? strchr(from, c) : NULL;

	if (short_form)
		text[1] = to[short_form - from];
	put(buf, size, text, short_form ? 2 : 6);
}

/* The bytes at `data` start with one that is not ASCII. Writes one code point or U+FFFD; returns the bytes taken. */
static size_t put_sequence(struct ks_buf *buf, size_t *size, const unsigned char *data, size_t len)
{
	unsigned state = KS_UTF8_OK;
	size_t taken = 0;

	do {
		unsigned next = ks_utf8_step(state, data[taken]);
		if (next == KS_UTF8_BAD)
			break;
		state = next;
		taken++;
	} while (taken < len && state != KS_UTF8_OK);

	if (taken == 0 || state != KS_UTF8_OK) { /* the maximal subpart, at least one byte */
		put(buf, size, "\xEF\xBF\xBD", 3);
		return taken ? taken : 1;
	}
	if (taken == 2 && memcmp(data, "\xC2\x85", 2) == 0)
		put(buf, size, "\\u0085", 6);
	else if (taken == 3 && memcmp(data, "\xE2\x80\xA8", 3) == 0)
		put(buf, size, "\\u2028", 6);
	else if (taken == 3 && memcmp(data, "\xE2\x80\xA9", 3) == 0)
		put(buf, size, "\\u2029", 6);
	else
		put(buf, size, data, taken);
	return taken;
}

/* Without a buffer it only measures. */
static size_t escape(struct ks_buf *buf, const void *data, size_t len)
{
	const unsigned char *bytes = data;
	size_t size = 0, at = 0;

	put(buf, &size, "\"", 1);
	while (at < len) {
		size_t start = at;
		while (at < len && !special[bytes[at]])
			at++;
		if (at > start)
			put(buf, &size, bytes + start, at - start);
		if (at == len)
			break;
		if (bytes[at] < 0x80)
			put_ascii(buf, &size, bytes[at++]);
		else
			at += put_sequence(buf, &size, bytes + at, len - at);
	}
	put(buf, &size, "\"", 1);
	return size;
}

static void separate(struct ks_buf *buf)
{
	char last = buf->len ? buf->data[buf->len - 1] : '\n';

	if (last != '{' && last != '[' && last != ':' && last != '\n')
		ks_buf_char(buf, ',');
}

void ks_write_open(struct ks_buf *buf, char bracket)
{
	separate(buf);
	ks_buf_char(buf, bracket);
}

void ks_write_close(struct ks_buf *buf, char bracket)
{
	ks_buf_char(buf, bracket);
}

void ks_write_key(struct ks_buf *buf, const char *key)
{
	ks_write_string(buf, key);
	ks_buf_char(buf, ':');
}

/* A result has some fifteen of them: without the generality of printf they cost a tenth. */
void ks_write_int(struct ks_buf *buf, int64_t value)
{
	char text[20]; /* "-9223372036854775808" */
	size_t at = sizeof(text);
	uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;

	do
		text[--at] = (char)('0' + rest % 10);
	while ((rest /= 10) > 0);
	if (value < 0)
		text[--at] = '-';
	separate(buf);
	ks_buf_add(buf, text + at, sizeof(text) - at);
}

void ks_write_bool(struct ks_buf *buf, bool value)
{
	separate(buf);
	ks_buf_str(buf, value ? "true" : "false");
}

void ks_write_string(struct ks_buf *buf, const char *text)
{
	ks_write_utf8_lossy(buf, text, strlen(text));
}

void ks_write_utf8_lossy(struct ks_buf *buf, const void *data, size_t len)
{
	separate(buf);
	(void)escape(buf, data, len);
}

void ks_write_base64(struct ks_buf *buf, const void *data, size_t len)
{
	separate(buf);
	ks_buf_char(buf, '"');
	char *to = ks_buf_reserve(buf, BASE64_ENCODE_RAW_LENGTH(len) + 1);
	if (to) {
		base64_encode_raw(to, len, data);
		buf->len += BASE64_ENCODE_RAW_LENGTH(len);
	}
	ks_buf_char(buf, '"');
}

void ks_write_raw(struct ks_buf *buf, const char *json, size_t len)
{
	separate(buf);
	ks_buf_add(buf, json, len);
}

void ks_write_text(struct ks_buf *buf, int encoding, const void *data, size_t len)
{
	if (encoding == KS_ENCODING_UTF8 || (encoding == KS_ENCODING_AUTO && ks_utf8_valid(data, len))) {
		ks_write_utf8_lossy(buf, data, len);
		return;
	}
	ks_write_open(buf, '{');
	ks_write_key(buf, "base64");
	ks_write_base64(buf, data, len);
	ks_write_close(buf, '}');
}

void ks_write_key_string(struct ks_buf *buf, const char *key, const char *text)
{
	if (!text)
		return;
	ks_write_key(buf, key);
	ks_write_string(buf, text);
}

void ks_write_key_int(struct ks_buf *buf, const char *key, int64_t value)
{
	if (value == KS_ABSENT)
		return;
	ks_write_key(buf, key);
	ks_write_int(buf, value);
}

void ks_write_key_bool(struct ks_buf *buf, const char *key, bool value)
{
	ks_write_key(buf, key);
	ks_write_bool(buf, value);
}

size_t ks_json_escaped_size(const void *data, size_t len)
{
	return escape(NULL, data, len);
}

size_t ks_json_base64_size(size_t len)
{
	return BASE64_ENCODE_RAW_LENGTH(len) + 2;
}

static void new_line(struct ks_buf *buf, size_t depth)
{
	ks_buf_char(buf, '\n');
	while (depth-- > 0)
		ks_buf_char(buf, '\t');
}

void ks_json_indent(struct ks_buf *buf, const char *json, size_t len)
{
	size_t depth = 0;
	bool in_string = false;

	for (size_t i = 0; i < len; i++) {
		char c = json[i];
		bool opens = !in_string && (c == '{' || c == '['), closes = !in_string && (c == '}' || c == ']');
		bool empty = opens && i + 1 < len && json[i + 1] == (c == '{' ? '}' : ']');

		if (c == '"')
			in_string = !in_string;
		if (closes)
			new_line(buf, --depth);
		ks_buf_char(buf, c);
		if (empty || (in_string && c == '\\'))
			ks_buf_char(buf, json[++i]);
		else if (opens)
			new_line(buf, ++depth);
		else if (!in_string && c == ',')
			new_line(buf, depth);
		else if (!in_string && c == ':')
			ks_buf_char(buf, ' ');
	}
}

void ks_write_path(struct ks_buf *buf, const char *path, size_t len)
{
	if (ks_utf8_valid(path, len)) {
		ks_write_key(buf, "path");
		ks_write_utf8_lossy(buf, path, len);
	} else {
		ks_write_key(buf, "pathBase64");
		ks_write_base64(buf, path, len);
	}
}
