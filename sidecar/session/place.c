#include "session/place.h"

#include <stdio.h>
#include <string.h>

#include "session/mounts.h"

#define PATH_BYTES 4095 /* PATH_MAX (linux/limits.h) without its NUL */
#define NAME_BYTES 255	/* NAME_MAX */

/* "." and empty parts go, ".." takes the part before it with it: without links that is what the kernel would do. In place; absolute. */
static int normalise(char *path)
{
	char *out = path;

	for (const char *in = path; *in;) {
		size_t len = strcspn(++in, "/");
		if (len > NAME_BYTES)
			return -1;
		if (len == 2 && memcmp(in, "..", 2) == 0) {
			while (out > path && *--out != '/')
				;
		} else if (len > 0 && !(len == 1 && *in == '.')) {
			*out++ = '/';
			memmove(out, in, len);
			out += len;
		}
		in += len;
	}
	if (out == path)
		*out++ = '/';
	*out = '\0';
	return 0;
}

/* Below `place`: what comes after it, "." for itself; else NULL. */
static const char *below(const char *path, const char *place)
{
	if (strcmp(place, "/") == 0)
		return path[1] ? path + 1 : ".";
	if (!ks_path_within(path, place))
		return NULL;
	path += strlen(place);
	return *path ? path + 1 : ".";
}

/* The innermost place that holds the path: in_box chooses between its name there and its name on the host. */
static const char *find(const struct ks_session *session, const char *path, bool in_box, int64_t *ret_root)
{
	const char *rest = below(path, in_box ? session->workspace_target : session->workspace);
	size_t best = rest ? strlen(in_box ? session->workspace_target : session->workspace) : 0;

	*ret_root = 0;
	for (size_t i = 0; i < session->mount_count; i++) {
		const char *place = in_box ? session->mounts[i].target : session->mounts[i].source;
		const char *here = below(path, place);
		if (here && (!rest || strlen(place) > best)) {
			rest = here;
			best = strlen(place);
			*ret_root = (int64_t)i + 1;
		}
	}
	return rest;
}

static const char *covering_tmpfs(const struct ks_session *session, const char *path, size_t longer_than)
{
	for (size_t i = 0; i < session->tmpfs_count; i++)
		if (ks_path_within(path, session->tmpfs[i].target) && strlen(session->tmpfs[i].target) > longer_than)
			return session->tmpfs[i].target;
	return NULL;
}

int ks_place_find(const struct ks_session *session, const char *path, const struct ks_text *bytes, const char *pointer,
		  struct ks_place *ret, struct ks_error *err)
{
	char field[128], absolute[2 * PATH_BYTES + 3];
	const char *given = path ? path : bytes->data;
	const size_t len = path ? strlen(path) : bytes->len;

	(void)snprintf(field, sizeof(field), "%s%s", pointer, path ? "" : "Base64");
	if (len == 0 || memchr(given, '\0', len))
		return ks_fail_at(err, KS_E_INVALID_PATH, field, len ? "a path has no NUL" : "the path is empty");
	if (len > PATH_BYTES)
		return ks_fail_at(err, KS_E_INVALID_PATH, field, "the path is longer than %d bytes", PATH_BYTES);
	const bool relative = given[0] != '/';
	(void)snprintf(absolute, sizeof(absolute), "%s/%.*s", relative ? session->workspace_target : "", (int)len, given);
	if (normalise(absolute) < 0)
		return ks_fail_at(err, KS_E_INVALID_PATH, field, "a name in the path is longer than %d bytes", NAME_BYTES);

	const char *rest = find(session, absolute, true, &ret->root);
	if (rest) {
		const char *tmpfs = covering_tmpfs(session, absolute, strlen(absolute) - strlen(rest) - (rest[0] != '.' || rest[1]));
		if (tmpfs)
			return ks_fail_at(err, KS_E_PATH_ESCAPE, field, "%.200s is a tmpfs that each call has for itself", tmpfs);
	} else if (!relative) {
		rest = find(session, absolute, false, &ret->root);
	}
	if (!rest) {
		(void)ks_fail_at(err, KS_E_PATH_ESCAPE, field, "the path leaves the workspace");
		return ks_error_hint(err, "name something in %.100s, or in a mount of the session", session->workspace_target);
	}
	ret->path = strdup(rest);
	if (!ret->path)
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	ret->writable = ret->root == 0 || session->mounts[ret->root - 1].writable;
	return 0;
}
