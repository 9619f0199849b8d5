/* render.h: output of a box in a text for a model: clean (clean.h), and no longer than there is room. What had to be left out is told on
 * a line of its own, which no box can write: its lines never begin with a bracket and a letter. */
#pragma once

#include "base/buf.h"

#define KS_RENDER_LINE 2000	      /* characters of a line; then its head and its tail */
#define KS_RENDER_WINDOW ((size_t)64 << 10) /* bytes that are looked at of each end of a long text, at least; else 2 times max_chars */

enum ks_keep { KS_KEEP_HEAD, KS_KEEP_TAIL }; /* which end gets two thirds */

/* Appends at most `max_chars` code points. Time and memory: as for the window at both ends, however long the text is. */
void ks_render_text(struct ks_buf *out, const char *data, size_t len, size_t max_chars, enum ks_keep keep);
/* For a name or a message in a line of ours: controls and bytes that are not UTF-8 as \n or \x1b. At most `max_chars`, the end is cut. */
void ks_render_word(struct ks_buf *out, const char *data, size_t len, size_t max_chars);
/* For a text whose bytes matter (a file that will be edited): as it is, but controls and what cannot be seen as \x1b or \u{202e}. `data` is
 * valid UTF-8. Were there any? */
bool ks_render_source(struct ks_buf *out, const char *data, size_t len);
