#include "line_range.h"

#include <string.h>

static bool wanted(const struct ks_line_range *range)
{
	return range->line + 1 >= range->start && range->line + 1 - range->start < range->count;
}

void ks_line_range_feed(struct ks_line_range *range, const char *data, size_t len)
{
	while (len > 0) {
		const char *lf = memchr(data, '\n', len);
		size_t n = lf ? (size_t)(lf - data) + 1 : len;

		if (wanted(range) && !range->full) {
			range->full = n > range->most;
			range->most -= range->full ? 0 : n;
			ks_buf_add(range->kept, data, range->full ? 0 : n);
		}
		range->line += lf != NULL;
		range->open = !lf;
		data += n;
		len -= n;
	}
}

int64_t ks_line_range_seen(const struct ks_line_range *range)
{
	return range->line + range->open;
}

int64_t ks_line_range_end(const struct ks_line_range *range)
{
	const int64_t seen = ks_line_range_seen(range);

	if (seen < range->start)
		return range->start - 1;
	return seen - range->start < range->count ? seen : range->start + range->count - 1;
}
