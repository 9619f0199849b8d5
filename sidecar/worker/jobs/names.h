/* names.h: names in a tree that somebody else changes at the same time: opening them, and saying what is wrong with them. */
#pragma once

#include <sys/stat.h>

#include "workspace/beneath.h"

#include "run.h"

/* Where a job works: unpacked from its request. */
struct ks_name {
	int root;
	const char *path;    /* no links in it any more once they were followed */
	const char *pointer; /* of the request's field, for errors */
	bool follow;
	char *followed; /* owns path then */
};

#define KS_AUTONAME KS_CLEANUP(ks_name_free)
void ks_name_free(struct ks_name *name);

/* Root, path, then `followLinks` when has_follow: read from `in`. -1 with read_only when it is to be written and may not be. */
int ks_name_unpack(const struct ks_run *run, struct ks_unpack *in, const char *pointer, bool has_follow, bool to_write,
		   struct ks_name *ret, struct ks_error *err);
/* Follows links when the request says so; a last name that is one stays as it is with keep_last. */
int ks_name_follow(struct ks_name *name, bool keep_last, struct ks_error *err);
/* Opens it (ks_open_beneath). An fd, or -1 with err. */
int ks_name_open(const struct ks_name *name, int flags, struct ks_error *err);
/* The root itself, which is a regular file. */
bool ks_name_is_mounted_file(const struct ks_name *name, struct stat *ret_st);
/* Opens the directory that it is in (O_PATH). *ret_last is the name there, "." when it is the root itself. */
int ks_name_open_parent(const struct ks_name *name, const char **ret_last, struct ks_error *err);
/* Opens it for reading (positions may be shared: pread) when it is a regular file: anything else is refused by what it is, before it is
 * opened. *ret_st is of what was opened. */
int ks_name_open_regular(const struct ks_name *name, struct stat *ret_st, struct ks_error *err);
/* Makes `path`, of the name's root, and what is missing above it, one level at a time. *ret_made: how many levels. */
int ks_name_make_dirs(const struct ks_name *name, const char *path, size_t *ret_made, struct ks_error *err);
/* Takes the last `made` levels of `path` away again, as far as they are empty. */
void ks_name_unmake_dirs(const struct ks_name *name, const char *path, size_t made);
/* -1 with is_directory or not_regular. */
int ks_name_fail_type(const struct ks_name *name, mode_t mode, struct ks_error *err);
/* -1, and the reason that an errno (positive) means for a name. */
int ks_name_fail(const struct ks_name *name, int error, struct ks_error *err);
/* Index in ks_file_type_words (proto/tables.h). */
int ks_file_type(mode_t mode);
