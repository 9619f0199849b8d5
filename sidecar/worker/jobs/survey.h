/* survey.h: what a snapshot will hold: the names of a tree in bytewise order, and those that stay out, with the reason. No link is
 * followed, no mount point crossed; nothing but directories is opened. */
#pragma once

#include <sys/stat.h>

#include "base/buf.h"
#include "base/error.h"
#include "worker/archive.h"

struct ks_surveyed {
	char *path;
	mode_t type; /* S_IFREG, S_IFDIR or S_IFLNK */
	int64_t size;
};

struct ks_survey {
	int root;
	void (*skip)(void *arg, const char *path, const char *reason);
	void *arg;
	struct ks_surveyed *items; /* sorted */
	size_t count, cap, name_bytes;
	int64_t bytes; /* of regular files, holes included */
};

/* root, skip and arg are the caller's. Why a name is skipped: "unreadable", "mount_point", "device", "fifo", "socket", "name_too_long". */
int ks_survey_tree(struct ks_survey *survey, struct ks_error *err);
void ks_survey_free(struct ks_survey *survey);
