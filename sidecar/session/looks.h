/* looks.h: views of a session's workspace - snapshots of names and times - for the calls that want one. A workspace is walked once at a
 * time: whoever asks while a walk is under way gets the next one, together with everybody else who asks until then. A hundred calls that
 * begin at once cost two walks and two views, not a hundred. Of a small tree the last view is kept, and a look that finds the tree still so
 * (ks_tree_still) gets it again: nothing is read, and a call with the same view before and after has changed nothing. */
#pragma once

#include "session/core.h"
#include "workspace/walk.h"

#define KS_VIEW_BYTES ((size_t)256 << 20) /* of all snapshots of a sidecar, and what compares them */

struct ks_looks;

struct ks_view {
	struct ks_core *core;
	size_t refs, bytes;
	struct ks_tree *tree;
};

struct ks_look {
	struct ks_list node;
	bool before; /* see ks_walk_start */
	/* Once. The snapshot was begun after it was asked for, and is the caller's to give back; or NULL with err. */
	void (*seen)(struct ks_look *look, struct ks_view *snapshot, const struct ks_error *err);
	struct ks_looks *looks; /* NULL: does not wait; ours */
};

struct ks_looks {
	struct ks_core *core;
	int workspace_fd;
	struct ks_list now, next; /* struct ks_look: of the walk under way, of the one behind it */
	struct ks_walk *walk;
	struct ks_view *snapshot; /* that the walk fills */
	struct ks_view *last;	  /* of a steady tree, or NULL: it serves again for as long as the tree is still so */
	struct ks_chore chore;
};

void ks_looks_init(struct ks_looks *looks, struct ks_core *core);
void ks_looks_free(struct ks_looks *looks);
/* `seen` follows, perhaps at once. The descriptor is the session's, and the same each time. */
void ks_look_ask(struct ks_looks *looks, int workspace_fd, struct ks_look *look);
/* `seen` will not come. At any time. */
void ks_look_drop(struct ks_look *look);
void ks_view_unref(struct ks_view *snapshot); /* NULL is fine */
/* Counts `more` bytes (may be negative) against KS_VIEW_BYTES. Counted also when it fails. */
int ks_view_count(struct ks_core *core, ssize_t more, struct ks_error *err);
