#include "braces.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

/* Behind what begins at text[at]: a character, with its backslash, or a class. */
static size_t skip_one(const char *text, size_t len, size_t at)
{
	if (text[at] == '\\')
		return at + 2 < len ? at + 2 : len;
	if (text[at] != '[')
		return at + 1;
	size_t end = at + 1;
	if (end < len && (text[end] == '!' || text[end] == '^'))
		end++;
	for (bool first = true; end < len && (first || text[end] != ']'); first = false) {
		if (text[end] == '[' && end + 1 < len && text[end + 1] == ':') {
			const char *colon = memmem(text + end + 2, len - end - 2, ":]", 2);
			end = colon ? (size_t)(colon - text) + 2 : end + 1;
		} else {
			end += text[end] == '\\' && end + 1 < len ? 2 : 1;
		}
	}
	return end < len ? end + 1 : at + 1; /* not closed: whoever reads classes says so */
}

/* The beginning up to the braces, text[from..to) in them, the rest behind them. */
static const char *push(struct ks_braces *braces, const struct ks_brace_text *whole, size_t open, size_t from, size_t to, size_t close)
{
	const size_t inner = to - from, rest = whole->len - close - 1, len = open + inner + rest;
	char *text = malloc(len + 1);

	if (!text || !ks_grow(&braces->list, &braces->cap, braces->count + 1, sizeof(*braces->list))) {
		free(text);
		return "too large for the memory";
	}
	memcpy(text, whole->text, open);
	memcpy(text + open, whole->text + from, inner);
	memcpy(text + open + inner, whole->text + close + 1, rest);
	text[len] = '\0';
	braces->list[braces->count++] = (struct ks_brace_text){ text, len };
	return ++braces->made > KS_BRACES_MAX ? "with braces that stand for too much" : NULL;
}

/* Behind which brace the one at `open` is closed: its place, or len. */
static size_t closing(const struct ks_brace_text *whole, size_t open)
{
	size_t depth = 0, at = open;

	for (; at < whole->len; at = skip_one(whole->text, whole->len, at)) {
		depth += whole->text[at] == '{';
		depth -= whole->text[at] == '}';
		if (depth == 0)
			break;
	}
	return at < whole->len ? at : whole->len;
}

/* Puts what the braces at `open` stand for on the list, each with the rest of the pattern. */
static const char *expand(struct ks_braces *braces, const struct ks_brace_text *whole, size_t open)
{
	const size_t close = closing(whole, open), before = braces->count;
	const char *text = whole->text, *wrong = NULL;
	size_t from = open + 1, depth = 0;

	if (close == whole->len)
		return "with a { that is not closed";
	for (size_t at = from; at <= close && !wrong; at = skip_one(text, whole->len, at)) {
		if (depth == 0 && (text[at] == ',' || at == close)) {
			wrong = push(braces, whole, open, from, at, close);
			from = at + 1;
		}
		depth += text[at] == '{';
		depth -= text[at] == '}';
	}
	for (size_t low = before, high = braces->count; low + 1 < high; low++, high--) { /* the first one is to be the last on the list */
		const struct ks_brace_text other = braces->list[low];
		braces->list[low] = braces->list[high - 1];
		braces->list[high - 1] = other;
	}
	return wrong;
}

bool ks_braces_begin(struct ks_braces *braces, const char *pattern, size_t len)
{
	const struct ks_brace_text whole = { strndup(pattern, len), len };

	*braces = (struct ks_braces){ 0 };
	if (!whole.text || !ks_grow(&braces->list, &braces->cap, 1, sizeof(*braces->list))) {
		free(whole.text);
		return false;
	}
	braces->list[braces->count++] = whole;
	return true;
}

bool ks_braces_next(struct ks_braces *braces, char **ret_text, size_t *ret_len, const char **ret_wrong)
{
	while (braces->count > 0) {
		const struct ks_brace_text whole = braces->list[--braces->count];
		size_t open = 0;
		while (open < whole.len && whole.text[open] != '{')
			open = skip_one(whole.text, whole.len, open);
		if (open >= whole.len) {
			*ret_text = whole.text;
			*ret_len = whole.len;
			return true;
		}
		*ret_wrong = expand(braces, &whole, open);
		free(whole.text);
		if (*ret_wrong)
			return false;
	}
	return false;
}

void ks_braces_end(struct ks_braces *braces)
{
	while (braces->count > 0)
		free(braces->list[--braces->count].text);
	free(braces->list);
}
