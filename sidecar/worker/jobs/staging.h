/* staging.h: KS_RESTORE_NAME in a workspace, where a restore lies until it is whole, and what was there until it is gone.
 *
 *	new/		the archive's content, being extracted
 *	new/ old/	the swap has begun: what was in the workspace is being moved to old/. Undone: back from old/
 *	new/ trash/	old/ was renamed, in one step: the point of no return. What is in new/ is being moved up. Finished: up from new/
 *
 * Every step is a rename in one file system. Killed between two of them, ks_staging_sweep() brings the workspace to the one state or the
 * other: old before the rename of old/, new behind it. */
#pragma once

#include "base/error.h"
#include "worker/archive.h"

/* KS_RESTORE_NAME/new, empty. Its descriptor, or -1. */
int ks_staging_make(int root, struct ks_error *err);
/* The workspace is the old one or the new one when it returns: the old one on failure. */
int ks_staging_swap(int root, struct ks_error *err);
/* Undoes or finishes what was begun, and removes what is left. -1: something of it could not be removed. */
int ks_staging_sweep(int root, enum ks_sweep *ret, struct ks_error *err);
