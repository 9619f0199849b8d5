/* edit_text.h: exact replacements in a text. Pure.
 * A byte order mark at the beginning is not part of the text. CRLF counts as LF in the text, in oldText and in newText; newText is written
 * with the line end of what it replaces, or else with the first one of the text. All other bytes are compared as they are. */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

struct ks_text_edit {
	const char *old_text, *new_text;
	size_t old_len, new_len; /* old_len > 0 */
	bool all;
};

/* Each edit works on what the one before left. 0 with *text changed and how many replacements each made, or -1: edit_no_match,
 * edit_not_unique (pointer /edits/N/oldText), too_large when it would grow beyond `most`. *text is worth nothing then. */
int ks_edit_text(struct ks_buf *text, const struct ks_text_edit *edits, size_t count, size_t most, int64_t *ret_done,
		 struct ks_error *err);
