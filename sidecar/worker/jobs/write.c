/* write.c: file/write. Request: name, followLinks, ifExists (enum ks_if_exists), ifMatch ("": none), mkdirs, mode, content.
 * Result: size, etag, created. */
#include "jobs.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "target.h"

#define TRIES 8 /* somebody makes and removes the file as fast as we look */

enum { IF_EXISTS_REPLACE, IF_EXISTS_FAIL, IF_EXISTS_APPEND }; /* proto/messages.h: the worker knows no messages */

struct writing {
	struct ks_name name;
	int64_t if_exists;
	const char *if_match;
	bool mkdirs;
	mode_t mode;
	const char *data;
	size_t len;
	/* the result */
	int64_t size;
	char etag[KS_ETAG_TEXT];
	bool created;
};

static int write_once(struct writing *w, struct ks_error *err)
{
	KS_AUTOTARGET struct ks_target target = { .dir = -1 };

	if (ks_target_look(&w->name, &target, err) < 0 || ks_target_match(&target, w->if_match, err) < 0)
		return -1;
	if (target.exists && w->if_exists == IF_EXISTS_FAIL)
		return ks_name_fail(&w->name, EEXIST, err);
	w->created = !target.exists;
	w->size = (int64_t)w->len;
	if (w->if_exists == IF_EXISTS_APPEND)
		return ks_target_append(&target, w->data, w->len, w->mode, &w->size, w->etag, err);
	return ks_target_replace(&target, w->data, w->len, w->mode, !target.exists, w->etag, err);
}

/* A file that came between the look and the making is looked at, too. */
static int write_again(struct writing *w, struct ks_error *err)
{
	int rc, tries = 0;

	do
		rc = write_once(w, err);
	while (rc < 0 && w->created && err->reason == KS_E_EXISTS && w->if_exists != IF_EXISTS_FAIL && ++tries < TRIES);
	return rc;
}

static int write_below_new_dirs(struct writing *w, struct ks_error *err)
{
	const char *slash = strrchr(w->name.path, '/');
	char parent[PATH_MAX];
	size_t made;

	(void)snprintf(parent, sizeof(parent), "%.*s", slash ? (int)(slash - w->name.path) : 0, w->name.path);
	if (ks_name_make_dirs(&w->name, parent, &made, err) < 0)
		return -1;
	if (write_again(w, err) == 0)
		return 0;
	ks_name_unmake_dirs(&w->name, parent, made);
	return -1;
}

int ks_job_write(struct ks_run *run, struct ks_unpack *in, struct ks_buf *ret_result, struct ks_error *err)
{
	struct writing w = { 0 };

	if (ks_name_unpack(run, in, "/path", true, true, &w.name, err) < 0)
		return -1;
	w.if_exists = ks_unpack_int(in);
	w.if_match = ks_unpack_bytes(in, NULL);
	w.mkdirs = ks_unpack_int(in) != 0;
	w.mode = (mode_t)ks_unpack_int(in) & 0777;
	w.data = ks_unpack_bytes(in, &w.len);
	if (!ks_unpack_end(in))
		ks_run_damaged();
	int rc = ks_name_follow(&w.name, false, err);
	if (rc == 0)
		rc = write_again(&w, err);
	if (rc < 0 && w.mkdirs && err->reason == KS_E_NOT_FOUND)
		rc = write_below_new_dirs(&w, err);
	if (rc < 0 && err->reason == KS_E_EXISTS)
		(void)ks_error_hint(err, "say ifExists: replace or append");
	ks_name_free(&w.name);
	if (rc < 0)
		return -1;
	ks_pack_int(ret_result, w.size);
	ks_pack_string(ret_result, w.etag);
	ks_pack_int(ret_result, w.created);
	return 0;
}
