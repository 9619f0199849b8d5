#include "wildcard.h"

#include <string.h>

#include "base/base.h"
#include "base/grow.h"

#include "braces.h"
#include "utf8.h"

enum kind {
	CHAR,	  /* one character: arg */
	ANY,	  /* one that is no slash */
	CLASS,	  /* one of ranges[arg..], whose first element is a head */
	STAR,	  /* any number that are no slash */
	DEEP,	  /* in front of DEEP_LOOP: that, or nothing */
	DEEP_LOOP, /* anything up to and with a slash */
	BELOW,	  /* in front of BELOW_LOOP: one character */
	BELOW_LOOP, /* anything */
	END,	  /* matched; arg is the id */
	END_DIR,
};

struct ks_wild_part {
	uint32_t kind, arg;
};

struct ks_wild_range {
	uint32_t low, high; /* of a head: how many follow; negated or not */
};

/* ---- reading patterns ---- */

static const char *out_of_memory(struct ks_wild *wild)
{
	wild->failed = true;
	return "too large for the memory";
}

static const char *too_large(struct ks_wild *wild)
{
	wild->failed = true;
	return "too large, alone or together with the others";
}

struct input {
	const char *at;
	size_t left;
	bool bytes;
};

static uint32_t take(struct input *in)
{
	uint32_t c = (unsigned char)in->at[0];
	const size_t n = in->bytes ? 1 : ks_char_at(in->at, in->left, &c);

	in->at += n;
	in->left -= n;
	return c;
}

static void skip(struct input *in, size_t count)
{
	in->at += count;
	in->left -= count;
}

static bool starts_with(const struct input *in, const char *text)
{
	const size_t len = strlen(text);

	return in->left >= len && memcmp(in->at, text, len) == 0;
}

static const char *add_part(struct ks_wild *wild, enum kind kind, uint32_t arg)
{
	if (wild->part_count >= KS_WILD_PARTS)
		return too_large(wild);
	if (!ks_grow(&wild->parts, &wild->part_cap, wild->part_count + 1, sizeof(*wild->parts)))
		return out_of_memory(wild);
	wild->parts[wild->part_count++] = (struct ks_wild_part){ kind, arg };
	return NULL;
}

static const char *add_range(struct ks_wild *wild, uint32_t low, uint32_t high)
{
	if (wild->range_count >= KS_WILD_PARTS)
		return too_large(wild);
	if (!ks_grow(&wild->ranges, &wild->range_cap, wild->range_count + 1, sizeof(*wild->ranges)))
		return out_of_memory(wild);
	wild->ranges[wild->range_count++] = (struct ks_wild_range){ low, high };
	return NULL;
}

/* [:alpha:] and the like, of ASCII: what other characters are depends on a locale. */
static const char *add_named(struct ks_wild *wild, struct input *in)
{
	static const struct {
		const char *name;
		const char *ranges; /* pairs */
	} classes[] = {
		{ "[:alnum:]", "09AZaz" },   { "[:alpha:]", "AZaz" },	{ "[:blank:]", "  \t\t" }, { "[:cntrl:]", "\001\037\177\177" },
		{ "[:digit:]", "09" },	     { "[:graph:]", "!~" },	{ "[:lower:]", "az" },	   { "[:print:]", " ~" },
		{ "[:punct:]", "!/:@[`{~" }, { "[:space:]", "\t\r  " }, { "[:upper:]", "AZ" },	   { "[:xdigit:]", "09AFaf" },
	};
	const char *wrong = NULL;

	for (size_t i = 0; i < KS_COUNT(classes); i++)
		if (starts_with(in, classes[i].name)) {
			skip(in, strlen(classes[i].name));
			for (const char *r = classes[i].ranges; *r && !wrong; r += 2)
				wrong = add_range(wild, (unsigned char)r[0], (unsigned char)r[1]);
			return wrong;
		}
	return "with a class [:name:] that there is not";
}

/* A character of a class, perhaps behind a backslash; false at the end of the pattern. */
static bool take_member(struct input *in, uint32_t *ret)
{
	if (in->left > 0 && in->at[0] == '\\')
		skip(in, 1);
	if (in->left == 0)
		return false;
	*ret = take(in);
	return true;
}

/* Behind the [. A ] that comes first is a member, as is a - that comes last. */
static const char *add_class(struct ks_wild *wild, struct input *in)
{
	const size_t head = wild->range_count;
	const bool negated = in->left > 0 && (in->at[0] == '!' || in->at[0] == '^');
	const char *wrong = add_range(wild, 0, negated);
	uint32_t low, high;

	if (negated)
		(void)take(in);
	for (bool first = true; !wrong; first = false) {
		if (!first && in->left > 0 && in->at[0] == ']')
			break;
		if (starts_with(in, "[:")) {
			wrong = add_named(wild, in);
			continue;
		}
		if (!take_member(in, &low))
			return "with a [ that is not closed";
		high = low;
		if (in->left > 1 && in->at[0] == '-' && in->at[1] != ']') {
			(void)take(in);
			if (!take_member(in, &high))
				return "with a [ that is not closed";
		}
		wrong = add_range(wild, low, high);
	}
	if (wrong)
		return wrong;
	(void)take(in);
	wild->ranges[head].low = (uint32_t)(wild->range_count - head - 1);
	return add_part(wild, CLASS, (uint32_t)head);
}

static bool last_is(const struct ks_wild *wild, size_t since, enum kind kind)
{
	return wild->part_count > since && wild->parts[wild->part_count - 1].kind == (uint32_t)kind;
}

static const char *add_deep(struct ks_wild *wild, size_t since)
{
	if (last_is(wild, since, DEEP_LOOP))
		return NULL; /* one of them is enough */
	const char *wrong = add_part(wild, DEEP, 0);
	return wrong ? wrong : add_part(wild, DEEP_LOOP, 0);
}

/* Two stars or more that are all of a name: how many; else 0. */
static size_t whole_stars(const struct input *in)
{
	size_t count = 0;

	while (count < in->left && in->at[count] == '*')
		count++;
	return count >= 2 && (count == in->left || in->at[count] == '/') ? count : 0;
}

/* At the beginning of a name: takes such stars, with the slash behind them. *ret_below: they were the last. */
static const char *add_whole_stars(struct ks_wild *wild, struct input *in, size_t since, bool *ret_below)
{
	const char *wrong = NULL;
	size_t stars;

	while (!wrong && (stars = whole_stars(in)) > 0) {
		*ret_below = stars == in->left;
		skip(in, *ret_below ? stars : stars + 1);
		wrong = *ret_below ? add_part(wild, BELOW, 0) : add_deep(wild, since);
		if (!wrong && *ret_below)
			wrong = add_part(wild, BELOW_LOOP, 0);
	}
	return wrong;
}

static const char *add_one(struct ks_wild *wild, struct input *in, size_t since)
{
	const uint32_t c = take(in);

	switch (c) {
	case '*':
		return last_is(wild, since, STAR) ? NULL : add_part(wild, STAR, 0);
	case '?':
		return add_part(wild, ANY, 0);
	case '[':
		return add_class(wild, in);
	case '\\':
		return in->left == 0 ? "with a \\ at its end" : add_part(wild, CHAR, take(in));
	default:
		return add_part(wild, CHAR, c);
	}
}

static const char *add_parts(struct ks_wild *wild, struct input *in, uint32_t id, bool directory)
{
	const size_t since = wild->part_count;
	const bool anchored = memchr(in->at, '/', in->left) != NULL;
	const char *wrong = NULL;
	bool at_name = true, done = false;

	while (in->left > 0 && in->at[0] == '/')
		skip(in, 1);
	if (in->left == 0)
		return "empty";
	if (!ks_grow(&wild->starts, &wild->start_cap, wild->start_count + 1, sizeof(*wild->starts)))
		return out_of_memory(wild);
	if (!anchored && !(wild->flags & KS_WILD_NAMES))
		wrong = add_deep(wild, since);
	while (!wrong && !done && in->left > 0) {
		if (at_name)
			wrong = add_whole_stars(wild, in, since, &done);
		if (wrong || done || in->left == 0)
			break;
		at_name = in->at[0] == '/';
		if (at_name && (last_is(wild, since, DEEP_LOOP) || starts_with(in, "//"))) { /* a slash too many */
			skip(in, 1);
			continue;
		}
		wrong = add_one(wild, in, since);
	}
	if (!wrong)
		wrong = add_part(wild, directory ? END_DIR : END, id);
	if (wrong)
		wild->part_count = since;
	else
		wild->starts[wild->start_count++] = (uint32_t)since;
	return wrong;
}

static bool leads_up(const char *pattern, size_t len)
{
	for (size_t at = 0, end; at < len; at = end + 1) {
		const char *slash = memchr(pattern + at, '/', len - at);
		end = slash ? (size_t)(slash - pattern) : len;
		if (end - at == 2 && memcmp(pattern + at, "..", 2) == 0)
			return true;
	}
	return false;
}

/* Without the slashes at its end, which say that it is for directories. */
static const char *add_plain(struct ks_wild *wild, const char *pattern, size_t len, uint32_t id)
{
	struct input in = { pattern, len, wild->flags & KS_WILD_BYTES };
	bool directory = false;

	if (!in.bytes && leads_up(pattern, len))
		return "with a .. in it: it matches only what is below";
	if (!in.bytes && starts_with(&in, "./"))
		skip(&in, 1); /* the slash anchors it */
	while (in.left > 1 && in.at[in.left - 1] == '/') {
		in.left--;
		directory = true;
	}
	return add_parts(wild, &in, id, directory);
}

const char *ks_wild_add(struct ks_wild *wild, const char *pattern, size_t len, uint32_t id)
{
	const size_t parts = wild->part_count, starts = wild->start_count;
	struct ks_braces braces = { 0 };
	const char *wrong = NULL;
	char *text;

	if (!(wild->flags & KS_WILD_BRACES))
		return add_plain(wild, pattern, len, id);
	if (!ks_braces_begin(&braces, pattern, len))
		wrong = out_of_memory(wild);
	while (!wrong && ks_braces_next(&braces, &text, &len, &wrong)) {
		wrong = add_plain(wild, text, len, id);
		free(text);
	}
	ks_braces_end(&braces);
	if (wrong) {
		wild->part_count = parts;
		wild->start_count = starts;
	}
	return wrong;
}

bool ks_wild_ready(struct ks_wild *wild)
{
	wild->marks = calloc(wild->part_count + 1, sizeof(*wild->marks));
	wild->closed = calloc(wild->part_count + 1, sizeof(*wild->closed));
	wild->round = 0;
	return wild->marks && wild->closed;
}

void ks_wild_free(struct ks_wild *wild)
{
	free(wild->parts);
	free(wild->ranges);
	free(wild->starts);
	free(wild->marks);
	free(wild->closed);
	*wild = (struct ks_wild){ .flags = wild->flags };
}

/* A state leads to at most two others. */
size_t ks_wild_width(const struct ks_wild *wild)
{
	return 2 * wild->part_count;
}

size_t ks_wild_bytes(const struct ks_wild *wild)
{
	return wild->part_cap * sizeof(*wild->parts) + wild->range_cap * sizeof(*wild->ranges) +
	       wild->start_cap * sizeof(*wild->starts) + 2 * wild->part_count * sizeof(*wild->marks);
}

/* ---- matching ---- */

void ks_wild_begin(const struct ks_wild *wild, struct ks_wild_states *ret)
{
	if (wild->start_count > 0) /* else there is no list to copy from */
		memcpy(ret->list, wild->starts, wild->start_count * sizeof(*wild->starts));
	ret->count = wild->start_count;
}

/* Every state that these stand for: what may match nothing leads to what is behind it, unless `hold`. Each once. */
static size_t close_states(struct ks_wild *wild, const struct ks_wild_states *states, bool hold)
{
	size_t count = 0;

	if (++wild->round == 0) { /* once round: old marks mean nothing now */
		memset(wild->marks, 0, wild->part_count * sizeof(*wild->marks));
		wild->round = 1;
	}
	for (size_t i = 0; i < states->count; i++) {
		for (uint32_t at = states->list[i]; wild->marks[at] != wild->round; at++) {
			const uint32_t kind = wild->parts[at].kind;
			wild->marks[at] = wild->round;
			if (kind == DEEP) {
				if (wild->marks[at + 1] != wild->round) {
					wild->marks[at + 1] = wild->round;
					wild->closed[count++] = at + 1;
				}
				at++;
				continue;
			}
			wild->closed[count++] = at;
			if ((kind != STAR && kind != BELOW_LOOP) || hold)
				break;
		}
	}
	return count;
}

static bool in_class(const struct ks_wild *wild, uint32_t head, uint32_t c)
{
	const struct ks_wild_range *range = &wild->ranges[head];
	bool in = false;

	for (uint32_t i = 1; i <= range->low && !in; i++)
		in = c >= range[i].low && c <= range[i].high;
	return in != (range->high != 0);
}

static void step_one(struct ks_wild *wild, const struct ks_wild_states *from, uint32_t c, bool hold, struct ks_wild_states *to)
{
	const size_t closed = close_states(wild, from, hold);
	size_t count = 0;

	for (size_t i = 0; i < closed; i++) {
		const uint32_t at = wild->closed[i];
		const struct ks_wild_part part = wild->parts[at];
		switch ((enum kind)part.kind) {
		case CHAR:
			if (part.arg == c)
				to->list[count++] = at + 1;
			break;
		case ANY:
			if (c != '/' && !hold)
				to->list[count++] = at + 1;
			break;
		case CLASS:
			if (c != '/' && !hold && in_class(wild, part.arg, c))
				to->list[count++] = at + 1;
			break;
		case STAR:
			if (c != '/' && !hold)
				to->list[count++] = at;
			break;
		case DEEP_LOOP:
			if (!hold)
				to->list[count++] = at;
			if (c == '/')
				to->list[count++] = at + 1;
			break;
		case BELOW:
			if (!hold)
				to->list[count++] = at + 1;
			break;
		case BELOW_LOOP:
			if (!hold)
				to->list[count++] = at;
			break;
		case DEEP:
		case END:
		case END_DIR:
			break;
		}
	}
	to->count = count;
}

void ks_wild_step(struct ks_wild *wild, const struct ks_wild_states *from, const char *text, size_t len, bool hold_dot,
		  struct ks_wild_states *to)
{
	struct input in = { text, len, wild->flags & KS_WILD_BYTES };

	for (bool first = true; in.left > 0 && from->count > 0; first = false) {
		const uint32_t c = (unsigned char)*in.at < 0x80 ? (unsigned char)*in.at : take(&in);
		if (c < 0x80)
			skip(&in, 1);
		step_one(wild, from, c, first && hold_dot && c == '.', to);
		from = to;
	}
	if (from != to && to->list != from->list)
		memcpy(to->list, from->list, from->count * sizeof(*to->list));
	to->count = from->count;
}

int64_t ks_wild_match(struct ks_wild *wild, const struct ks_wild_states *states, bool directory)
{
	const size_t closed = close_states(wild, states, false);
	int64_t best = -1;

	for (size_t i = 0; i < closed; i++) {
		const struct ks_wild_part part = wild->parts[wild->closed[i]];
		if ((part.kind == END || (part.kind == END_DIR && directory)) && part.arg > best)
			best = part.arg;
	}
	return best;
}

bool ks_wild_covers(const struct ks_wild *wild, const struct ks_wild_states *states)
{
	for (size_t i = 0; i < states->count; i++) {
		const struct ks_wild_part *part = &wild->parts[states->list[i]];
		part += part->kind == BELOW;
		if (part->kind == BELOW_LOOP && part[1].kind == END)
			return true;
	}
	return false;
}
