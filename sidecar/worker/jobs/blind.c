#include "blind.h"

#include <string.h>

struct input {
	const char *at;
	size_t left;
};

static void copy(struct input *in, struct ks_buf *out, size_t count)
{
	ks_buf_add(out, in->at, count);
	in->at += count;
	in->left -= count;
}

/* Letters whose meaning has nothing to do with line feeds. Not here: \n \R \N{} \x \o \0 \c, which may be one; \A \z \Z \G \K \X \Q \E
 * and whatever else looks beyond a line or changes how the pattern reads. */
static bool plain_letter(const struct input *in)
{
	const char c = *in->at;

	if (c >= '1' && c <= '9') /* a group; with another digit perhaps the octal number of a line feed */
		return in->left == 1 || in->at[1] < '0' || in->at[1] > '9';
	return strchr("bBdhtwSfre", c) != NULL;
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Outside of a class, behind the backslash. */
static bool take_escape(struct input *in, struct ks_buf *out)
{
	static const struct {
		char letter;
		const char *instead;
	} others[] = { { 's', "[^\\S\\n]" }, { 'D', "[^\\d\\n]" }, { 'W', "[^\\w\\n]" }, { 'H', "[^\\h\\n]" } };
	const char c = in->left > 0 ? *in->at : '\0';

	if (in->left == 0 || c == '\n')
		return false;
	for (size_t i = 0; i < KS_COUNT(others); i++)
		if (others[i].letter == c) {
			ks_buf_str(out, others[i].instead);
			in->at++;
			in->left--;
			return true;
		}
	if (is_letter(c) && !plain_letter(in))
		return false;
	ks_buf_char(out, '\\');
	copy(in, out, 1);
	return true;
}

/* In a class, behind the backslash. \s is written out there: every white space of PCRE2 but the line feed. */
static bool take_class_escape(struct input *in, struct ks_buf *out, bool negated)
{
	const char c = in->left > 0 ? *in->at : '\0';

	if (in->left < 2 || (unsigned char)c <= '\n')
		return false;
	if (is_letter(c) && !strchr(negated ? "dDhHsSvVwWtnfre" : "dhswtfre", c))
		return false;
	if (c == 't' && !negated && in->at[1] == '-') /* a range with the line feed in it */
		return false;
	if (c == 's' && !negated) {
		ks_buf_str(out, "\\f\\r\\x0b\\x{85}\\x{2028}\\x{2029}\\h");
		in->at++;
		in->left--;
		return true;
	}
	ks_buf_char(out, '\\');
	copy(in, out, 1);
	return true;
}

/* Behind the [. */
static bool take_class(struct input *in, struct ks_buf *out)
{
	const bool negated = in->left > 0 && *in->at == '^';

	ks_buf_str(out, negated ? "[^\\n" : "[");
	in->at += negated;
	in->left -= negated;
	for (bool first = true; in->left > 0; first = false) {
		const char c = *in->at;
		if (c == ']' && !first) {
			copy(in, out, 1);
			return true;
		}
		if ((unsigned char)c <= '\n' || (c == '[' && in->left > 1 && strchr(":.=", in->at[1])))
			return false;
		if (c != '\\') {
			if (first && (c == ']' || c == '-')) /* which stand for themselves there */
				ks_buf_char(out, '\\');
			copy(in, out, 1);
			continue;
		}
		in->at++;
		in->left--;
		if (!take_class_escape(in, out, negated))
			return false;
	}
	return false;
}

/* Groups that only group, look around, or turn a letter's case off and on. */
static bool take_group(struct input *in, struct ks_buf *out)
{
	static const char *const known[] = { "(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i)", "(?-i)", "(?i:" };

	if (in->left < 2 || (in->at[1] != '?' && in->at[1] != '*')) {
		copy(in, out, 1);
		return true;
	}
	for (size_t i = 0; i < KS_COUNT(known); i++) {
		const size_t len = strlen(known[i]);
		if (in->left >= len && memcmp(in->at, known[i], len) == 0) {
			copy(in, out, len);
			return true;
		}
	}
	return false;
}

bool ks_blind_pattern(const char *pattern, size_t len, struct ks_buf *ret)
{
	struct input in = { pattern, len };
	bool good = true;

	while (good && in.left > 0) {
		switch (*in.at) {
		case '\n':
			good = false;
			break;
		case '\\':
			in.at++;
			in.left--;
			good = take_escape(&in, ret);
			break;
		case '[':
			in.at++;
			in.left--;
			good = take_class(&in, ret);
			break;
		case '(':
			good = take_group(&in, ret);
			break;
		default:
			copy(&in, ret, 1);
		}
	}
	return good && !ret->failed;
}
