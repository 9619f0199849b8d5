/* fuzz_edit.c: replacements in a text. Against a slow and simple second version of the rules: where a text has no CR, and no byte order
 * mark, an edit is what one expects; and whatever there is, what no edit names stays, line ends too. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "worker/jobs/edit_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MOST 4096
#define EDITS 4

static void must(int condition)
{
	if (!condition)
		abort();
}

/* Up to the next 0xfe, which is in no text. */
static const char *take(const uint8_t **at, size_t *left, size_t *ret_len)
{
	const uint8_t *start = *at, *end = memchr(start, 0xfe, *left);
	const size_t len = end ? (size_t)(end - start) : *left;

	*at += end ? len + 1 : len;
	*left -= end ? len + 1 : len;
	*ret_len = len;
	return (const char *)start;
}

static bool simple(const char *text, size_t len)
{
	return !memchr(text, '\r', len) && !(len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0);
}

/* The same by going through the text byte by byte. */
static int expect(struct ks_buf *text, const struct ks_text_edit *edit, int64_t *ret_done)
{
	struct ks_buf out = { 0 };
	int64_t places = 0, done = 0;

	for (size_t i = 0; i + edit->old_len <= text->len; i++)
		places += memcmp(text->data + i, edit->old_text, edit->old_len) == 0;
	if (places == 0 || (places > 1 && !edit->all))
		return -1;
	for (size_t i = 0; i < text->len;) {
		if (i + edit->old_len <= text->len && memcmp(text->data + i, edit->old_text, edit->old_len) == 0) {
			ks_buf_add(&out, edit->new_text, edit->new_len);
			i += edit->old_len;
			done++;
		} else {
			ks_buf_char(&out, text->data[i++]);
		}
	}
	ks_buf_free(text);
	*text = out;
	*ret_done = done;
	return text->len > MOST ? -1 : 0;
}

static size_t count(const struct ks_buf *text, const char *what)
{
	size_t n = 0;

	for (size_t i = 0; i + strlen(what) <= text->len; i++)
		n += memcmp(text->data + i, what, strlen(what)) == 0;
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ks_text_edit edits[EDITS];
	struct ks_buf text = { 0 }, wanted = { 0 }, before = { 0 };
	int64_t done[EDITS], wanted_done[EDITS] = { 0 };
	struct ks_error err = { 0 };
	size_t edit_count = 0, len;
	bool all_simple;

	const char *start = take(&data, &size, &len);
	if (len > MOST)
		return 0;
	ks_buf_add(&text, start, len);
	ks_buf_add(&wanted, start, len);
	ks_buf_add(&before, start, len);
	all_simple = simple(start, len);
	while (size > 1 && edit_count < EDITS) {
		struct ks_text_edit *edit = &edits[edit_count];
		edit->all = *data++ & 1;
		size--;
		edit->old_text = take(&data, &size, &edit->old_len);
		edit->new_text = take(&data, &size, &edit->new_len);
		if (edit->old_len == 0)
			break;
		all_simple &= simple(edit->old_text, edit->old_len) && simple(edit->new_text, edit->new_len);
		edit_count++;
	}
	const int rc = ks_edit_text(&text, edits, edit_count, MOST, done, &err);
	if (all_simple) {
		int wanted_rc = 0;
		for (size_t i = 0; i < edit_count && wanted_rc == 0; i++)
			wanted_rc = expect(&wanted, &edits[i], &wanted_done[i]);
		must(rc == wanted_rc);
		must(rc < 0 || (text.len == wanted.len && (text.len == 0 || memcmp(text.data, wanted.data, text.len) == 0)));
		must(rc < 0 || edit_count == 0 || memcmp(done, wanted_done, edit_count * sizeof(done[0])) == 0);
	}
	if (rc < 0) {
		must(err.pointer[0] && err.text[0]);
	} else {
		must(text.len <= MOST || edit_count == 0);
		/* a file of CRLF only stays one */
		if (before.len > 0 && count(&before, "\n") > 0 && count(&before, "\n") == count(&before, "\r\n") && edit_count == 1)
			must(count(&text, "\n") == count(&text, "\r\n"));
	}
	ks_buf_free(&text);
	ks_buf_free(&wanted);
	ks_buf_free(&before);
	return 0;
}
