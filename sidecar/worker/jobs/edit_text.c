#include "edit_text.h"

#include <stdio.h>
#include <string.h>

#define BOM "\xef\xbb\xbf" /* U+FEFF in UTF-8 */
#define BOM_LEN ((size_t)3)
#define COUNT_MAX 1000 /* places that are counted before giving up */
#define LINES_MAX 5    /* that are told */

/* One edit under way. `plain` is the text with CRLF as LF. */
struct editing {
	const char *text; /* behind the byte order mark */
	size_t len;
	struct ks_buf plain_buf, old_buf, new_buf; /* own what differs from the originals */
	const char *plain, *old_text, *new_text;
	size_t plain_len, old_len, new_len;
	bool crlf; /* the text's first line end */
};

static void free_editing(struct editing *e)
{
	ks_buf_free(&e->plain_buf);
	ks_buf_free(&e->old_buf);
	ks_buf_free(&e->new_buf);
}

static bool has_bom(const char *text, size_t len)
{
	return len >= BOM_LEN && memcmp(text, BOM, BOM_LEN) == 0;
}

/* The same with CRLF as LF: itself when it has none. */
static const char *make_plain(const char *text, size_t len, struct ks_buf *buf, size_t *ret_len)
{
	const char *end = text + len, *crlf = memmem(text, len, "\r\n", 2);

	*ret_len = len;
	if (!crlf)
		return text;
	for (; crlf; crlf = memmem(text, (size_t)(end - text), "\r\n", 2)) {
		ks_buf_add(buf, text, (size_t)(crlf - text));
		text = crlf + 1;
	}
	ks_buf_add(buf, text, (size_t)(end - text));
	*ret_len = buf->len;
	return buf->data;
}

static void begin(struct editing *e, const char *text, size_t len, const struct ks_text_edit *edit)
{
	const char *old_text = edit->old_text, *new_text = edit->new_text;
	size_t old_len = edit->old_len, new_len = edit->new_len;

	*e = (struct editing){ .text = text, .len = len };
	if (has_bom(text, len)) {
		e->text += BOM_LEN;
		e->len -= BOM_LEN;
		if (has_bom(old_text, old_len) && old_len > BOM_LEN) { /* copied from the beginning of the file */
			old_text += BOM_LEN;
			old_len -= BOM_LEN;
			new_text += has_bom(new_text, new_len) ? BOM_LEN : 0;
			new_len -= (size_t)(new_text - edit->new_text);
		}
	}
	e->plain = make_plain(e->text, e->len, &e->plain_buf, &e->plain_len);
	e->old_text = make_plain(old_text, old_len, &e->old_buf, &e->old_len);
	e->new_text = make_plain(new_text, new_len, &e->new_buf, &e->new_len);
	const char *lf = memchr(e->text, '\n', e->len);
	e->crlf = lf && lf > e->text && lf[-1] == '\r';
}

static const char *find(const struct editing *e, size_t from)
{
	return from > e->plain_len ? NULL : memmem(e->plain + from, e->plain_len - from, e->old_text, e->old_len);
}

static int64_t count_lines(const char *text, const char *end)
{
	int64_t n = 0;

	for (; (text = memchr(text, '\n', (size_t)(end - text))); text++)
		n++;
	return n;
}

/* The first line of oldText that has something on it, without white space around. */
static void first_line(const struct editing *e, const char **ret, size_t *ret_len)
{
	static const char blank[] = " \t\r\n\f\v";
	const char *at = e->old_text, *end = at + e->old_len;

	while (at < end && memchr(blank, *at, sizeof(blank) - 1))
		at++;
	const char *lf = memchr(at, '\n', (size_t)(end - at));
	if (lf)
		end = lf;
	while (end > at && memchr(blank, end[-1], sizeof(blank) - 1))
		end--;
	*ret = at;
	*ret_len = (size_t)(end - at);
}

static bool holds(const struct editing *e, const char *word)
{
	return memmem(e->old_text, e->old_len, word, strlen(word));
}

static int fail_no_match(const struct editing *e, size_t index, struct ks_error *err)
{
	char pointer[64];
	const char *line;
	size_t len;

	(void)snprintf(pointer, sizeof(pointer), "/edits/%zu/oldText", index);
	(void)ks_fail_at(err, KS_E_EDIT_NO_MATCH, pointer, "that text is nowhere in the file%s",
			 index ? " as the edits before it leave it" : "");
	first_line(e, &line, &len);
	const char *near = len >= 4 ? memmem(e->plain, e->plain_len, line, len) : NULL;
	if (near)
		return ks_error_hint(err, "line %lld has its first line, but white space or what follows differs: read the file again",
				     (long long)count_lines(e->plain, near) + 1);
	if (holds(e, "&amp;") || holds(e, "&lt;") || holds(e, "&gt;"))
		return ks_error_hint(err, "it has HTML entities, and the file has not: give the characters themselves");
	return ks_error_hint(err, "it has to be exactly what stands there, white space too: read the file again");
}

static int fail_not_unique(const struct editing *e, size_t index, struct ks_error *err)
{
	char pointer[64], lines[LINES_MAX * 24] = "";
	size_t count = 0, at = 0, used = 0;
	int64_t line = 1;

	for (const char *match = find(e, 0), *from = e->plain; match && count < COUNT_MAX; match = find(e, at)) {
		if (count < LINES_MAX) {
			line += count_lines(from, match);
			used += (size_t)snprintf(lines + used, sizeof(lines) - used, "%s%lld", count ? ", " : "", (long long)line);
			from = match;
		}
		count++;
		at = (size_t)(match - e->plain) + 1;
	}
	(void)snprintf(pointer, sizeof(pointer), "/edits/%zu/oldText", index);
	(void)ks_fail_at(err, KS_E_EDIT_NOT_UNIQUE, pointer, "that text is in the file %s%zu times, in lines %s%s",
			 count == COUNT_MAX ? "at least " : "", count, lines, count > LINES_MAX ? ", .." : "");
	return ks_error_hint(err, "give more of the text around it, or say all: true");
}

/* Where `count` bytes of the plain text end in the text itself. */
static size_t advance(const struct editing *e, size_t at, size_t count)
{
	if (e->plain == e->text)
		return at + count;
	for (; count > 0; count--)
		at += e->text[at] == '\r' && at + 1 < e->len && e->text[at + 1] == '\n' ? 2 : 1;
	return at;
}

static void add_new(const struct editing *e, const char *replaced, size_t len, struct ks_buf *out)
{
	const char *lf = memchr(replaced, '\n', len), *at = e->new_text, *end = at + e->new_len;

	if (lf ? lf > replaced && lf[-1] == '\r' : e->crlf) {
		for (; (lf = memchr(at, '\n', (size_t)(end - at))); at = lf + 1) {
			ks_buf_add(out, at, (size_t)(lf - at));
			ks_buf_add(out, "\r\n", 2);
		}
	}
	ks_buf_add(out, at, (size_t)(end - at));
}

static int64_t replace(const struct editing *e, bool all, size_t most, struct ks_buf *out)
{
	size_t plain_at = 0, at = 0;
	int64_t done = 0;

	for (const char *match = find(e, 0); match && out->len <= most; match = all ? find(e, plain_at) : NULL) {
		const size_t start = advance(e, at, (size_t)(match - e->plain) - plain_at);
		const size_t end = advance(e, start, e->old_len);
		ks_buf_add(out, e->text + at, start - at);
		add_new(e, e->text + start, end - start, out);
		at = end;
		plain_at = (size_t)(match - e->plain) + e->old_len;
		done++;
	}
	ks_buf_add(out, e->text + at, e->len - at);
	return done;
}

static int apply(struct ks_buf *text, const struct ks_text_edit *edit, size_t index, size_t most, int64_t *ret_done,
		 struct ks_error *err)
{
	KS_CLEANUP(free_editing) struct editing e;
	KS_AUTOBUF struct ks_buf out = { 0 };
	int64_t done = 0;

	begin(&e, text->data ? text->data : "", text->len, edit);
	if (e.plain_buf.failed || e.old_buf.failed || e.new_buf.failed)
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	const char *match = find(&e, 0);
	if (!match)
		return fail_no_match(&e, index, err);
	if (!edit->all && find(&e, (size_t)(match - e.plain) + 1))
		return fail_not_unique(&e, index, err);
	ks_buf_add(&out, text->data, text->len - e.len);
	done = replace(&e, edit->all, most, &out);
	if (out.failed)
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	if (out.len > most) {
		char pointer[64];
		(void)snprintf(pointer, sizeof(pointer), "/edits/%zu/newText", index);
		return ks_fail_at(err, KS_E_TOO_LARGE, pointer, "the file would grow beyond %zu bytes", most);
	}
	ks_buf_free(text);
	*text = out;
	out = (struct ks_buf){ 0 };
	*ret_done = done;
	return 0;
}

int ks_edit_text(struct ks_buf *text, const struct ks_text_edit *edits, size_t count, size_t most, int64_t *ret_done,
		 struct ks_error *err)
{
	for (size_t i = 0; i < count; i++)
		if (apply(text, &edits[i], i, most, &ret_done[i], err) < 0)
			return -1;
	return 0;
}
