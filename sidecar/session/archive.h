/* archive.h: snapshots and restores of a session's workspace: tasks for a worker, in the right order, and what of them lies outside of the
 * workspace. A restore has the session for itself: verified and extracted by a worker that can be killed, put in place by a task that
 * cannot, swept up after whatever happened (worker/jobs/staging.h). */
#pragma once

#include "session/files.h"
#include "session/host_file.h"
#include "worker/archive.h"

/* ---- snapshot ---- */

struct ks_snapshot {
	/* the caller's; the callbacks' too */
	struct ks_session *session;
	const char *path; /* on the host; NULL: a blob of the session */
	enum ks_links links;
	void (*progress)(struct ks_snapshot *snapshot, const char *phase, int64_t done, int64_t total); /* may be NULL */
	void (*done)(struct ks_snapshot *snapshot, const struct ks_error *err); /* once, last: err NULL on success */
	void *arg;
	/* the result */
	int64_t bytes, entries, not_listed;
	char sha256[65];
	char blob[KS_BLOB_ID_BYTES + 1]; /* "" with a path */
	struct ks_buf skipped;		 /* elements of a JSON array: {path | pathBase64, reason} */
	/* ours */
	struct ks_task task;
	struct ks_host_file file;
	struct ks_error error;
};

/* `done` follows, or -1 and it does not. */
int ks_snapshot_start(struct ks_snapshot *snapshot, struct ks_error *err);
void ks_snapshot_cancel(struct ks_snapshot *snapshot);
void ks_snapshot_free(struct ks_snapshot *snapshot); /* what it holds; after `done` or a start that failed */

/* ---- restore ---- */

enum ks_restore_stage { KS_RESTORE_WAITING, KS_RESTORE_COPYING, KS_RESTORE_EXTRACTING, KS_RESTORE_SWAPPING, KS_RESTORE_REOPENING,
			KS_RESTORE_SWEEPING };

struct ks_restore {
	/* the caller's */
	struct ks_session *session;
	const char *path;	    /* on the host; NULL: `text` */
	const struct ks_text *text; /* must live until `done` */
	enum ks_links links;
	void (*progress)(struct ks_restore *restore, const char *phase, int64_t done, int64_t total); /* may be NULL */
	void (*done)(struct ks_restore *restore, const struct ks_error *err);
	void *arg;
	/* the result */
	int64_t bytes, entries;
	struct ks_notes notes;
	/* ours */
	struct ks_exclusive exclusive;
	struct ks_chore chore;
	struct ks_task task;
	enum ks_restore_stage stage;
	int fd;
	size_t copied;
	struct ks_error error; /* reason set: it failed */
};

int ks_restore_start(struct ks_restore *restore, struct ks_error *err);
/* The old state stays, unless the swap has begun: then it ends first, and the restore has happened. */
void ks_restore_cancel(struct ks_restore *restore);

/* ---- a restore that was cut off ---- */

/* Undoes or finishes it, before the session is open: `done` is called once, perhaps at once. What was found becomes a note. */
void ks_restore_recover(struct ks_session *session, void (*done)(struct ks_session *session));
