/* braces.h: the texts that a pattern with {braces} stands for. A backslash and a [class] make a brace a character like others. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define KS_BRACES_MAX 4096u /* texts that one pattern becomes on the way */

struct ks_brace_text {
	char *text;
	size_t len;
};

struct ks_braces { /* what is still to be expanded, the next one last */
	struct ks_brace_text *list;
	size_t count, cap, made;
};

/* False: out of memory. Either way ks_braces_end() is due. */
bool ks_braces_begin(struct ks_braces *braces, const char *pattern, size_t len);
/* The next text without braces, the caller's to free; in the order in which they stand. False: there is none, or *ret_wrong says what is
 * wrong (a part of a sentence). */
bool ks_braces_next(struct ks_braces *braces, char **ret_text, size_t *ret_len, const char **ret_wrong);
void ks_braces_end(struct ks_braces *braces);
