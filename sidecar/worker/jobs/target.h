/* target.h: the file that a job is about to change: what is there now, may it be changed, and the new content in its place. */
#pragma once

#include "etag.h"
#include "names.h"

struct ks_target {
	const struct ks_name *name;
	int dir; /* owned */
	const char *last;
	bool exists;
	struct stat st;	   /* of what exists */
	bool must_be_same; /* what is there is replaced only when it is still that */
};

#define KS_AUTOTARGET KS_CLEANUP(ks_target_free)
void ks_target_free(struct ks_target *target);

/* A regular file, or nothing (yet). Refused by type, and when its content is not the box's user's to change: no right to write, or a file
 * of somebody else that has further names. *ret must be empty; ret->dir -1 counts as that. */
int ks_target_look(const struct ks_name *name, struct ks_target *ret, struct ks_error *err);
/* ifMatch: `changed` when there is nothing, or something with another etag; else sets must_be_same. "" asks nothing. */
int ks_target_match(struct ks_target *target, const char *if_match, struct ks_error *err);
/* The content comes whole or not at all: a file of another name beside it, then renamed. An old file's permission bits are kept, its
 * other names keep the old content; `mode` is a new one's. With `fresh` what came in the meantime is not replaced: exists. */
int ks_target_replace(struct ks_target *target, const void *data, size_t len, mode_t mode, bool fresh, char ret_etag[KS_ETAG_TEXT],
		      struct ks_error *err);
/* Behind what is there. On failure what was added is taken away again. */
int ks_target_append(struct ks_target *target, const void *data, size_t len, mode_t mode, int64_t *ret_size,
		     char ret_etag[KS_ETAG_TEXT], struct ks_error *err);
