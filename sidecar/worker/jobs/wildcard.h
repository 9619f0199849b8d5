/* wildcard.h: patterns of names: * ? [class] ** and {one,other}. Any number of them make one automaton. Its states are carried down a
 * tree: a name costs steps for its own characters only, and a directory below which nothing can match shows as one without states.
 * No pattern makes that slow: a step takes at most as long as there are parts of patterns.
 *
 * A pattern without a slash matches the name at any depth; with one (also in front) the whole path. A slash at the end: directories only.
 * A name that is just ** (or more stars) stands for any number of directories, at the end for all that is below; elsewhere ** is *.
 * Nothing but ** matches a slash. A class is [abc], [a-z], [!a], [^a], [[:alpha:]]; \ takes the next character as it is. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KS_WILD_PARTS 65536u /* of all patterns together: about a character each */

enum ks_wild_flag {
	KS_WILD_BRACES = 1u << 0, /* else { is a character like others */
	KS_WILD_BYTES = 1u << 1,  /* a character is a byte, as for git; the same for all patterns of a set */
	KS_WILD_NAMES = 1u << 2,  /* what is matched are names, not paths: for patterns without a slash */
};

struct ks_wild_part;
struct ks_wild_range;

struct ks_wild {
	unsigned flags;
	struct ks_wild_part *parts;
	struct ks_wild_range *ranges;
	uint32_t *starts; /* a state for each pattern */
	size_t part_count, part_cap, range_count, range_cap, start_count, start_cap;
	bool failed; /* there was no room for a pattern: not that one's mistake */
	uint32_t *marks, *closed; /* for one step: made by ks_wild_ready() */
	uint32_t round;
};

/* States between two characters; at most ks_wild_width(). */
struct ks_wild_states {
	uint32_t *list;
	size_t count;
};

/* Adds a pattern that answers with `id`. NULL, or what is wrong with it (a part of a sentence). */
const char *ks_wild_add(struct ks_wild *wild, const char *pattern, size_t len, uint32_t id);
/* After the last pattern. False: out of memory. */
bool ks_wild_ready(struct ks_wild *wild);
void ks_wild_free(struct ks_wild *wild);
size_t ks_wild_width(const struct ks_wild *wild);
size_t ks_wild_bytes(const struct ks_wild *wild); /* memory that it holds */

void ks_wild_begin(const struct ks_wild *wild, struct ks_wild_states *ret);
/* Takes `text` in. `hold_dot`: a dot in front of it is matched by a dot in the pattern only. `from` and `to` may be one. */
void ks_wild_step(struct ks_wild *wild, const struct ks_wild_states *from, const char *text, size_t len, bool hold_dot,
		  struct ks_wild_states *to);
/* The largest id of the patterns that match what was taken in, or -1. */
int64_t ks_wild_match(struct ks_wild *wild, const struct ks_wild_states *states, bool directory);
/* Behind a directory and its slash: everything that can follow matches. */
bool ks_wild_covers(const struct ks_wild *wild, const struct ks_wild_states *states);
