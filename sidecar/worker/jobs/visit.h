/* visit.h: a tree, name by name, in the bytewise order of the paths ("a" before "a.c" before "a/b"). What is read at a time are the
 * names of the directories on the way to where it is; a few descriptors are open. No link is followed, no mount point crossed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define KS_VISIT_PATH 4095		      /* bytes: what is deeper cannot be named by a request */
#define KS_VISIT_NAMES (1u << 22)	      /* in the directories on the way, together */
#define KS_VISIT_NAME_BYTES ((size_t)256 << 20) /* and their names */

enum { KS_TYPE_FILE, KS_TYPE_DIRECTORY }; /* of the values of ks_file_type() */

enum ks_visit_what {
	KS_VISIT_END,
	KS_VISIT_DIRECTORY, /* the names in it come next */
	KS_VISIT_NAME,
};

struct ks_visit_item {
	enum ks_visit_what what;
	const char *path; /* from the root, NUL-terminated; of a directory with a slash behind it, "" for the root itself */
	size_t path_len;
	const char *name; /* the last part; "" at the start */
	size_t name_len;  /* without a slash */
	int type;	  /* as ks_file_type() */
	size_t depth;	  /* 0: the directory where it began, and names in it */
	int dir_fd;	  /* where the name is; until the next call */
};

struct ks_visit;

/* Of the directory `path` (relative, "." for the root) below root_fd, which is the caller's and must outlive it. */
int ks_visit_start(int root_fd, const char *path, struct ks_visit **ret, struct ks_error *err);
/* The item is valid until the next call. -1: too much to hold, or out of memory or descriptors. */
int ks_visit_next(struct ks_visit *visit, struct ks_visit_item *ret, struct ks_error *err);
/* The directory that was just named is visited, too, when its turn comes. */
void ks_visit_enter(struct ks_visit *visit);
/* In the directory that was just begun, is there that name? */
bool ks_visit_has(const struct ks_visit *visit, const char *name);
/* Directories that could not be entered: no permission, a mount point, too deep. */
uint64_t ks_visit_unreadable(const struct ks_visit *visit);
void ks_visit_free(struct ks_visit *visit); /* NULL is fine */
