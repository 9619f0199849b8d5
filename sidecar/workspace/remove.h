/* remove.h: removing a tree of ours, in slices: any depth, any number of entries, any modes, with two fds.
 * Never follows a link, never crosses a mount point. Sub-directories are first moved up beside the tree, so that no
 * path is ever deeper than one name; a removal that was cut short leaves ".rm-*" names for the next sweep. */
#pragma once

#include <stdint.h>

#include "base/error.h"

struct ks_remove;

/* A directory, not through a link, opened up when its mode keeps its owner out. An fd, or -1 with errno. */
int ks_open_accessible(int dir_fd, const char *name);
/* Removes `name` (one component) from `dir_fd`, or with NULL everything inside `dir_fd`. `dir_fd` (O_RDONLY) must be
 * a directory that only we write to; it stays the caller's and must outlive the removal. */
int ks_remove_start(int dir_fd, const char *name, struct ks_remove **ret, struct ks_error *err);
/* 1 all gone, 0 more to do, -1 done with something left: err counts it and names the first and its errno. */
int ks_remove_step(struct ks_remove *remove, int64_t budget_us, struct ks_error *err);
uint64_t ks_remove_removed(const struct ks_remove *remove);
uint64_t ks_remove_left(const struct ks_remove *remove);
void ks_remove_free(struct ks_remove *remove);
/* A directory that we own may be of any mode: 0700 is given through an fd, so that no link can get in between. */
void ks_make_accessible(int dir_fd, const char *name);
