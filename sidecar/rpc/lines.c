#include "lines.h"

#include <string.h>

#define KEEP_BYTES ((size_t)64 << 10) /* a larger buffer goes back after its line */

static void emit(struct ks_lines *lines, const char *line, size_t len)
{
	if (len > 0 && line[len - 1] == '\r')
		len--;
	if (len > lines->max)
		lines->too_long(lines->arg);
	else if (len > 0)
		lines->line(lines->arg, line, len);
}

static void release(struct ks_lines *lines)
{
	if (lines->held.cap > KEEP_BYTES)
		ks_buf_free(&lines->held);
	else
		ks_buf_clear(&lines->held);
}

/* The line so far, without its end. A last CR may yet turn out to belong to the line's end. */
static void hold(struct ks_lines *lines, const char *data, size_t len)
{
	if (lines->discarding || len == 0)
		return;
	size_t total = lines->held.len + len;
	if (total <= lines->max || (total == lines->max + 1 && data[len - 1] == '\r'))
		ks_buf_add(&lines->held, data, len);
	else
		lines->held.failed = true;
	if (!lines->held.failed)
		return;
	/* No memory for it is the same to the client: a line that is too long to be taken. */
	lines->discarding = true;
	release(lines);
	lines->too_long(lines->arg);
}

static void finish(struct ks_lines *lines)
{
	if (!lines->discarding && lines->held.len > 0)
		emit(lines, lines->held.data, lines->held.len);
	lines->discarding = false;
	release(lines);
}

void ks_lines_feed(struct ks_lines *lines, const char *data, size_t len)
{
	const char *lf;

	while (len > 0 && (lf = memchr(data, '\n', len))) {
		size_t part = (size_t)(lf - data);
		if (!lines->discarding && lines->held.len == 0) {
			emit(lines, data, part); /* whole in this piece: no copy */
		} else {
			hold(lines, data, part);
			finish(lines);
		}
		data += part + 1;
		len -= part + 1;
	}
	hold(lines, data, len);
}

void ks_lines_end(struct ks_lines *lines)
{
	finish(lines);
	ks_buf_free(&lines->held);
}
