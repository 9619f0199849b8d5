#include "utf8.h"

#include <string.h>

/* What may follow a lead byte is narrower for some: no overlong forms, no surrogates, nothing above U+10FFFF (Unicode 15, table 3-7). */
static void second_byte(unsigned char lead, unsigned char *ret_low, unsigned char *ret_high)
{
	*ret_low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
	*ret_high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
}

size_t ks_char_at(const char *data, size_t len, uint32_t *ret)
{
	const unsigned char *at = (const unsigned char *)data, lead = at[0];
	unsigned char low, high;
	size_t want, n;
	uint32_t c;

	*ret = lead < 0x80 ? lead : KS_NOT_UTF8 + lead;
	if (lead < 0xc2 || lead > 0xf4)
		return 1;
	want = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
	c = lead & (0x7fu >> want);
	second_byte(lead, &low, &high);
	for (n = 1; n < want; n++) {
		if (n == len || at[n] < low || at[n] > high)
			return n;
		c = c << 6 | (at[n] & 0x3fu);
		low = 0x80;
		high = 0xbf;
	}
	*ret = c;
	return n;
}

size_t ks_char_count(const char *data, size_t len)
{
	size_t count = 0;
	uint32_t c;

	for (size_t at = 0; at < len; count++)
		at += (unsigned char)data[at] < 0x80 ? 1 : ks_char_at(data + at, len - at, &c);
	return count;
}
