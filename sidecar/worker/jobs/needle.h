/* needle.h: what a search looks for: a text, or a regular expression (PCRE2) with its steps, memory and time bounded. It is looked for
 * within lines: no match has a line feed in it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct ks_needle;

#define KS_WINDOW_SLACK 8u /* bytes behind a window that may be read, whatever is in them: PCRE2's JIT does */

struct ks_window {
	const char *data; /* whole lines, but for the first and last */
	size_t len;
	bool goes_on_before, goes_on_after; /* the first line began earlier; the last has no end here */
};

struct ks_span {
	size_t start, end;
};

/* Errors are at /pattern: it is not well-formed, too large, or has a line feed in a text. */
int ks_needle_new(const char *pattern, size_t len, bool regex, bool ignore_case, struct ks_needle **ret, struct ks_error *err);
/* The first match that begins at `from` (the beginning of a line, or of the window) or later: 1, 0 none, -1 it takes too much. */
int ks_needle_find(struct ks_needle *needle, const struct ks_window *window, size_t from, struct ks_span *ret, struct ks_error *err);
/* How many bytes of a line that is seen in pieces must be seen again with the next piece. */
size_t ks_needle_overlap(const struct ks_needle *needle);
void ks_needle_free(struct ks_needle *needle); /* NULL is fine */
