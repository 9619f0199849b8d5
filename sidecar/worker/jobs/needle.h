/* needle.h: what a search looks for: a text, or a regular expression (PCRE2) with its steps, memory and time bounded. It is looked for
 * within lines: no match has a line feed in it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct ks_needle;

struct ks_window {
	const char *data; /* whole lines, but for the first and last */
	size_t len;
	bool goes_on_before, goes_on_after; /* the first line began earlier; the last has no end here */
	bool utf8; /* or it does not matter */
};

struct ks_span {
	size_t start, end;
};

/* Errors are at /pattern: it is not well-formed, too large, or has a line feed in a text. */
int ks_needle_new(const char *pattern, size_t len, bool regex, bool ignore_case, struct ks_needle **ret, struct ks_error *err);
struct ks_window ks_needle_window(const struct ks_needle *needle, const char *data, size_t len, bool goes_on_before, bool goes_on_after);
/* The first match that begins at `from` (the beginning of a line, or of the window) or later: 1, 0 none, -1 it takes too much. */
int ks_needle_find(struct ks_needle *needle, const struct ks_window *window, size_t from, struct ks_span *ret, struct ks_error *err);
/* How many bytes of a line that is seen in pieces must be seen again with the next piece. */
size_t ks_needle_overlap(const struct ks_needle *needle);
void ks_needle_free(struct ks_needle *needle); /* NULL is fine */
