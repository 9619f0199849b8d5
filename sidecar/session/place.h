/* place.h: where a path of a request lies: in which directory that the session may touch, and where below it. Only text is looked at;
 * links are the worker's concern. */
#pragma once

#include "session/session.h"

struct ks_place {
	int64_t root; /* 0: the workspace; i: mounts[i - 1] */
	bool writable;
	char *path;   /* below the root, no "..", no empty part; "." is the root itself. NUL-terminated; freed by the owner */
};

/* `path`: relative to the workspace, or absolute as the box sees it, else as the host sees it; or NULL, then `bytes` (a path that is
 * not UTF-8). Errors point at `pointer`, or at pointer + "Base64". */
int ks_place_find(const struct ks_session *session, const char *path, const struct ks_text *bytes, const char *pointer,
		  struct ks_place *ret, struct ks_error *err);
