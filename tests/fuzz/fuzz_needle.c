/* fuzz_needle.c: regular expressions on many lines. What is found in a window must be what PCRE2 finds in each of its lines alone, also
 * where the expression was rewritten to search all at once (blind.h). Input: a flag, the pattern, a NUL, the text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "worker/jobs/needle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int condition)
{
	if (!condition)
		abort();
}

/* Start of the first match in the line, -1 none, -2 it takes too much. */
static long alone(const pcre2_code *code, pcre2_match_data *match, pcre2_match_context *context, const char *line, size_t len)
{
	const int rc = pcre2_match(code, (PCRE2_SPTR8)line, len, 0, 0, match, context);

	return rc == PCRE2_ERROR_NOMATCH ? -1 : rc < 0 ? -2 : (long)pcre2_get_ovector_pointer(match)[0];
}

static void compare(struct ks_needle *needle, const pcre2_code *code, const char *text, size_t len)
{
	pcre2_match_data *match = pcre2_match_data_create(1, NULL);
	pcre2_match_context *context = pcre2_match_context_create(NULL);
	const struct ks_window window = ks_needle_window(needle, text, len, false, false);
	struct ks_span span;
	struct ks_error err;

	must(match && context);
	(void)pcre2_set_match_limit(context, 20000);
	(void)pcre2_set_depth_limit(context, 20000);
	for (size_t at = 0; at < len;) {
		const int rc = ks_needle_find(needle, &window, at, &span, &err);
		size_t skip_to = rc > 0 ? span.start : len;
		bool trouble = rc < 0;
		for (size_t n; !trouble && at < len; at += n + 1) {
			const char *feed = memchr(text + at, '\n', len - at);
			n = feed ? (size_t)(feed - text) - at : len - at;
			const long found = alone(code, match, context, text + at, n);
			trouble = found == -2;
			if (trouble)
				break;
			if (rc > 0 && skip_to <= at + n) {
				must(found >= 0 && (size_t)found + at == span.start && span.end <= at + n);
				at += n + 1;
				break;
			}
			must(found == -1);
		}
		if (trouble)
			break;
	}
	pcre2_match_data_free(match);
	pcre2_match_context_free(context);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *pattern = (const char *)data + 1, *end = size > 1 ? memchr(pattern, '\0', size - 1) : NULL;
	const bool ignore_case = size > 0 && (data[0] & 1);
	struct ks_needle *needle;
	struct ks_error err;
	int number;
	size_t offset;

	if (!end || end == pattern || end - pattern > 60 || size > 500)
		return 0;
	const size_t len = (size_t)(end - pattern);
	if (ks_needle_new(pattern, len, true, ignore_case, &needle, &err) < 0) {
		must(err.reason == KS_E_INVALID_VALUE && strcmp(err.pointer, "/pattern") == 0);
		return 0;
	}
	pcre2_compile_context *context = pcre2_compile_context_create(NULL);
	must(context != NULL);
	(void)pcre2_set_newline(context, PCRE2_NEWLINE_LF);
	pcre2_code *code = pcre2_compile((PCRE2_SPTR8)pattern, len,
					 PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_MULTILINE | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C |
						 (ignore_case ? PCRE2_CASELESS : 0),
					 &number, &offset, context);
	must(code != NULL);
	if (!strstr(pattern, "(*")) /* which may change what a line is, or how matches are looked for */
		compare(needle, code, end + 1, size - 2 - len);
	pcre2_code_free(code);
	pcre2_compile_context_free(context);
	ks_needle_free(needle);
	return 0;
}
