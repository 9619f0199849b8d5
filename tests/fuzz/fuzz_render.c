/* fuzz_render.c: text for a model (render/): valid UTF-8 without controls comes out, however the bytes are cut; cleaning again changes
 * nothing; no line begins like one of ours; a cut text keeps its size. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "render/clean.h"
#include "render/render.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int condition)
{
	if (!condition)
		abort();
}

static void clean(struct ks_buf *out, const char *data, size_t len, size_t piece)
{
	struct ks_clean state;

	ks_clean_begin(&state, out);
	for (size_t at = 0; at < len; at += piece)
		ks_clean_feed(&state, data + at, len - at < piece ? len - at : piece);
	ks_clean_end(&state);
	must(!out->failed);
}

static bool same(const struct ks_buf *a, const struct ks_buf *b)
{
	return a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

/* Ours, or the beginning of one: a second cut may go through it. */
static bool is_marker(const char *line, size_t len)
{
	static const char start[] = "[sandbox: ";
	const size_t known = sizeof(start) - 1;

	if (memcmp(line, start, len < known ? len : known) != 0)
		return false;
	return len <= known || line[known] == 'a' || (line[known] >= '0' && line[known] <= '9');
}

/* No escape, no control but LF and TAB, nothing hidden, no line like ours. */
static void check_text(const struct ks_buf *text, bool has_markers)
{
	must(ks_utf8_valid(text->data, text->len));
	for (size_t at = 0, len; at < text->len; at += len) {
		const uint32_t point = ks_glyph_first(text->data + at, text->len - at, &len);
		const enum ks_glyph glyph = ks_glyph_of(point);
		must(point == '\n' || (glyph != KS_GLYPH_LINE && glyph != KS_GLYPH_CONTROL && glyph != KS_GLYPH_SHOWN));
	}
	for (size_t at = 0; at < text->len;) {
		const char *lf = memchr(text->data + at, '\n', text->len - at);
		const size_t len = lf ? (size_t)(lf - text->data) - at : text->len - at;
		must((has_markers && is_marker(text->data + at, len)) || !ks_glyph_framed(text->data + at, len));
		at += len + 1;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	KS_AUTOBUF struct ks_buf whole = { 0 }, pieces = { 0 }, again = { 0 }, text = { 0 }, word = { 0 };

	if (size < 2)
		return 0;
	const size_t piece = 1 + (data[0] & 31), max = 100 + 8 * (size_t)data[1];
	const enum ks_keep keep = data[0] & 32 ? KS_KEEP_HEAD : KS_KEEP_TAIL;
	const char *bytes = (const char *)data + 2;
	size -= 2;
	clean(&whole, bytes, size, SIZE_MAX / 2);
	clean(&pieces, bytes, size, piece);
	must(same(&whole, &pieces));
	clean(&again, whole.data, whole.len, piece);
	must(same(&whole, &again));
	check_text(&whole, false);
	ks_render_text(&text, bytes, size, max, keep);
	must(!text.failed && ks_glyph_count(text.data, text.len) <= max);
	check_text(&text, true);
	ks_render_word(&word, bytes, size, max);
	must(ks_utf8_valid(word.data, word.len) && ks_glyph_count(word.data, word.len) <= max);
	return 0;
}
