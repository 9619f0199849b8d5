/* pick.h: the names of a tree that a request asks for: its pattern, its ignore patterns, names with a dot in front, .gitignore files.
 * What nothing asked for can lie in is not entered. */
#pragma once

#include "visit.h"
#include "wildcard.h"

/* A pattern of a request; what is wrong with it is invalid_value at `pointer`. */
int ks_pattern_add(struct ks_wild *wild, const char *pattern, const char *pointer, struct ks_error *err);

struct ks_pick_config {
	int root_fd;
	const char *path; /* the directory to look in; patterns begin there */
	struct ks_wild *pattern, *ignore; /* no start: every name, none. The caller's; must outlive it */
	bool hidden;	  /* also what begins with a dot; without it, only where the pattern spells the dot */
	bool gitignore;	  /* without what .gitignore and .git/info/exclude say, also above `path`; without .git itself */
};

struct ks_pick;

int ks_pick_start(const struct ks_pick_config *config, struct ks_pick **ret, struct ks_error *err);
/* The next name: 1, 0 at the end, -1. */
int ks_pick_next(struct ks_pick *pick, struct ks_visit_item *ret, struct ks_error *err);
uint64_t ks_pick_unreadable(const struct ks_pick *pick);
void ks_pick_free(struct ks_pick *pick); /* NULL is fine */
