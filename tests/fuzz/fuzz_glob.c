/* fuzz_glob.c: patterns of names. What the automaton says must be what a plain search through all possibilities says, and must not depend
 * on the pieces in which the text comes. Input: flags, the pattern, a NUL, the text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "worker/jobs/wildcard.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int condition)
{
	if (!condition)
		abort();
}

/* ---- the plain way, for patterns without braces that were found well-formed; characters are bytes ---- */

struct plain {
	const char *pattern, *pattern_end, *text_end;
	unsigned steps;
};

static const char *member(const char *p, unsigned char *ret)
{
	p += *p == '\\';
	*ret = (unsigned char)*p;
	return p + 1;
}

static bool named(const char *p, unsigned char c, const char **ret_end)
{
	const char *names[] = {
		"alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "xdigit"
	};
	const bool lower = c >= 'a' && c <= 'z', upper = c >= 'A' && c <= 'Z', digit = c >= '0' && c <= '9', graph = c > ' ' && c < 127;
	const bool is[] = { lower || upper || digit,
			    lower || upper,
			    c == ' ' || c == '\t',
			    (c > 0 && c < ' ') || c == 127,
			    digit,
			    graph,
			    lower,
			    graph || c == ' ',
			    graph && !lower && !upper && !digit,
			    c == ' ' || (c >= '\t' && c <= '\r'),
			    upper,
			    digit || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') };

	for (size_t i = 0; i < sizeof(is); i++)
		if (strncmp(p + 2, names[i], 5) == 0 || (strncmp(p + 2, names[i], 6) == 0)) {
			*ret_end = p + 2 + strlen(names[i]) + 2;
			return is[i];
		}
	abort();
}

/* Behind the [ of a class. */
static const char *in_class(const char *p, unsigned char c, bool *ret)
{
	const bool negated = *p == '!' || *p == '^';
	bool in = false;

	p += negated;
	for (bool first = true; first || *p != ']'; first = false) {
		unsigned char low, high;
		if (p[0] == '[' && p[1] == ':') {
			in |= named(p, c, &p);
			continue;
		}
		p = member(p, &low);
		high = low;
		if (p[0] == '-' && p[1] != ']')
			p = member(p + 1, &high);
		in |= c >= low && c <= high;
	}
	*ret = in != negated;
	return p + 1;
}

static bool plainly(struct plain *plain, const char *p, const char *t, bool at_name);

/* p is at stars that are a whole name. */
static bool plainly_deep(struct plain *plain, const char *p, const char *t, size_t stars)
{
	p += stars;
	if (p == plain->pattern_end)
		return t < plain->text_end;
	while (p < plain->pattern_end && *p == '/')
		p++;
	for (bool found = plainly(plain, p, t, true);;) {
		const char *slash = found ? NULL : memchr(t, '/', (size_t)(plain->text_end - t));
		if (!slash)
			return found;
		t = slash + 1;
		found = plainly(plain, p, t, true);
	}
}

static bool plainly(struct plain *plain, const char *p, const char *t, bool at_name)
{
	const size_t stars = strspn(p, "*");
	const bool more = t < plain->text_end;
	bool in;

	if (plain->steps == 0 || p == plain->pattern_end)
		return plain->steps > 0 && !more;
	plain->steps--;
	if (at_name && stars >= 2 && (p + stars == plain->pattern_end || p[stars] == '/'))
		return plainly_deep(plain, p, t, stars);
	switch (*p) {
	case '*':
		for (; !plainly(plain, p + 1, t, false); t++)
			if (t == plain->text_end || *t == '/')
				return false;
		return plain->steps > 0;
	case '?':
		return more && *t != '/' && plainly(plain, p + 1, t + 1, false);
	case '[':
		p = in_class(p + 1, more ? (unsigned char)*t : 0, &in);
		return more && *t != '/' && in && plainly(plain, p, t + 1, false);
	case '/':
		return p[1] == '/' ? plainly(plain, p + 1, t, at_name) : more && *t == '/' && plainly(plain, p + 1, t + 1, true);
	case '\\':
		p++;
		break;
	default:
		break;
	}
	return more && *t == *p && plainly(plain, p + 1, t + 1, false);
}

static bool plain_match(struct plain *plain, const char *pattern, size_t len, const char *text, size_t text_len, bool directory)
{
	bool for_directories = false, anchored;

	while (len > 1 && pattern[len - 1] == '/') {
		len--;
		for_directories = true;
	}
	char *copy = strndup(pattern, len);
	must(copy != NULL);
	anchored = strchr(copy, '/') != NULL;
	const char *p = copy + strspn(copy, "/");
	*plain = (struct plain){ copy, copy + len, text + text_len, 100000 };
	bool found = plainly(plain, p, text, true);
	for (const char *slash = text; !anchored && !found && (slash = memchr(slash, '/', (size_t)(plain->text_end - slash)));) {
		slash++;
		found = plainly(plain, p, slash, true);
	}
	free(copy);
	return found && (directory || !for_directories);
}

/* ---- the check ---- */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const unsigned flags = size > 0 ? data[0] : 0;
	const char *pattern = (const char *)data + 1, *end = size > 1 ? memchr(pattern, '\0', size - 1) : NULL;
	struct ks_wild wild = { .flags = (flags & 1 ? KS_WILD_BRACES : 0) | (flags & 2 ? 0 : KS_WILD_BYTES) };
	struct plain plain;

	if (!end || end - pattern > 300)
		return 0;
	const char *text = end + 1;
	const size_t len = (size_t)(end - pattern), text_len = size - 2 - len;
	if (ks_wild_add(&wild, pattern, len, 0) == NULL && text_len < 1000) {
		must(ks_wild_ready(&wild));
		struct ks_wild_states whole = { calloc(ks_wild_width(&wild) + 1, 4), 0 },
				      parts = { calloc(ks_wild_width(&wild) + 1, 4), 0 };
		must(whole.list && parts.list);
		ks_wild_begin(&wild, &whole);
		ks_wild_begin(&wild, &parts);
		ks_wild_step(&wild, &whole, text, text_len, false, &whole);
		for (size_t at = 0, n; at < text_len; at += n) { /* cut where a walk cuts */
			const char *slash = memchr(text + at, '/', text_len - at);
			n = !slash ? text_len - at : slash == text + at ? 1 : (size_t)(slash - text) - at;
			ks_wild_step(&wild, &parts, text + at, n, false, &parts);
		}
		must(whole.count <= ks_wild_width(&wild) && parts.count <= ks_wild_width(&wild));
		const bool directory = flags & 4, found = ks_wild_match(&wild, &whole, directory) >= 0;
		must(found == (ks_wild_match(&wild, &parts, directory) >= 0));
		must(!ks_wild_covers(&wild, &whole) || text_len == 0 || text[text_len - 1] == '/' || found);
		if (wild.flags == KS_WILD_BYTES) {
			const bool plainly_found = plain_match(&plain, pattern, len, text, text_len, directory);
			must(plain.steps == 0 || found == plainly_found);
		}
		free(whole.list);
		free(parts.list);
	}
	ks_wild_free(&wild);
	return 0;
}
