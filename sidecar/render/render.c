#include "render.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "render/clean.h"

#define MARKER_MAX 96

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

static void clean(struct ks_buf *out, const char *data, size_t len)
{
	struct ks_clean state;

	ks_clean_begin(&state, out);
	ks_clean_feed(&state, data, len);
	ks_clean_end(&state);
}

/* What begins in the middle of a line stands at the beginning of one now. */
static void add_tail(struct ks_buf *out, const char *tail, size_t len)
{
	const char *lf = memchr(tail, '\n', len);

	if (ks_glyph_framed(tail, lf ? (size_t)(lf - tail) : len))
		ks_buf_str(out, "| ");
	ks_buf_add(out, tail, len);
}

/* ---- long lines ---- */

static void add_line(struct ks_buf *out, const char *line, size_t len)
{
	char marker[MARKER_MAX];
	const size_t count = len > KS_RENDER_LINE ? ks_glyph_count(line, len) : 0;

	if (count <= KS_RENDER_LINE) {
		ks_buf_add(out, line, len);
		return;
	}
	const size_t room = KS_RENDER_LINE - MARKER_MAX, head = room * 2 / 3, tail = room - head;
	const size_t from = ks_glyph_offset(line, len, count - tail);
	(void)snprintf(marker, sizeof(marker), "\n[sandbox: %zu characters of this line left out]\n", count - head - tail);
	ks_buf_add(out, line, ks_glyph_offset(line, len, head));
	ks_buf_str(out, marker);
	add_tail(out, line + from, len - from);
}

static void add_lines(struct ks_buf *out, const struct ks_buf *text)
{
	for (size_t at = 0; at < text->len;) {
		const char *lf = memchr(text->data + at, '\n', text->len - at);
		const size_t len = lf ? (size_t)(lf - text->data) - at : text->len - at;
		add_line(out, text->data + at, len);
		if (lf)
			ks_buf_char(out, '\n');
		at += len + (lf ? 1 : 0);
	}
	out->failed |= text->failed;
}

/* ---- head and tail ---- */

struct ends {
	struct ks_buf head, tail; /* the same text twice when `gap` is 0: tail is empty then */
	size_t gap;		  /* bytes between them, not looked at */
};

/* At most `count` characters, and a whole number of lines if that does not cost a quarter of them. */
static size_t head_end(const struct ks_buf *text, size_t count)
{
	const size_t end = ks_glyph_offset(text->data, text->len, count);
	const char *lf = end > 0 ? memrchr(text->data + end - end / 4, '\n', end / 4) : NULL;

	return lf ? (size_t)(lf - text->data) + 1 : end;
}

static size_t tail_begin(const struct ks_buf *text, size_t count)
{
	const size_t all = ks_glyph_count(text->data, text->len);
	const size_t begin = ks_glyph_offset(text->data, text->len, all > count ? all - count : 0);
	const char *lf = begin < text->len ? memchr(text->data + begin, '\n', (text->len - begin) / 4) : NULL;

	return begin == 0 ? 0 : lf ? (size_t)(lf - text->data) + 1 : begin;
}

static void fit(struct ks_buf *out, const struct ends *ends, size_t max_chars, enum ks_keep keep)
{
	const struct ks_buf *head = &ends->head, *tail = ends->gap ? &ends->tail : &ends->head;
	const size_t all = ks_glyph_count(head->data, head->len) + (ends->gap ? ends->gap + ks_glyph_count(tail->data, tail->len) : 0);
	char marker[MARKER_MAX];

	if (!ends->gap && all <= max_chars) {
		ks_buf_add(out, head->data, head->len);
		return;
	}
	/* the widest that the marker can be, two LF and a quote */
	const size_t reserve = (size_t)snprintf(marker, sizeof(marker), "[sandbox: about %zu characters left out]", all) + 4;
	const size_t room = max_chars > reserve ? max_chars - reserve : 0;
	const size_t head_room = keep == KS_KEEP_HEAD ? room - room / 3 : room / 3;
	const size_t end = head_end(head, head_room), begin = tail_begin(tail, room - head_room);
	const size_t kept = ks_glyph_count(head->data, end) + ks_glyph_count(tail->data + begin, tail->len - begin);

	int len = snprintf(marker, sizeof(marker), "[sandbox: %s%zu characters left out]\n", ends->gap ? "about " : "", all - kept);
	ks_buf_add(out, head->data, end);
	if (end > 0 && head->data[end - 1] != '\n')
		ks_buf_char(out, '\n');
	ks_buf_add(out, marker, smaller((size_t)len, max_chars));
	if (begin < tail->len)
		add_tail(out, tail->data + begin, tail->len - begin);
}

static bool has_long_line(const struct ks_buf *text)
{
	for (size_t at = 0; at < text->len;) {
		const char *lf = memchr(text->data + at, '\n', text->len - at);
		const size_t end = lf ? (size_t)(lf - text->data) : text->len;
		if (end - at > KS_RENDER_LINE) /* bytes: it may be */
			return true;
		at = end + 1;
	}
	return false;
}

/* `out` is empty. */
static void clean_part(struct ks_buf *out, const char *data, size_t len)
{
	KS_AUTOBUF struct ks_buf text = { 0 };

	if (len > 0)
		(void)ks_buf_reserve(&text, len); /* what cleaning gives is rarely longer */
	clean(&text, data, len);
	if (has_long_line(&text))
		add_lines(out, &text);
	else
		*out = KS_TAKE(text, (struct ks_buf){ 0 });
}

void ks_render_text(struct ks_buf *out, const char *data, size_t len, size_t max_chars, enum ks_keep keep)
{
	const size_t window = max_chars > KS_RENDER_WINDOW / 2 ? 2 * max_chars : KS_RENDER_WINDOW;
	struct ends ends = { 0 };
	size_t end = len, begin = len;

	if (len > 2 * window) {
		/* lines end every escape sequence: there the state of a cleaner is known */
		const char *last = memrchr(data + window / 2, '\n', window / 2);
		const char *first = memchr(data + len - window, '\n', window / 2);
		end = last ? (size_t)(last - data) + 1 : ks_utf8_complete_prefix(data, window);
		begin = first ? (size_t)(first - data) + 1 : len - window;
		for (int i = 0; !first && i < 3 && ((unsigned char)data[begin] & 0xC0) == 0x80; i++)
			begin++;
		ends.gap = begin - end;
		clean_part(&ends.tail, data + begin, len - begin);
	}
	clean_part(&ends.head, data, end);
	fit(out, &ends, max_chars, keep);
	out->failed |= ends.head.failed | ends.tail.failed;
	ks_buf_free(&ends.head);
	ks_buf_free(&ends.tail);
}

/* ---- words ---- */

static size_t word_point(const char *data, size_t len, char text[16])
{
	static const char *const named[] = { ['\t'] = "\\t", ['\n'] = "\\n", ['\r'] = "\\r", [0x0E] = NULL };
	size_t bytes = 1;
	unsigned state = ks_utf8_step(KS_UTF8_OK, (unsigned char)data[0]);

	while (state != KS_UTF8_OK && state != KS_UTF8_BAD && bytes < len)
		state = ks_utf8_step(state, (unsigned char)data[bytes++]);
	if (state != KS_UTF8_OK) {
		(void)snprintf(text, 16, "\\x%02x", (unsigned char)data[0]);
		return 1;
	}
	const uint32_t point = ks_glyph_first(data, bytes, &bytes);
	const enum ks_glyph glyph = ks_glyph_of(point);
	if (point < KS_COUNT(named) && named[point])
		(void)snprintf(text, 16, "%s", named[point]);
	else if (point < 0x20 || point == 0x7F)
		(void)snprintf(text, 16, "\\x%02x", (unsigned)point);
	else if (glyph == KS_GLYPH_CONTROL || glyph == KS_GLYPH_SHOWN || glyph == KS_GLYPH_LINE || glyph == KS_GLYPH_SELECTOR)
		(void)snprintf(text, 16, "\\u{%x}", (unsigned)point);
	else
		(void)snprintf(text, 16, "%.*s", (int)bytes, data);
	return bytes;
}

void ks_render_word(struct ks_buf *out, const char *data, size_t len, size_t max_chars)
{
	char text[16];
	size_t chars = 0;

	for (size_t at = 0; at < len;) {
		const size_t bytes = word_point(data + at, len - at, text);
		const size_t more = ks_glyph_count(text, strlen(text));
		if (chars + more + (at + bytes < len ? 1 : 0) > max_chars) {
			if (chars < max_chars)
				ks_buf_str(out, "\xE2\x80\xA6");
			return;
		}
		ks_buf_str(out, text);
		chars += more;
		at += bytes;
	}
}

bool ks_render_source(struct ks_buf *out, const char *data, size_t len)
{
	char text[16];
	bool any = false;

	for (size_t at = 0, bytes; at < len; at += bytes) {
		const uint32_t point = ks_glyph_first(data + at, len - at, &bytes);
		const enum ks_glyph glyph = ks_glyph_of(point);
		if ((glyph == KS_GLYPH_CONTROL && point != '\r') || glyph == KS_GLYPH_SHOWN || (glyph == KS_GLYPH_LINE && point != '\n')) {
			(void)word_point(data + at, bytes, text);
			ks_buf_str(out, text);
			any = true;
		} else {
			ks_buf_add(out, data + at, bytes);
		}
	}
	return any;
}
