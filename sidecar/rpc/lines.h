/* lines.h: cuts the incoming byte stream into lines. Pure: knows no file descriptor and no JSON.
 * Lines end in LF and nothing else; one CR in front of it is taken off, empty lines are skipped. A line longer than
 * `max` is never cut: it is discarded up to its LF and reported once, as soon as it is known to be too long. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct ks_lines {
	struct ks_buf held; /* the beginning of a line whose LF has not come yet */
	size_t max;	    /* bytes of a line, without CR and LF */
	bool discarding;    /* inside a line that was reported as too long */
	void (*line)(void *arg, const char *line, size_t len); /* not NUL-terminated, valid during the call */
	void (*too_long)(void *arg);
	void *arg;
};

void ks_lines_feed(struct ks_lines *lines, const char *data, size_t len);
/* The end of the stream: a last line without LF is a line too. Frees the memory; the struct can be used again. */
void ks_lines_end(struct ks_lines *lines);
