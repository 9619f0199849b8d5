/* host_file.h: the archive of a snapshot or restore: a file of the host that the request names, opened with the sidecar's own rights. What
 * a box can change has no part in such a path: a name in a workspace or a mount is refused, or code could point it elsewhere. */
#pragma once

#include "session/core.h"

/* A file being written beside its final name. */
struct ks_host_file {
	int dir, fd;	 /* -1: none */
	char temporary[32];
	char *name;
};

/* Errors point at /path. For reading: a regular file; its descriptor, or -1. */
int ks_host_file_open(const struct ks_core *core, const char *path, struct ks_error *err);
/* For writing, 0600. What has the name already must be a regular file, and keeps it until ks_host_file_commit(). */
int ks_host_file_create(const struct ks_core *core, const char *path, struct ks_host_file *ret, struct ks_error *err);
int ks_host_file_commit(struct ks_host_file *file, struct ks_error *err);
/* Removes what was not committed. Fine after that, and for one that was never made. */
void ks_host_file_discard(struct ks_host_file *file);
