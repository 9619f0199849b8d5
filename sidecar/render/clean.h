/* clean.h: bytes of a box as text that can be shown: no terminal escapes, no controls, nothing that cannot be seen, valid UTF-8, and no
 * line that begins like one of ours. One pass; the result does not depend on how the bytes are cut into pieces, and cleaning it again
 * changes nothing.
 *
 *  - escape sequences (ECMA-48: CSI, OSC, DCS, APC, PM, SOS, others) go whole; a string without an end goes up to the line's end or to
 *    KS_CLEAN_STRING bytes, what follows is kept
 *  - invalid UTF-8 becomes U+FFFD, one for each maximal subpart; NUL becomes U+2400
 *  - a carriage return begins the line again: of a progress bar the last state stays
 *  - a line that begins like one of ours gets "| " in front */
#pragma once

#include "base/buf.h"
#include "render/glyph.h"

#define KS_CLEAN_STRING 4096 /* bytes of a control string */
#define KS_CLEAN_SEQUENCE 256 /* bytes of another sequence */

struct ks_clean {
	struct ks_buf *out;
	struct ks_buf line; /* without its LF */
	unsigned utf8;	    /* the automaton of base/utf8.h */
	char held[4];	    /* the beginning of a code point */
	size_t held_len;
	int state;	    /* where in an escape sequence */
	size_t sequence;    /* bytes of it so far */
	uint32_t before;    /* the code point that was put last; 0: the line is empty */
	bool carriage;	    /* a CR came, nothing behind it yet */
	size_t blanks;	    /* but for these */
};

/* `out` gets whole lines as they end. Memory: one line. */
void ks_clean_begin(struct ks_clean *clean, struct ks_buf *out);
void ks_clean_feed(struct ks_clean *clean, const char *data, size_t len);
/* The last line, which may have no LF, and the memory. Out of memory: out->failed. */
void ks_clean_end(struct ks_clean *clean);
