/* names.h: names in a tree that somebody else changes at the same time: opening them, and saying what is wrong with them. */
#pragma once

#include <sys/stat.h>

#include "workspace/beneath.h"

#include "run.h"

/* Where a job works: unpacked from its request. */
struct ks_name {
	int root;
	const char *path;
	const char *pointer; /* of the request's field, for errors */
	bool follow;
};

/* Root, path, then `followLinks` when has_follow: read from `in`. -1 with read_only when it is to be written and may not be. */
int ks_name_unpack(const struct ks_run *run, struct ks_unpack *in, const char *pointer, bool has_follow, bool to_write,
		   struct ks_name *ret, struct ks_error *err);
/* Opens it (ks_open_beneath). An fd, or -1 with err. */
int ks_name_open(const struct ks_name *name, int flags, struct ks_error *err);
/* -1, and the reason that an errno (positive) means for a name. */
int ks_name_fail(const struct ks_name *name, int error, struct ks_error *err);
/* Index in ks_file_type_words (proto/tables.h). */
int ks_file_type(mode_t mode);
