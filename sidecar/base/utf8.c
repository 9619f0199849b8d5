/* utf8.c: see utf8.h. Byte classes and states follow the rows of Unicode 15, table 3-7. */
#include "utf8.h"

#include <string.h>

/* 0 ASCII | trailing: 1 80..8F, 2 90..9F, 3 A0..BF | leading: 4 C2..DF, 5 E0, 6 E1..EC EE EF, 7 ED, 8 F0, 9 F1..F3,
 * 10 F4 | 11 never: C0, C1, F5..FF */
#define R8(c) c, c, c, c, c, c, c, c
#define R16(c) R8(c), R8(c)
const uint8_t ks_utf8_class[256] = {
	R16(0), R16(0), R16(0), R16(0), R16(0), R16(0), R16(0), R16(0), /* 00..7F */
	R16(1), R16(2), R16(3), R16(3),                                 /* 80..BF */
	11, 11, 4, 4, 4, 4, 4, 4, R8(4), R16(4),                        /* C0..DF */
	5, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 7, 6, 6,                 /* E0..EF */
	8, 9, 9, 9, 10, 11, 11, 11, R8(11),                             /* F0..FF */
};
#undef R8
#undef R16

enum { OK = KS_UTF8_OK, NO = KS_UTF8_BAD, T1, T2, T3, E0, ED, F0, F4 }; /* Tn: n trailing bytes to come */

const uint8_t ks_utf8_next[KS_UTF8_STATES][12] = {
	/*       00  80  90  A0  C2  E0  E1  ED  F0  F1  F4  -- */
	[OK] = { OK, NO, NO, NO, T1, E0, T2, ED, F0, T3, F4, NO },
	[NO] = { NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO },
	[T1] = { NO, OK, OK, OK, NO, NO, NO, NO, NO, NO, NO, NO },
	[T2] = { NO, T1, T1, T1, NO, NO, NO, NO, NO, NO, NO, NO },
	[T3] = { NO, T2, T2, T2, NO, NO, NO, NO, NO, NO, NO, NO },
	[E0] = { NO, NO, NO, T1, NO, NO, NO, NO, NO, NO, NO, NO }, /* below A0: overlong */
	[ED] = { NO, T1, T1, NO, NO, NO, NO, NO, NO, NO, NO, NO }, /* A0 and above: surrogates */
	[F0] = { NO, NO, T2, T2, NO, NO, NO, NO, NO, NO, NO, NO }, /* below 90: overlong */
	[F4] = { NO, T2, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO }, /* 90 and above: beyond 10FFFF */
};

unsigned ks_utf8_run(unsigned state, const void *data, size_t len)
{
	const unsigned char *bytes = data;

	for (size_t i = 0; i < len && state != KS_UTF8_BAD;) {
		uint64_t eight;
		if (state == KS_UTF8_OK && len - i >= sizeof(eight)) { /* most text is ASCII, perhaps 64 MiB of it */
			memcpy(&eight, bytes + i, sizeof(eight));
			if (!(eight & UINT64_C(0x8080808080808080))) {
				i += sizeof(eight);
				continue;
			}
		}
		state = ks_utf8_step(state, bytes[i++]);
	}
	return state;
}

bool ks_utf8_valid(const void *data, size_t len)
{
	return ks_utf8_run(KS_UTF8_OK, data, len) == KS_UTF8_OK;
}

size_t ks_utf8_complete_prefix(const void *data, size_t len)
{
	const unsigned char *bytes = data;

	/* The last leading byte among the last three: is what follows it an unfinished sequence? */
	for (size_t back = 1; back <= 3 && back <= len; back++) {
		if ((bytes[len - back] & 0xC0) == 0x80)
			continue;
		unsigned state = KS_UTF8_OK;
		for (size_t i = len - back; i < len; i++)
			state = ks_utf8_step(state, bytes[i]);
		return state == KS_UTF8_OK || state == KS_UTF8_BAD ? len : len - back;
	}
	return len;
}
