/* deps.h: the packages that a workspace brings or a setup has installed: .deps of the workspace. Boxes see it read-only, on top of the
 * workspace, unless depsReadonly is false, and find what is in it: PYTHONPATH, PATH, and /node_modules for node. It is the
 * directory that was looked at (device, inode), or the box does not start. */
#pragma once

#include "box/plan.h"
#include "session/session.h"

#define KS_DEPS_NAME ".deps"

/* When the session opens and after a restore: does the workspace bring packages? What is no plain directory is left alone, with a
 * note. True: it is another directory than before, or has come or gone; then a template that is there must be made anew. */
bool ks_deps_find(struct ks_session *session, struct ks_notes *notes);
/* After a swap: .deps is `tree` now. */
int ks_deps_changed(struct ks_session *session, const struct stat *tree, struct ks_error *err);
int ks_deps_stage_open(const struct ks_session *session, struct ks_deps_stage *ret, struct ks_error *err);
/* What comes after the workspace, which is mounted at `workspace` in the template. */
int ks_deps_plan(const struct ks_session *session, const char *workspace, struct ks_plan *plan, struct ks_error *err);
/* Does a setup's box have this directory from its stage, and not as a memory file system? */
bool ks_deps_replaces(const struct ks_session *session, const char *target);
/* NAME=VALUE, each with its NUL. */
void ks_deps_environment(const struct ks_session *session, struct ks_buf *out);
