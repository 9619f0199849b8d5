#include "needle.h"

#include <string.h>
#include <time.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/utf8.h"
#include "blind.h"
#include "utf8.h"

#define REGEX_OVERLAP ((size_t)4 << 10)
#define MATCH_STEPS 100000u /* from one place in the text; PCRE2 counts them */
#define MATCH_DEPTH MATCH_STEPS
#define MATCH_HEAP_KIB (64u << 10)
#define JIT_STACK ((size_t)1 << 20)
#define FREE_US INT64_C(5000000) /* of processor time for the whole search; beyond it, what the text earns: */
#define BYTES_PER_US 1		 /* a pattern that is slower than 1 MB/s is given up */
#define CLOCK_EVERY ((size_t)64 << 10) /* bytes looked at; a look costs as much as LOOK_BYTES more */
#define LOOK_BYTES 64u

struct ks_needle {
	char *text; /* not a regular expression */
	size_t len;
	pcre2_code *code;
	pcre2_match_data *match;
	pcre2_match_context *context;
	pcre2_jit_stack *stack;
	bool blind; /* never sees a line feed: may look at many lines at once */
	uint64_t bytes; /* looked at */
	size_t since;	/* the clock was read */
};

/* ---- reading the pattern ---- */

static int compile_error(int number, size_t offset, struct ks_error *err)
{
	PCRE2_UCHAR8 text[160];

	if (pcre2_get_error_message(number, text, sizeof(text)) < 0)
		text[0] = '\0';
	return ks_fail_at(err, KS_E_INVALID_VALUE, "/pattern", "the regular expression is wrong at byte %zu: %s", offset,
			  (const char *)text);
}

static int compile(struct ks_needle *needle, const char *pattern, size_t len, bool regex, bool ignore_case, struct ks_error *err)
{
	const uint32_t options = PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | (ignore_case ? PCRE2_CASELESS : 0) |
				 (regex ? PCRE2_MULTILINE | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C : PCRE2_LITERAL);
	KS_AUTOBUF struct ks_buf blind = { 0 };
	pcre2_compile_context *context = pcre2_compile_context_create(NULL);
	size_t offset = 0;
	int number = 0;

	if (!context)
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	(void)pcre2_set_newline(context, PCRE2_NEWLINE_LF);
	needle->code = pcre2_compile((PCRE2_SPTR8)pattern, len, options, &number, &offset, context);
	needle->blind = !regex || ks_blind_pattern(pattern, len, &blind);
	if (needle->code && regex && needle->blind && !blind.failed) {
		pcre2_code *code = pcre2_compile((PCRE2_SPTR8)blind.data, blind.len, options, &number, &offset, context);
		needle->blind = code != NULL;
		if (code) {
			pcre2_code_free(needle->code);
			needle->code = code;
		}
	}
	pcre2_compile_context_free(context);
	return needle->code ? 0 : compile_error(number, offset, err);
}

/* Where the system refuses memory that is written and executed there is no JIT, and PCRE2 interprets: slower, with the same limits. */
static int make_ready(struct ks_needle *needle, struct ks_error *err)
{
	(void)pcre2_jit_compile(needle->code, PCRE2_JIT_COMPLETE);
	needle->match = pcre2_match_data_create(1, NULL);
	needle->context = pcre2_match_context_create(NULL);
	needle->stack = pcre2_jit_stack_create((size_t)32 << 10, JIT_STACK, NULL);
	if (!needle->match || !needle->context || !needle->stack)
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	pcre2_jit_stack_assign(needle->context, NULL, needle->stack);
	(void)pcre2_set_match_limit(needle->context, MATCH_STEPS);
	(void)pcre2_set_depth_limit(needle->context, MATCH_DEPTH);
	(void)pcre2_set_heap_limit(needle->context, MATCH_HEAP_KIB);
	return 0;
}

int ks_needle_new(const char *pattern, size_t len, bool regex, bool ignore_case, struct ks_needle **ret, struct ks_error *err)
{
	struct ks_needle *needle;
	int rc = 0;

	if (!regex && memchr(pattern, '\n', len)) {
		(void)ks_fail_at(err, KS_E_INVALID_VALUE, "/pattern", "a text with a line feed is in no line");
		return ks_error_hint(err, "look for one of its lines");
	}
	needle = calloc(1, sizeof(*needle));
	if (!needle)
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	needle->len = len;
	if (regex || ignore_case) {
		rc = compile(needle, pattern, len, regex, ignore_case, err);
		if (rc == 0)
			rc = make_ready(needle, err);
	} else {
		needle->text = malloc(len);
		if (needle->text)
			memcpy(needle->text, pattern, len);
		else
			rc = ks_fail(err, KS_E_INTERNAL, "out of memory");
	}
	if (rc < 0)
		ks_needle_free(needle);
	else
		*ret = needle;
	return rc;
}

void ks_needle_free(struct ks_needle *needle)
{
	if (!needle)
		return;
	pcre2_code_free(needle->code);
	pcre2_match_data_free(needle->match);
	pcre2_match_context_free(needle->context);
	pcre2_jit_stack_free(needle->stack);
	free(needle->text);
	free(needle);
}

size_t ks_needle_overlap(const struct ks_needle *needle)
{
	return needle->text || needle->len > REGEX_OVERLAP ? needle->len : REGEX_OVERLAP;
}

/* ---- looking for it ---- */

static int too_slow(struct ks_error *err)
{
	(void)ks_fail_at(err, KS_E_LIMIT, "/pattern", "the regular expression takes too many steps on this text");
	return ks_error_hint(err, "avoid repetitions of repetitions such as (a+)+, or search fewer files");
}

/* Bounds the whole search by a time that grows with the text only. `bytes` were looked at. */
static int check_time(struct ks_needle *needle, size_t bytes, struct ks_error *err)
{
	struct timespec used;

	needle->bytes += bytes;
	needle->since += bytes + LOOK_BYTES;
	if (needle->since < CLOCK_EVERY)
		return 0;
	needle->since = 0;
	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return used.tv_sec * INT64_C(1000000) + used.tv_nsec / 1000 > FREE_US + (int64_t)(needle->bytes / BYTES_PER_US) ? too_slow(err) : 0;
}

/* In subject[from..len). */
static int match(struct ks_needle *needle, const char *subject, size_t len, size_t from, uint32_t options, struct ks_span *ret,
		 struct ks_error *err)
{
	const size_t *found = pcre2_get_ovector_pointer(needle->match);
	const int rc = pcre2_match(needle->code, (PCRE2_SPTR8)subject, len, from, options, needle->match, needle->context);

	if (rc == PCRE2_ERROR_NOMATCH)
		return 0;
	if (rc == PCRE2_ERROR_MATCHLIMIT || rc == PCRE2_ERROR_DEPTHLIMIT || rc == PCRE2_ERROR_HEAPLIMIT ||
	    rc == PCRE2_ERROR_JIT_STACKLIMIT)
		return too_slow(err);
	if (rc < 0)
		return ks_fail_at(err, KS_E_INTERNAL, "/pattern", "PCRE2 failed (%d)", rc);
	*ret = (struct ks_span){ found[0], found[1] > found[0] ? found[1] : found[0] };
	return 1;
}

/* Without JIT where text is not UTF-8: that of PCRE2 10.42 takes broken characters for longer ones, and reads behind the text. */
static uint32_t options_of(bool goes_on_before, bool goes_on_after, bool utf8)
{
	return (goes_on_before ? PCRE2_NOTBOL : 0) | (goes_on_after ? PCRE2_NOTEOL : 0) | (utf8 ? 0 : PCRE2_NO_JIT);
}

/* Line by line: the pattern could see past the end of one, or there are bytes that are no characters. */
static int find_by_line(struct ks_needle *needle, const struct ks_window *window, size_t from, struct ks_span *ret, struct ks_error *err)
{
	while (from < window->len) {
		const char *line = window->data + from, *end = memchr(line, '\n', window->len - from);
		const size_t len = end ? (size_t)(end - line) : window->len - from;
		const bool utf8 = window->utf8 || ks_utf8_valid(line, len);
		const uint32_t options = options_of(from == 0 && window->goes_on_before, !end && window->goes_on_after, utf8);
		const int rc = match(needle, line, len, 0, options, ret, err);
		if (check_time(needle, len, err) < 0)
			return -1;
		if (rc > 0) {
			ret->start += from;
			ret->end += from;
		}
		if (rc != 0)
			return rc;
		from += len + 1;
	}
	return 0;
}

struct ks_window ks_needle_window(const struct ks_needle *needle, const char *data, size_t len, bool goes_on_before, bool goes_on_after)
{
	return (struct ks_window){ data, len, goes_on_before, goes_on_after, needle->text || ks_utf8_valid(data, len) };
}

int ks_needle_find(struct ks_needle *needle, const struct ks_window *window, size_t from, struct ks_span *ret, struct ks_error *err)
{
	if (from >= window->len)
		return 0;
	if (needle->text) {
		const char *found = memmem(window->data + from, window->len - from, needle->text, needle->len);
		if (!found)
			return 0;
		const size_t at = (size_t)(found - window->data);
		*ret = (struct ks_span){ at, at + needle->len };
		return 1;
	}
	if (!needle->blind || !window->utf8)
		return find_by_line(needle, window, from, ret, err);
	const int rc = match(needle, window->data, window->len, from, options_of(window->goes_on_before, window->goes_on_after, true), ret,
			     err);
	if (rc >= 0 && check_time(needle, (rc > 0 ? ret->end : window->len) - from, err) < 0)
		return -1;
	/* nothing at the end of the last line is no line of its own */
	return rc > 0 && ret->start == window->len && window->data[window->len - 1] == '\n' ? 0 : rc;
}
