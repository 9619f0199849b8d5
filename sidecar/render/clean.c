#include "clean.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

enum { TEXT, ESCAPE, INTERMEDIATE, CSI, STRING, STRING_ESCAPE };

#define ESC 0x1B
#define CAN 0x18
#define SUB 0x1A
#define BEL 0x07
#define ST 0x9C
#define REPLACEMENT 0xFFFD

/* ---- the line ---- */

static void end_line(struct ks_clean *clean, bool with_lf)
{
	if (ks_glyph_framed(clean->line.data, clean->line.len))
		ks_buf_str(clean->out, "| ");
	ks_buf_add(clean->out, clean->line.data, clean->line.len);
	if (with_lf)
		ks_buf_char(clean->out, '\n');
	clean->out->failed |= clean->line.failed;
	ks_buf_clear(&clean->line);
	clean->carriage = false;
	clean->blanks = 0;
	clean->before = 0;
}

/* Bytes of one code point, or of several that are alike here. */
static void put(struct ks_clean *clean, const char *bytes, size_t len, uint32_t point)
{
	if (clean->carriage && (point == ' ' || point == '\t')) {
		clean->blanks++; /* blanks alone wipe a progress bar away; they do not replace it */
		return;
	}
	if (clean->carriage) {
		clean->out->failed |= clean->line.failed;
		ks_buf_clear(&clean->line);
		for (; clean->blanks > 0; clean->blanks--)
			ks_buf_char(&clean->line, ' ');
		clean->carriage = false;
	}
	ks_buf_add(&clean->line, bytes, len);
	clean->before = point;
}

static void put_shown(struct ks_clean *clean, uint32_t point)
{
	char text[16];
	const int len = snprintf(text, sizeof(text), "\\u{%x}", (unsigned)point);

	put(clean, text, (size_t)len, '}');
}

/* ---- code points ---- */

static void begin_sequence(struct ks_clean *clean, int state)
{
	clean->state = state;
	clean->sequence = 0;
}

/* The 8-bit forms, as code points: a raw byte of them is not UTF-8. */
static void on_control(struct ks_clean *clean, uint32_t point)
{
	if (point == '\r') {
		clean->carriage = true;
		clean->blanks = 0;
	} else if (point == 0) {
		put(clean, "\xE2\x90\x80", 3, 0x2400);
	} else if (point == ESC) {
		begin_sequence(clean, ESCAPE);
	} else if (point == 0x9B) {
		begin_sequence(clean, CSI);
	} else if (point == 0x90 || point == 0x98 || (point >= 0x9D && point <= 0x9F)) {
		begin_sequence(clean, STRING);
	}
}

static void on_text(struct ks_clean *clean, uint32_t point, const char *bytes, size_t len)
{
	const enum ks_glyph glyph = ks_glyph_of(point);

	if (glyph == KS_GLYPH_LINE)
		end_line(clean, true);
	else if (glyph == KS_GLYPH_CONTROL)
		on_control(clean, point);
	else if (glyph == KS_GLYPH_SHOWN || (glyph == KS_GLYPH_SELECTOR && (clean->carriage || clean->before == 0 ||
									     ks_glyph_of(clean->before) == KS_GLYPH_SELECTOR)))
		put_shown(clean, point);
	else
		put(clean, bytes, len, point);
}

/* Inside a sequence that is no string: the next state, or TEXT for what ends it. */
static int next_state(int state, uint32_t point)
{
	if (state == CSI)
		return point >= 0x20 && point <= 0x3F ? CSI : TEXT;
	if (point >= 0x20 && point <= 0x2F)
		return INTERMEDIATE;
	if (state == ESCAPE && point == '[')
		return CSI;
	if (state == ESCAPE && point < 0x80 && strchr("]P_^X", (int)point))
		return STRING;
	return TEXT;
}

static void on_sequence(struct ks_clean *clean, uint32_t point, const char *bytes, size_t len)
{
	const bool control = point < 0x20 && ks_glyph_of(point) == KS_GLYPH_CONTROL;

	clean->sequence += len;
	if (point == ESC) {
		begin_sequence(clean, ESCAPE);
	} else if (point == CAN || point == SUB) {
		clean->state = TEXT;
	} else if (point == 0x7F || (control && point != '\r')) {
		/* a terminal acts on it and goes on with the sequence */
	} else if (point < 0x20 || point >= 0x80 || clean->sequence > KS_CLEAN_SEQUENCE) {
		clean->state = TEXT; /* it was none */
		on_text(clean, point, bytes, len);
	} else {
		const int state = next_state(clean->state, point);
		if (state == STRING)
			begin_sequence(clean, STRING);
		clean->state = state;
	}
}

static void on_string(struct ks_clean *clean, uint32_t point, const char *bytes, size_t len)
{
	clean->sequence += len;
	if (point == ESC) {
		clean->state = STRING_ESCAPE;
	} else if (point == BEL || point == ST || point == CAN || point == SUB) {
		clean->state = TEXT;
	} else if (point == '\r' || ks_glyph_of(point) == KS_GLYPH_LINE || clean->sequence > KS_CLEAN_STRING) {
		clean->state = TEXT; /* a string without an end must not swallow what is printed after it */
		on_text(clean, point, bytes, len);
	}
}

static void on_point(struct ks_clean *clean, uint32_t point, const char *bytes, size_t len)
{
	if (clean->state == STRING_ESCAPE) {
		begin_sequence(clean, ESCAPE); /* ESC \ is the end; any other sequence is the end, too, and itself */
		if (point == '\\') {
			clean->state = TEXT;
			return;
		}
	}
	if (clean->state == TEXT)
		on_text(clean, point, bytes, len);
	else if (clean->state == STRING)
		on_string(clean, point, bytes, len);
	else
		on_sequence(clean, point, bytes, len);
}

/* ---- bytes ---- */

static void on_invalid(struct ks_clean *clean)
{
	clean->utf8 = KS_UTF8_OK;
	clean->held_len = 0;
	on_point(clean, REPLACEMENT, "\xEF\xBF\xBD", 3);
}

static void on_byte(struct ks_clean *clean, char byte)
{
	unsigned next = ks_utf8_step(clean->utf8, (unsigned char)byte);
	size_t len;

	if (next == KS_UTF8_BAD && clean->held_len > 0) {
		on_invalid(clean); /* what was held; the byte may begin anew */
		next = ks_utf8_step(KS_UTF8_OK, (unsigned char)byte);
	}
	if (next == KS_UTF8_BAD) {
		on_invalid(clean);
		return;
	}
	clean->held[clean->held_len++] = byte;
	clean->utf8 = next;
	if (next != KS_UTF8_OK)
		return;
	const uint32_t point = ks_glyph_first(clean->held, clean->held_len, &len);
	clean->held_len = 0;
	on_point(clean, point, clean->held, len);
}

/* Printable ASCII from `at` on: most of what is ever printed. */
static size_t plain_run(const char *data, size_t len)
{
	size_t n = 0;

	while (n < len && data[n] >= 0x20 && data[n] <= 0x7E)
		n++;
	return n;
}

void ks_clean_begin(struct ks_clean *clean, struct ks_buf *out)
{
	*clean = (struct ks_clean){ .out = out, .utf8 = KS_UTF8_OK, .state = TEXT };
}

void ks_clean_feed(struct ks_clean *clean, const char *data, size_t len)
{
	for (size_t at = 0; at < len;) {
		const bool plain = clean->state == TEXT && clean->held_len == 0;
		const size_t run = plain && !clean->carriage ? plain_run(data + at, len - at) : 0;
		if (run > 0)
			put(clean, data + at, run, (unsigned char)data[at + run - 1]);
		else if (plain && data[at] == '\n')
			end_line(clean, true);
		else
			on_byte(clean, data[at]);
		at += run > 0 ? run : 1;
	}
}

void ks_clean_end(struct ks_clean *clean)
{
	if (clean->held_len > 0)
		on_invalid(clean);
	if (clean->line.len > 0 || clean->line.failed)
		end_line(clean, false);
	ks_buf_free(&clean->line);
}
