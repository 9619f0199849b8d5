/* glyph.h: what a code point means for a text that a model will read. Tables and tests of single code points, no state. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ks_glyph {
	KS_GLYPH_TEXT,	   /* itself */
	KS_GLYPH_BLANK,	   /* itself, and looks like a space */
	KS_GLYPH_LINE,	   /* ends a line for some reader: LF, VT, FF, NEL, U+2028, U+2029 */
	KS_GLYPH_CONTROL,  /* C0, DEL and C1 that are none of the others: left out */
	KS_GLYPH_SHOWN,	   /* changes the order of text, or cannot be seen: written as \u{202e} */
	KS_GLYPH_JOINER,   /* cannot be seen, but scripts and emoji need it: itself */
	KS_GLYPH_SELECTOR, /* the same behind another character; a chain of them carries hidden bytes */
};

enum ks_glyph ks_glyph_of(uint32_t point);

/* The first code point of valid UTF-8; *ret_len its bytes. `len` is not 0. */
uint32_t ks_glyph_first(const char *data, size_t len, size_t *ret_len);
size_t ks_glyph_count(const char *data, size_t len);		   /* code points of valid UTF-8 */
size_t ks_glyph_offset(const char *data, size_t len, size_t count); /* of the code point `count`, or len */
/* Does this line (valid UTF-8, cleaned) begin like one of ours, or like one that a framework writes? */
bool ks_glyph_framed(const char *line, size_t len);
