/* trees.h: a walk and a comparison from start to end. */
#pragma once

#include "scratch.h"
#include "workspace/diff.h"

#define SLICE_US 1000

static inline struct ks_tree *snapshot(int root, bool before)
{
	struct ks_walk *walk;
	struct ks_error err;
	int rc;

	CHECK(ks_walk_start(root, before, &walk, &err) == 0);
	while ((rc = ks_walk_step(walk, SLICE_US, &err)) == 0)
		;
	CHECK(rc == 1);
	return ks_walk_take(walk);
}

static inline struct ks_changes compare(int root, const struct ks_tree *a, const struct ks_tree *b, size_t max)
{
	struct ks_diff *diff;
	struct ks_error err;
	int rc;

	CHECK(ks_diff_start(root, a, b, max, &diff, &err) == 0);
	while ((rc = ks_diff_step(diff, SLICE_US, &err)) == 0)
		;
	CHECK(rc == 1);
	return ks_diff_take(diff);
}
