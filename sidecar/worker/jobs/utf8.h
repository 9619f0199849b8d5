/* utf8.h: text of files and names as characters. What is not UTF-8 is taken in the pieces that become one U+FFFD each in a reply. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KS_NOT_UTF8 0x110000u /* plus the first byte: no code point is as large */

/* How many bytes (>= 1) the first character of data[0..len), len >= 1, takes: a code point, or a maximal subpart of none (Unicode 15,
 * section 3.9). */
size_t ks_char_at(const char *data, size_t len, uint32_t *ret);
/* How many characters these are. */
size_t ks_char_count(const char *data, size_t len);
