/* page.h: the smallest keys behind a place, out of any number: a page of a directory in bytewise path order, in memory for a page.
 * A directory gives two keys: its name, and its name with a slash, which stands for everything below it. So "a", "a-b", "a/x" come in
 * the order of their bytes. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ks_page_entry {
	char *key; /* owned */
	int type;  /* and the rest: the caller's */
	int64_t size, mtime_ms;
};

struct ks_page {
	struct ks_page_entry *entries; /* sorted after ks_page_end() */
	size_t count, cap, most;
	size_t bytes;	    /* of memory, for the caller's count */
	const char *after;  /* given: keys up to this one are left out; "" none */
	bool more, failed;  /* there were larger keys; out of memory */
};

void ks_page_begin(struct ks_page *page, const char *after, size_t most);
void ks_page_add(struct ks_page *page, const char *name, bool below);
void ks_page_end(struct ks_page *page);
void ks_page_free(struct ks_page *page);

/* A cursor: 'r' (recursive) or 'd', and a path. NULL: it is none; else the path in it. */
const char *ks_cursor_path(const char *cursor, size_t len, bool recursive);
