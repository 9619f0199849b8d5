/* diff.h: `files` of a result: what differs between two snapshots of a tree. A file differs when its inode, type,
 * size, mtime or ctime does - ctime cannot be set without setting the machine's clock, so faked times do not help -
 * or, for files hashed in the first snapshot, when its bytes do. So a mode, an owner, a time or a further name that was
 * set modifies a file, too: without its old bytes nothing tells that from a rewrite. Sliced like the walk. */
#pragma once

#include <sys/types.h>

#include "walk.h"

#define KS_DIFF_MAX_CHANGES 4096u
#define KS_DIFF_MAX_PATH (64u << 10)	   /* a longer path is left out: truncated */
#define KS_DIFF_MAX_PATH_BYTES (4u << 20)  /* of all paths together */
#define KS_DIFF_MAX_HASH_BYTES (16u << 20) /* changed files beyond that go without sha256 */

enum ks_change_kind { KS_CREATED, KS_MODIFIED, KS_DELETED };

struct ks_change {
	char *path; /* relative, any bytes but NUL; NUL-terminated */
	size_t path_len;
	enum ks_change_kind change;
	int64_t size;	  /* of a deleted file: what it was */
	const char *mime; /* static; NULL: unknown */
	bool has_sha256;
	unsigned char sha256[32];
};

struct ks_changes {
	struct ks_change *items; /* sorted bytewise by path: the first max_changes of them */
	size_t count;
	size_t total;	/* changes found, also those left out */
	bool truncated; /* count < total */
};

struct ks_diff;

/* Both trees and `root_fd` stay the caller's and must outlive the diff. max_changes <= KS_DIFF_MAX_CHANGES. */
int ks_diff_start(int root_fd, const struct ks_tree *before, const struct ks_tree *after, size_t max_changes,
		  struct ks_diff **ret, struct ks_error *err);
int ks_diff_step(struct ks_diff *diff, int64_t budget_us, struct ks_error *err); /* 1 done, 0 more to do, -1 failed */
size_t ks_diff_bytes(const struct ks_diff *diff); /* memory held, without the changes */
struct ks_changes ks_diff_take(struct ks_diff *diff);				  /* after 1; frees the diff */
void ks_diff_free(struct ks_diff *diff);
void ks_changes_free(struct ks_changes *changes);
const char *ks_change_name(enum ks_change_kind kind); /* "created", "modified", "deleted" */
