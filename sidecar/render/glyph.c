#include "glyph.h"

#include <string.h>
#include <strings.h>

#include "base/base.h"

struct range {
	uint32_t first, last;
	enum ks_glyph glyph;
};

/* Sorted. Unicode 15: Bidi_Control, Default_Ignorable_Code_Point, White_Space, and what table 23-1 says about layout controls. */
static const struct range ranges[] = {
	{ 0x00, 0x08, KS_GLYPH_CONTROL },     { 0x09, 0x09, KS_GLYPH_BLANK },	    { 0x0A, 0x0C, KS_GLYPH_LINE },
	{ 0x0D, 0x1F, KS_GLYPH_CONTROL },     { 0x20, 0x20, KS_GLYPH_BLANK },	    { 0x7F, 0x84, KS_GLYPH_CONTROL },
	{ 0x85, 0x85, KS_GLYPH_LINE },	      { 0x86, 0x9F, KS_GLYPH_CONTROL },	    { 0xA0, 0xA0, KS_GLYPH_BLANK },
	{ 0xAD, 0xAD, KS_GLYPH_SHOWN },	      { 0x61C, 0x61C, KS_GLYPH_SHOWN },	    { 0x115F, 0x1160, KS_GLYPH_SHOWN },
	{ 0x1680, 0x1680, KS_GLYPH_BLANK },   { 0x180B, 0x180D, KS_GLYPH_SELECTOR }, { 0x180E, 0x180E, KS_GLYPH_SHOWN },
	{ 0x180F, 0x180F, KS_GLYPH_SELECTOR }, { 0x2000, 0x200A, KS_GLYPH_BLANK },   { 0x200B, 0x200B, KS_GLYPH_SHOWN },
	{ 0x200C, 0x200F, KS_GLYPH_JOINER },  { 0x2028, 0x2029, KS_GLYPH_LINE },    { 0x202A, 0x202E, KS_GLYPH_SHOWN },
	{ 0x202F, 0x202F, KS_GLYPH_BLANK },   { 0x205F, 0x205F, KS_GLYPH_BLANK },   { 0x2060, 0x206F, KS_GLYPH_SHOWN },
	{ 0x3000, 0x3000, KS_GLYPH_BLANK },   { 0x3164, 0x3164, KS_GLYPH_SHOWN },   { 0xFE00, 0xFE0F, KS_GLYPH_SELECTOR },
	{ 0xFEFF, 0xFEFF, KS_GLYPH_SHOWN },   { 0xFFA0, 0xFFA0, KS_GLYPH_SHOWN },   { 0xFFF0, 0xFFFB, KS_GLYPH_SHOWN },
	{ 0x1BCA0, 0x1BCA3, KS_GLYPH_SHOWN }, { 0x1D173, 0x1D17A, KS_GLYPH_SHOWN }, { 0xE0000, 0xE00FF, KS_GLYPH_SHOWN },
	{ 0xE0100, 0xE01EF, KS_GLYPH_SELECTOR }, { 0xE01F0, 0xE0FFF, KS_GLYPH_SHOWN },
};

enum ks_glyph ks_glyph_of(uint32_t point)
{
	size_t low = 0, high = KS_COUNT(ranges);

	while (low < high) {
		const size_t middle = (low + high) / 2;
		if (point > ranges[middle].last)
			low = middle + 1;
		else if (point < ranges[middle].first)
			high = middle;
		else
			return ranges[middle].glyph;
	}
	return KS_GLYPH_TEXT;
}

uint32_t ks_glyph_first(const char *data, size_t len, size_t *ret_len)
{
	const unsigned char lead = (unsigned char)data[0];
	const size_t bytes = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
	uint32_t point = bytes == 1 ? lead : lead & (0x7Fu >> bytes);

	for (size_t i = 1; i < bytes && i < len; i++)
		point = point << 6 | ((unsigned char)data[i] & 0x3F);
	*ret_len = bytes < len ? bytes : len;
	return point;
}

size_t ks_glyph_count(const char *data, size_t len)
{
	size_t count = 0;

	for (size_t i = 0; i < len; i++)
		count += ((unsigned char)data[i] & 0xC0) != 0x80;
	return count;
}

size_t ks_glyph_offset(const char *data, size_t len, size_t count)
{
	size_t at = 0;

	for (; at < len; at++)
		if (((unsigned char)data[at] & 0xC0) != 0x80 && count-- == 0)
			break;
	return at;
}

static size_t skip_unseen(const char *line, size_t len)
{
	size_t at = 0, bytes;

	while (at < len) {
		const uint32_t point = ks_glyph_first(line + at, len - at, &bytes);
		const enum ks_glyph glyph = ks_glyph_of(point);
		const bool combining = point >= 0x300 && point <= 0x36F;
		if (glyph != KS_GLYPH_BLANK && glyph != KS_GLYPH_JOINER && glyph != KS_GLYPH_SELECTOR && !combining)
			break;
		at += bytes;
	}
	return at;
}

/* What hosts of ours put in front of output; their readers know no better. */
static const char *const phrases[] = { "exit code:", "exited with code", "<no output>", "... output truncated", "stderr:",
				       "files in the workspace:" };

/* By its first byte: a blank, a bracket, the first letter of a phrase, or something that is not ASCII. */
static bool may_be_framed(unsigned char first)
{
	return first >= 0x80 || strchr("\t [<.eEsSfF", first);
}

bool ks_glyph_framed(const char *line, size_t len)
{
	size_t at, bytes;

	if (len == 0 || !may_be_framed((unsigned char)line[0])) /* nearly all lines */
		return false;
	at = skip_unseen(line, len);
	for (size_t i = 0; i < KS_COUNT(phrases); i++)
		if (len - at >= strlen(phrases[i]) && strncasecmp(line + at, phrases[i], strlen(phrases[i])) == 0)
			return true;
	if (at == len)
		return false;
	const uint32_t bracket = ks_glyph_first(line + at, len - at, &bytes);
	if (bracket != '[' && bracket != 0xFF3B && bracket != 0xFE47) /* those that NFKC makes a [ */
		return false;
	at += bytes;
	at += skip_unseen(line + at, len - at);
	/* Ours have a letter there. A list of numbers or strings has none, and stays as it is. */
	const unsigned char next = at < len ? (unsigned char)line[at] : '\0';
	return next >= 0x80 || ((next | 0x20) >= 'a' && (next | 0x20) <= 'z');
}
