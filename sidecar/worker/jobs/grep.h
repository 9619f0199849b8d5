/* grep.h: the lines of one file that have what is looked for, with lines around them. Any size of file and line, in bounded memory. */
#pragma once

#include <stdint.h>

#include "needle.h"
#include "run.h"

#define KS_GREP_TEXT 2000u		    /* bytes of a line that are shown */
#define KS_GREP_CONTEXT 100u		    /* lines before or after */
#define KS_GREP_WINDOW ((size_t)128 << 10) /* a longer line is searched in pieces, and a NUL in the first of them is a binary file */
#define KS_GREP_ANSWER ((size_t)16 << 20)  /* bytes of records */

struct ks_grep;

struct ks_grep_config {
	struct ks_run *run; /* its records: path, line, column, cut, text, how many lines before and these, after and these */
	struct ks_needle *needle;
	size_t before, after; /* <= KS_GREP_CONTEXT */
	int64_t limit;	      /* matches */
};

enum ks_grepped {
	KS_GREPPED,
	KS_GREP_BINARY,	   /* it has a NUL: nothing from that block on was looked at */
	KS_GREP_UNREADABLE,
	KS_GREP_TRUNCATED, /* there is more than may be answered: this was the last file */
};

int ks_grep_new(const struct ks_grep_config *config, struct ks_grep **ret, struct ks_error *err);
/* Reads the file to its end; `path` is for the records. A value of enum ks_grepped, or -1. */
int ks_grep_file(struct ks_grep *grep, int fd, const char *path, size_t path_len, struct ks_error *err);
void ks_grep_free(struct ks_grep *grep); /* NULL is fine */
