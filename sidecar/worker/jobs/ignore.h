/* ignore.h: the rules of .gitignore files (gitignore(5)). Those of one file are a struct ks_ignore; which files count for a name, and in
 * which order, is the caller's affair. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define KS_IGNORE_FILE ((size_t)1 << 20) /* bytes of such a file */

struct ks_ignore;

enum ks_ignored {
	KS_IGNORE_SILENT, /* no rule is about it */
	KS_IGNORE_NO,	  /* a rule with ! */
	KS_IGNORE_YES,
};

/* What such a file says. -1: too large, or out of memory. */
int ks_ignore_new(const char *text, size_t len, struct ks_ignore **ret, struct ks_error *err);
/* The file `name` (one part or more) in a directory. *ret is NULL when there is none that can be read: a directory, a symbolic link
 * and what the box's user may not read count as none, as for git. `shown` names it in errors. */
int ks_ignore_read(int dir_fd, const char *name, const char *shown, struct ks_ignore **ret, struct ks_error *err);
/* `path` from the directory of the file on; its last part is `name`. The last rule that matches has the say. */
enum ks_ignored ks_ignore_match(struct ks_ignore *ignore, const char *path, size_t path_len, const char *name, size_t name_len,
				bool directory);
size_t ks_ignore_bytes(const struct ks_ignore *ignore); /* memory that it holds */
void ks_ignore_free(struct ks_ignore *ignore);		/* NULL is fine */
