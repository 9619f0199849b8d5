/* line_range.h: some lines out of a text that comes in pieces. A line ends behind its LF; the last one needs none. Pure. */
#pragma once

#include <stdint.h>

#include "base/buf.h"

struct ks_line_range {
	int64_t start, count; /* given: from 1 */
	size_t most;	      /* given: of bytes that are kept */
	struct ks_buf *kept;  /* given */
	/* ours */
	int64_t line; /* whole ones that were seen */
	bool open;    /* bytes behind the last LF were seen */
	bool full;    /* more than `most`: what was kept is cut */
};

void ks_line_range_feed(struct ks_line_range *range, const char *data, size_t len);
/* Lines that were seen; of the whole text at its end. */
int64_t ks_line_range_seen(const struct ks_line_range *range);
/* The last line that is in: start - 1 when there is none. */
int64_t ks_line_range_end(const struct ks_line_range *range);
