/* tree.h: the inside of struct ks_tree, for walk.c, still.c and diff.c only. Entries refer to their directory by index, so a
 * path is never stored: a tree 5,000 deep costs no more than a flat one. A directory precedes what is in it, and what
 * is in one directory is contiguous. */
#pragma once

#include <sys/stat.h>

#include "walk.h"

enum ks_tree_type { KS_TREE_FILE, KS_TREE_LINK, KS_TREE_DIR };

struct ks_tree_entry {
	uint64_t ino;
	int64_t size; /* of a directory: its depth */
	int64_t mtime_ns, ctime_ns; /* of a directory, as ino: only of a steady tree */
	uint32_t dir;  /* entries[0] is the root, its own parent */
	uint32_t name; /* offset into names; NUL-terminated there */
	uint32_t hash; /* 1 + index into hashes; 0 none */
	uint16_t name_len;
	uint8_t type;
	bool unread; /* a directory whose content is not known */
};

_Static_assert(sizeof(struct ks_tree_entry) == 48, "what walk.h states");

struct ks_tree {
	struct ks_tree_entry *entries;
	size_t count, cap;
	char *names;
	size_t names_len, names_cap;
	unsigned char (*hashes)[32];
	size_t hash_count, hash_cap;
	size_t files, unreadable, seen;
	uint64_t disk_bytes;
	bool in_memory;
	bool steady; /* see ks_tree_still() */
};

static inline const char *ks_tree_name(const struct ks_tree *tree, uint32_t entry)
{
	return tree->names + tree->entries[entry].name;
}

/* The path of an entry: malloc'ed, or NULL when it has more than `max` bytes or there is no memory. */
char *ks_tree_path(const struct ks_tree *tree, uint32_t entry, size_t max, size_t *ret_len);

void ks_tree_set_times(struct ks_tree_entry *entry, const struct stat *st); /* and the inode */
bool ks_tree_same_times(const struct ks_tree_entry *entry, const struct stat *st);
bool ks_tree_young(int64_t ctime_ns); /* another change may still get the ctime that was just read */
bool ks_tree_hashable(const struct ks_tree_entry *entry);
/* A file system, by its statfs(2) number, whose directories get a new ctime with each name that comes or goes. */
bool ks_tree_trusts(long fs_type);
