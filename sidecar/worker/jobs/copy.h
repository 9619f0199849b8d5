/* copy.h: copying a tree below one descriptor to below another, both of which others may change meanwhile. */
#pragma once

#include "base/error.h"

#define KS_COPY_DEPTH 64
#define KS_COPY_ENTRIES 500000

/* Regular files with their times and permission bits (no set-id bits), directories, symbolic links as they are; everything else is
 * left out. What a file shares with another name, or with a hole, becomes its own. Blocks are shared where the file system can. too_large:
 * what has been copied by then stays. */
int ks_copy_tree(int from, int to, int64_t max_bytes, struct ks_error *err);
