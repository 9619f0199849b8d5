/* walk.h: a snapshot of the names and times of a tree, taken in slices so that the event loop never stalls.
 * Regular files and symbolic links are recorded, directories only as places; everything else is passed over.
 * No link is followed, no mount point crossed, nothing but young small files (see below) is opened. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define KS_TREE_MAX_ENTRIES 500000u	     /* names seen; 48 bytes and the name each */
#define KS_TREE_MAX_NAME_BYTES (32u << 20)
#define KS_HASH_MAX_FILE (64u << 10)	     /* larger files are never hashed */
#define KS_HASH_MAPPED_FILES 1000u	     /* hashed in a walk because stores to a mapping leave no trace there */
#define KS_STILL_MAX 64u		     /* entries of a tree that is asked whether it is still so */
#define KS_SKIPPED_TOP_NAME ".deps"	     /* installed packages are not a call's files */
#define KS_STAGE_TOP_NAME ".deps.new"	     /* nor is what a setup is about to install */

struct ks_tree;
struct ks_walk;

/* `before`: the snapshot that a later one is compared with. Files of at most KS_HASH_MAX_FILE bytes are hashed then
 * when their ctime cannot be relied on: it is younger than 20 ms, and a kernel before 6.13 (no multigrain timestamps)
 * gives a second write in the same clock tick the same ctime; or they lie in memory (tmpfs, ramfs), where a store to a
 * shared mapping of a page that was read first changes no time: KS_HASH_MAPPED_FILES of them.
 * `root_fd` stays the caller's and must outlive the walk; O_PATH will do. */
int ks_walk_start(int root_fd, bool before, struct ks_walk **ret, struct ks_error *err);
/* Lowers the cap on the number of names. */
void ks_walk_limit(struct ks_walk *walk, size_t max_entries);
/* Also what a diff passes over (KS_SKIPPED_TOP_NAME): for measuring. */
void ks_walk_everything(struct ks_walk *walk);
/* 1 done, 0 more to do, -1 failed: KS_E_LIMIT when there is too much to track (make it a note), KS_E_IO. */
int ks_walk_step(struct ks_walk *walk, int64_t budget_us, struct ks_error *err);
struct ks_tree *ks_walk_take(struct ks_walk *walk); /* after 1; frees the walk */
size_t ks_walk_bytes(const struct ks_walk *walk);	    /* memory held so far */
void ks_walk_free(struct ks_walk *walk);	     /* at any time; NULL is fine */

/* Would a walk that begins now find just what this one found? Asked of a small tree (KS_STILL_MAX names) by the times of what is in it,
 * without reading a directory. False: perhaps not, walk. Only for a tree of which ks_tree_is_steady() is true; others are not still. */
bool ks_tree_still(const struct ks_tree *tree, int root_fd, bool before);
/* Worth keeping for that: small, no hashes in it, and each directory's ctime was old enough when it was read to tell of what came later. */
bool ks_tree_is_steady(const struct ks_tree *tree);

void ks_tree_free(struct ks_tree *tree);
size_t ks_tree_files(const struct ks_tree *tree);      /* regular files and links */
size_t ks_tree_unreadable(const struct ks_tree *tree); /* directories that could not be read, and mount points */
size_t ks_tree_seen(const struct ks_tree *tree);	/* names of any kind */
uint64_t ks_tree_disk_bytes(const struct ks_tree *tree); /* blocks of regular files; a file with two names counts twice */
size_t ks_tree_bytes(const struct ks_tree *tree);      /* memory held */
