/* blind.h: regular expressions that cannot tell the end of a line from the end of the text: with such a one, many lines can be searched
 * at once, and what is found is what would be found in each line alone. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* Writes the same regular expression (PCRE2) so that nothing in it matches a line feed, which no line has: [^a] becomes [^a\n]. False
 * when that is not known to be possible; then lines are to be searched one by one. */
bool ks_blind_pattern(const char *pattern, size_t len, struct ks_buf *ret);
