/* seen.h: the names that an archive has had so far, and what they are. Whoever chooses the names cannot make it slow. */
#pragma once

#include <stdint.h>

#include "base/buf.h"

enum ks_seen_kind { KS_SEEN_NOTHING, KS_SEEN_IMPLIED, KS_SEEN_DIRECTORY, KS_SEEN_FILE, KS_SEEN_LINK };

struct ks_seen_name {
	uint32_t at, len; /* in names */
	uint8_t kind;
};

struct ks_seen {
	unsigned char key[16];
	struct ks_seen_name *items;
	uint32_t *slots; /* 1 + index into items; 0: free */
	size_t count, cap, slot_count;
	struct ks_buf names;
};

/* 0, or -errno. */
int ks_seen_init(struct ks_seen *seen);
/* Its place in items, `count` when it is not there. */
size_t ks_seen_index(const struct ks_seen *seen, const char *name, size_t len);
enum ks_seen_kind ks_seen_find(const struct ks_seen *seen, const char *name, size_t len);
/* Adds it, or changes what it is. False: out of memory. */
bool ks_seen_put(struct ks_seen *seen, const char *name, size_t len, enum ks_seen_kind kind);
void ks_seen_free(struct ks_seen *seen);
