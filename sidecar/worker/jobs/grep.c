#include "grep.h"

#include <errno.h>
#include <string.h>

#include "utf8.h"

struct line { /* the beginning of one that is not in the window any more */
	size_t len;
	char text[KS_GREP_TEXT];
};

struct pending { /* a match whose lines after it have not all been seen */
	struct ks_buf head, lines;
	size_t count;
};

struct ks_grep {
	struct ks_grep_config config;
	struct line *ring; /* the last lines before the window, when there is a `before` */
	size_t ring_count, ring_next;
	struct line head; /* of a line that goes on in the window */
	struct pending *pending; /* in order, a ring */
	size_t pending_first, pending_count;
	int64_t found;	 /* of all files */
	size_t answered; /* bytes */
	bool full;	 /* one more match than may be answered was seen */
	/* the file at hand */
	const char *path;
	size_t path_len;
	size_t len;		       /* of the window */
	int64_t number;		       /* line at counted */
	size_t counted;
	size_t told;		       /* lines that begin before this have been given to `pending` */
	int64_t column;		       /* characters of the first line that are gone from the window */
	bool goes_on;		       /* the first line began before the window */
	bool skip;		       /* and had its match already */
	char window[KS_GREP_WINDOW];
};

static int no_memory(struct ks_error *err)
{
	return ks_fail(err, KS_E_INTERNAL, "out of memory");
}

/* ---- lines ---- */

/* Where the line that begins at `at` ends: at its line feed, or at `end`. */
static size_t line_end(const struct ks_grep *grep, size_t at, size_t end)
{
	const char *feed = memchr(grep->window + at, '\n', end - at);

	return feed ? (size_t)(feed - grep->window) : end;
}

static size_t line_start(const struct ks_grep *grep, size_t at)
{
	const char *feed = at > 0 ? memrchr(grep->window, '\n', at) : NULL;

	return feed ? (size_t)(feed - grep->window) + 1 : 0;
}

static void count_lines(struct ks_grep *grep, size_t to)
{
	while (grep->counted < to) {
		const char *feed = memchr(grep->window + grep->counted, '\n', to - grep->counted);
		if (!feed)
			break;
		grep->number++;
		grep->counted = (size_t)(feed - grep->window) + 1;
	}
	grep->counted = grep->counted > to ? grep->counted : to;
}

/* The beginning of data[0..len) that is shown: whole characters, no carriage return at the end. */
static size_t shown(const char *data, size_t len)
{
	size_t at = len < KS_GREP_TEXT ? len : KS_GREP_TEXT;

	if (at == len)
		return len > 0 && data[len - 1] == '\r' ? len - 1 : len;
	for (size_t back = 0; back < 4 && at > back; back++) {
		uint32_t c;
		if (((unsigned char)data[at - back] & 0xc0) == 0x80)
			continue;
		return ks_char_at(data + at - back, len - (at - back), &c) > back ? at - back : at;
	}
	return at;
}

static void pack_shown(struct ks_buf *out, const char *data, size_t len)
{
	ks_pack_bytes(out, data, shown(data, len));
}

/* ---- matches ---- */

static void send(struct ks_grep *grep, struct pending *done)
{
	struct ks_buf *record = ks_run_record(grep->config.run);

	ks_buf_add(record, done->head.data, done->head.len);
	ks_pack_int(record, (int64_t)done->count);
	ks_buf_add(record, done->lines.data, done->lines.len);
	record->failed |= done->head.failed | done->lines.failed;
	ks_run_record_end(grep->config.run);
	grep->answered += done->head.len + done->lines.len;
	ks_buf_free(&done->head);
	ks_buf_free(&done->lines);
}

static struct pending *pending_at(struct ks_grep *grep, size_t i)
{
	return &grep->pending[(grep->pending_first + i) % (grep->config.after + 1)];
}

static void send_first(struct ks_grep *grep)
{
	send(grep, pending_at(grep, 0));
	grep->pending_first = (grep->pending_first + 1) % (grep->config.after + 1);
	grep->pending_count--;
}

/* Gives the lines that begin in [told, to) to the matches that wait for lines after them. The last may have no end yet. */
static void tell_lines(struct ks_grep *grep, size_t to, size_t end)
{
	while (grep->told < to && grep->pending_count > 0) {
		const size_t stop = line_end(grep, grep->told, end);
		for (size_t i = 0; i < grep->pending_count; i++) {
			struct pending *waits = pending_at(grep, i);
			pack_shown(&waits->lines, grep->window + grep->told, stop - grep->told);
			waits->count++;
		}
		if (pending_at(grep, 0)->count == grep->config.after)
			send_first(grep);
		grep->told = stop + 1;
	}
	grep->told = grep->told > to ? grep->told : to;
}

/* The lines before the one at `start`: from the window, the beginning of a long one, and older ones from the ring. */
static void pack_before(struct ks_grep *grep, struct ks_buf *out, size_t start)
{
	size_t here = 0, at = start;
	bool with_head = false;

	while (here < grep->config.before && at > 0 && !with_head) {
		const size_t before = line_start(grep, at - 1);
		with_head = before == 0 && grep->goes_on;
		if (!with_head) {
			at = before;
			here++;
		}
	}
	size_t older = grep->config.before - here - with_head;
	older = older < grep->ring_count ? older : grep->ring_count;
	ks_pack_int(out, (int64_t)(older + with_head + here));
	for (size_t i = older; i > 0; i--) {
		const struct line *line = &grep->ring[(grep->ring_next + grep->config.before - i) % grep->config.before];
		ks_pack_bytes(out, line->text, line->len);
	}
	if (with_head)
		ks_pack_bytes(out, grep->head.text, grep->head.len);
	for (; at < start; at = line_end(grep, at, start) + 1)
		pack_shown(out, grep->window + at, line_end(grep, at, start) - at);
}

/* What is shown of a long line is around the match. */
static void pack_text(const struct ks_grep *grep, struct ks_buf *out, size_t start, size_t stop, const struct ks_span *span, bool whole)
{
	size_t from = start;

	if (span->end - start > KS_GREP_TEXT) {
		from = span->start > start + KS_GREP_TEXT / 4 ? span->start - KS_GREP_TEXT / 4 : start;
		for (size_t n = 0; n < 3 && from < span->start && ((unsigned char)grep->window[from] & 0xc0) == 0x80; n++)
			from++;
	}
	const size_t len = shown(grep->window + from, stop - from);
	const bool carriage = len + 1 == stop - from && grep->window[stop - 1] == '\r';
	ks_pack_int(out, !whole || from > start || (len < stop - from && !carriage));
	ks_pack_bytes(out, grep->window + from, len);
}

/* The match in the line [start, stop) of a window that is looked at up to `end`. */
static void add_match(struct ks_grep *grep, size_t start, size_t stop, const struct ks_span *span, bool whole)
{
	const bool goes_on = start == 0 && grep->goes_on;
	struct pending match = { 0 };

	count_lines(grep, start);
	ks_pack_bytes(&match.head, grep->path, grep->path_len);
	ks_pack_int(&match.head, grep->number);
	ks_pack_int(&match.head, (int64_t)ks_char_count(grep->window + start, span->start - start) + 1 + (goes_on ? grep->column : 0));
	pack_text(grep, &match.head, start, stop, span, whole && !goes_on);
	pack_before(grep, &match.head, start);
	grep->found++;
	if (grep->config.after == 0)
		send(grep, &match);
	else
		*pending_at(grep, grep->pending_count++) = match;
}

/* Everything that is found in the window up to `end`, which is behind a line, or the end of the file or of a piece of a long line. */
static int search_window(struct ks_grep *grep, size_t end, bool last, struct ks_error *err)
{
	const bool piece = end == grep->len && !last && (end == 0 || grep->window[end - 1] != '\n');
	const struct ks_window window = ks_needle_window(grep->config.needle, grep->window, end, grep->goes_on, piece);
	size_t at = grep->skip ? line_end(grep, 0, end) + 1 : 0;
	struct ks_span span;
	int rc = 0;

	if (grep->goes_on)
		grep->told = line_end(grep, 0, end) + 1; /* the first line was told with its first piece */
	while (!grep->full && at < end && (rc = ks_needle_find(grep->config.needle, &window, at, &span, err)) > 0) {
		const size_t start = line_start(grep, span.start), stop = line_end(grep, span.start, end);
		if (grep->found == grep->config.limit || grep->answered > KS_GREP_ANSWER) {
			grep->full = true;
			break;
		}
		tell_lines(grep, start, end);
		if (grep->told == start) /* it is a line after others, too */
			tell_lines(grep, start + 1, end);
		grep->told = grep->told > stop ? grep->told : stop + 1;
		add_match(grep, start, stop, &span, !piece || stop < end);
		at = stop + 1;
	}
	if (rc < 0)
		return -1;
	grep->skip = piece && at > end;
	tell_lines(grep, end, end);
	return 0;
}

/* ---- the window ---- */

static void keep_line(struct line *line, const char *text, size_t len)
{
	line->len = shown(text, len);
	memcpy(line->text, text, line->len);
}

static struct line *next_in_ring(struct ks_grep *grep)
{
	struct line *line = &grep->ring[grep->ring_next];

	grep->ring_next = (grep->ring_next + 1) % grep->config.before;
	grep->ring_count += grep->ring_count < grep->config.before;
	return line;
}

/* Keeps the beginnings of the last lines of window[0..end): in the ring, or as the head of a line that goes on. */
static void remember(struct ks_grep *grep, size_t end, bool piece)
{
	size_t begin = 0, at = end;

	if (piece) {
		if (!grep->goes_on)
			keep_line(&grep->head, grep->window, end);
		return;
	}
	if (grep->goes_on) {
		*next_in_ring(grep) = grep->head;
		begin = line_end(grep, 0, end) + 1;
	}
	for (size_t n = 0; n < grep->config.before && at > begin; n++)
		at = line_start(grep, at - 1);
	while (at < end) {
		const size_t stop = line_end(grep, at, end);
		keep_line(next_in_ring(grep), grep->window + at, stop - at);
		at = stop + 1;
	}
}

/* window[0..end) was searched: whole lines, or (then it is all there is) a piece of one. What is behind it moves to the front; of a
 * piece also its end, unless its line has had its match. */
static void advance(struct ks_grep *grep, size_t end)
{
	const bool piece = grep->window[end - 1] != '\n';
	size_t keep = end;

	if (grep->config.before > 0)
		remember(grep, end, piece);
	if (piece && !grep->skip) {
		keep = end - ks_needle_overlap(grep->config.needle);
		for (size_t n = 0; n < 3 && ((unsigned char)grep->window[keep] & 0xc0) == 0x80; n++)
			keep--;
	}
	count_lines(grep, keep);
	if (piece)
		grep->column = (grep->goes_on ? grep->column : 0) + (int64_t)ks_char_count(grep->window, keep);
	grep->goes_on = piece;
	memmove(grep->window, grep->window + keep, grep->len - keep);
	grep->len -= keep;
	grep->counted = grep->told = 0;
}

/* Fills the window. A regular file gives less than was asked for only at its end. */
static int fill(struct ks_grep *grep, int fd, bool *ret_last, enum ks_grepped *ret_trouble)
{
	const size_t room = KS_GREP_WINDOW - grep->len;
	size_t got = 0;

	while (got < room) {
		const ssize_t n = read(fd, grep->window + grep->len + got, room - got);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			*ret_trouble = KS_GREP_UNREADABLE;
			return -1;
		}
		got += (size_t)n;
		if (n == 0 || got < room) {
			*ret_last = true;
			break;
		}
	}
	if (memchr(grep->window + grep->len, '\0', got)) {
		*ret_trouble = KS_GREP_BINARY;
		return -1;
	}
	grep->len += got;
	return 0;
}

static void begin_file(struct ks_grep *grep, const char *path, size_t path_len)
{
	grep->path = path;
	grep->path_len = path_len;
	grep->len = grep->counted = grep->told = 0;
	grep->number = 1;
	grep->column = 0;
	grep->goes_on = grep->skip = false;
	grep->ring_count = grep->ring_next = 0;
}

int ks_grep_file(struct ks_grep *grep, int fd, const char *path, size_t path_len, struct ks_error *err)
{
	enum ks_grepped how = KS_GREPPED;
	bool last = false;

	begin_file(grep, path, path_len);
	while (!last && !(grep->full && grep->pending_count == 0)) {
		if (fill(grep, fd, &last, &how) < 0)
			break;
		const char *feed = last || grep->len == 0 ? NULL : memrchr(grep->window, '\n', grep->len);
		const size_t end = feed ? (size_t)(feed - grep->window) + 1 : grep->len;
		if (search_window(grep, end, last, err) < 0)
			return -1;
		if (!last)
			advance(grep, end);
	}
	while (grep->pending_count > 0)
		send_first(grep);
	return (int)(grep->full ? KS_GREP_TRUNCATED : how);
}

int ks_grep_new(const struct ks_grep_config *config, struct ks_grep **ret, struct ks_error *err)
{
	struct ks_grep *grep = malloc(sizeof(*grep)); /* not calloc: no need to clear the window */

	if (!grep)
		return no_memory(err);
	memset(grep, 0, offsetof(struct ks_grep, window));
	grep->config = *config;
	grep->pending = calloc(config->after + 1, sizeof(*grep->pending));
	grep->ring = calloc(config->before + 1, sizeof(*grep->ring));
	if (!grep->pending || !grep->ring) {
		ks_grep_free(grep);
		return no_memory(err);
	}
	*ret = grep;
	return 0;
}

void ks_grep_free(struct ks_grep *grep)
{
	if (!grep)
		return;
	for (size_t i = 0; i < grep->pending_count; i++) {
		ks_buf_free(&pending_at(grep, i)->head);
		ks_buf_free(&pending_at(grep, i)->lines);
	}
	free(grep->pending);
	free(grep->ring);
	free(grep);
}
