/* utf8.h: the one UTF-8 automaton (Unicode 15, table 3-7: no overlong forms, no surrogates, nothing above
 * U+10FFFF) and what is built on it. Knows no JSON. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KS_UTF8_OK, KS_UTF8_BAD, KS_UTF8_STATES = 9 }; /* other states: inside a sequence */

extern const uint8_t ks_utf8_class[256];
extern const uint8_t ks_utf8_next[KS_UTF8_STATES][12];

/* One step: start with KS_UTF8_OK; KS_UTF8_BAD means that `byte` cannot follow. */
static inline unsigned ks_utf8_step(unsigned state, unsigned char byte)
{
	return ks_utf8_next[state][ks_utf8_class[byte]];
}

/* All the bytes, one step after the other: the state behind them. */
unsigned ks_utf8_run(unsigned state, const void *data, size_t len);
bool ks_utf8_valid(const void *data, size_t len);
/* Length of the longest prefix that does not cut a code point in two. Only an unfinished sequence at the very end
 * is left out (at most 3 bytes); bytes that can never become valid are not held back. */
size_t ks_utf8_complete_prefix(const void *data, size_t len);
