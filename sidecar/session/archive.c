#include "session/archive.h"
#include "session/deps.h"
#include "session/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/log.h"
#include "proto/write.h"
#include "session/disk.h"
#include "session/text.h"

#define MIME "application/gzip"
#define COPY_PIECE ((size_t)1 << 20)

/* ---- snapshot ---- */

static struct ks_snapshot *snapshot_of(struct ks_job *job)
{
	return KS_ENTRY(KS_ENTRY(job, struct ks_task, job), struct ks_snapshot, task);
}

/* Pieces become the blob one by one, hashed as they come: no turn of the loop takes long. */
static void take_piece(struct ks_snapshot *snapshot, struct ks_unpack *record)
{
	struct ks_blobs *blobs = snapshot->session->core->blobs;
	struct ks_blob *blob;
	size_t len;
	const char *data = ks_unpack_bytes(record, &len);

	if (record->bad || snapshot->error.reason)
		return;
	if (ks_blob_find(blobs, snapshot->blob, &blob, &snapshot->error) < 0 ||
	    ks_blob_append(blobs, blob, data, len, &snapshot->error) < 0) {
		(void)ks_error_at(&snapshot->error, "");
		return;
	}
	(void)ks_blob_sha256(blob);
}

static void take_skipped(struct ks_snapshot *snapshot, struct ks_unpack *record)
{
	size_t len;
	const char *path = ks_unpack_bytes(record, &len), *reason = ks_unpack_bytes(record, NULL);

	if (record->bad || len > 2 * KS_ARCHIVE_PATH || strlen(reason) > 64) {
		record->bad = true;
		return;
	}
	ks_write_open(&snapshot->skipped, '{');
	ks_write_path(&snapshot->skipped, path, len);
	ks_write_key_string(&snapshot->skipped, "reason", reason);
	ks_write_close(&snapshot->skipped, '}');
}

static void on_record(struct ks_job *job, struct ks_unpack *record)
{
	const int64_t kind = ks_unpack_int(record);

	if (kind == KS_SNAPSHOT_PIECE && !snapshot_of(job)->path)
		take_piece(snapshot_of(job), record);
	else if (kind == KS_SNAPSHOT_SKIPPED)
		take_skipped(snapshot_of(job), record);
	else
		record->bad = true;
}

static void on_packed(struct ks_job *job, int64_t done, int64_t total)
{
	struct ks_snapshot *snapshot = snapshot_of(job);

	if (snapshot->progress)
		snapshot->progress(snapshot, "pack", done, total);
}

static void read_result(struct ks_snapshot *snapshot, struct ks_unpack *result)
{
	size_t len;

	snapshot->bytes = ks_unpack_int(result);
	snapshot->entries = ks_unpack_int(result);
	const unsigned char *digest = (const unsigned char *)ks_unpack_bytes(result, &len);
	snapshot->not_listed = ks_unpack_int(result);
	if (!ks_unpack_end(result) || len != 32) {
		(void)ks_fail(&snapshot->error, KS_E_INTERNAL, "the worker's result is damaged");
		return;
	}
	for (size_t i = 0; i < len; i++)
		(void)snprintf(snapshot->sha256 + 2 * i, 3, "%02x", digest[i]);
}

static void drop_blob(struct ks_snapshot *snapshot)
{
	struct ks_blobs *blobs = snapshot->session->core->blobs;
	struct ks_blob *blob;
	struct ks_error ignored;

	if (snapshot->blob[0] && ks_blob_find(blobs, snapshot->blob, &blob, &ignored) == 0)
		ks_blob_drop(blobs, blob);
	snapshot->blob[0] = '\0';
}

static void on_snapshot_done(struct ks_task *task, struct ks_unpack *result, const struct ks_error *err)
{
	struct ks_snapshot *snapshot = KS_ENTRY(task, struct ks_snapshot, task);

	if (!snapshot->error.reason && err)
		snapshot->error = *err;
	if (!snapshot->error.reason)
		read_result(snapshot, result);
	if (!snapshot->error.reason && snapshot->skipped.failed)
		(void)ks_fail(&snapshot->error, KS_E_INTERNAL, "out of memory");
	if (!snapshot->error.reason && snapshot->path)
		(void)ks_host_file_commit(&snapshot->file, &snapshot->error);
	if (snapshot->error.reason)
		drop_blob(snapshot);
	ks_host_file_discard(&snapshot->file);
	snapshot->done(snapshot, snapshot->error.reason ? &snapshot->error : NULL);
}

static int open_output(struct ks_snapshot *snapshot, struct ks_error *err)
{
	struct ks_core *core = snapshot->session->core;
	struct ks_blob *blob;

	if (!snapshot->path) {
		if (ks_blob_copy(core->blobs, snapshot->session, "", 0, MIME, &blob, err) < 0)
			return -1;
		(void)snprintf(snapshot->blob, sizeof(snapshot->blob), "%s", ks_blob_id(blob));
		return 0;
	}
	if (ks_host_file_create(core, snapshot->path, &snapshot->file, err) < 0)
		return -1;
	snapshot->task.job.fds[0] = KS_TAKE_FD(snapshot->file.fd);
	snapshot->task.job.fd_count = 1;
	return 0;
}

int ks_snapshot_start(struct ks_snapshot *snapshot, struct ks_error *err)
{
	const size_t room = ks_blobs_max(snapshot->session->core->blobs);

	snapshot->file = (struct ks_host_file){ .dir = -1, .fd = -1 };
	snapshot->task = (struct ks_task){ .job = { .kind = KS_JOB_SNAPSHOT, .record = on_record, .progress = on_packed },
					   .alone = true, .done = on_snapshot_done };
	if (open_output(snapshot, err) < 0)
		return -1;
	ks_pack_int(&snapshot->task.job.request, snapshot->links);
	ks_pack_int(&snapshot->task.job.request, snapshot->path ? INT64_MAX : (int64_t)room);
	if (ks_files_start(snapshot->session, &snapshot->task, err) == 0)
		return 0;
	ks_job_drop(&snapshot->task.job);
	ks_host_file_discard(&snapshot->file);
	drop_blob(snapshot);
	return -1;
}

void ks_snapshot_cancel(struct ks_snapshot *snapshot)
{
	ks_files_cancel(&snapshot->task);
}

void ks_snapshot_free(struct ks_snapshot *snapshot)
{
	ks_buf_free(&snapshot->skipped);
}

/* ---- restore ---- */

static void step(struct ks_restore *restore, enum ks_restore_stage stage);

static struct ks_restore *restore_of(struct ks_task *task)
{
	return KS_ENTRY(task, struct ks_restore, task);
}

static bool is_there(const struct ks_session *session)
{
	struct stat st;

	return fstatat(session->workspace_fd, KS_RESTORE_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static void end(struct ks_restore *restore)
{
	ks_close(&restore->fd);
	/* the caller's memory goes in `done`, and the gate may be what a close waits for */
	struct ks_exclusive exclusive = restore->exclusive;
	ks_list_remove(&restore->exclusive.node);
	ks_list_init(&exclusive.node);
	restore->done(restore, restore->error.reason ? &restore->error : NULL);
	ks_gate_leave(&exclusive);
}

static void on_extracting(struct ks_job *job, int64_t done, int64_t total)
{
	struct ks_restore *restore = restore_of(KS_ENTRY(job, struct ks_task, job));

	if (restore->progress)
		restore->progress(restore, 2 * done < total ? "verify" : "extract", done, total);
}

static void on_reopened(void *arg, const struct ks_error *err)
{
	struct ks_restore *restore = arg;

	struct ks_core *core = restore->session->core;

	if (err) {
		/* what was there is gone, and no call may run beside packages that it cannot see: the session ends */
		restore->error = *err;
		(void)ks_error_hint(&restore->error, "the workspace has been replaced, and the session is closed: open another one on it");
		if (core->session_closed)
			core->session_closed(core->session_closed_arg, restore->session->id, "template_failed");
		ks_session_close(restore->session, NULL, NULL);
	}
	step(restore, KS_RESTORE_SWEEPING);
}

/* Packages are mounted over themselves in the template: those of the archive need another one. */
static void reopen(struct ks_restore *restore)
{
	struct ks_error err;

	restore->stage = KS_RESTORE_REOPENING;
	if (restore->session->state != KS_SESSION_OPEN || !ks_deps_find(restore->session, &restore->notes))
		step(restore, KS_RESTORE_SWEEPING);
	else if (ks_session_reopen(restore->session, on_reopened, restore, &err) < 0)
		on_reopened(restore, &err);
}

static void on_restore_task(struct ks_task *task, struct ks_unpack *result, const struct ks_error *err)
{
	struct ks_restore *restore = restore_of(task);

	if (restore->stage == KS_RESTORE_SWEEPING) {
		if (err) /* the workspace is whole; what is left of the other one is in nobody's way */
			ks_log(KS_LOG_WARN, "restore_left", "%s/%s: %s", restore->session->workspace, KS_RESTORE_NAME, err->text);
		end(restore);
		return;
	}
	if (err)
		restore->error = *err;
	else if (restore->stage == KS_RESTORE_EXTRACTING) {
		restore->entries = ks_unpack_int(result);
		restore->bytes = ks_unpack_int(result);
		if (!ks_unpack_end(result))
			(void)ks_fail(&restore->error, KS_E_INTERNAL, "the worker's result is damaged");
	}
	if (restore->stage == KS_RESTORE_SWAPPING && !restore->error.reason)
		reopen(restore);
	else
		step(restore,
		     restore->stage == KS_RESTORE_EXTRACTING && !restore->error.reason ? KS_RESTORE_SWAPPING : KS_RESTORE_SWEEPING);
}

static void pack_extract(struct ks_restore *restore)
{
	struct ks_buf *request = &restore->task.job.request;
	const int64_t max_mb = restore->session->workspace_max_mb;
	const int64_t bytes = max_mb > 0 && max_mb < KS_ARCHIVE_BYTES >> 20 ? max_mb << 20 : KS_ARCHIVE_BYTES;
	const int64_t names = max_mb > 0 && max_mb < KS_ARCHIVE_ENTRIES / KS_DISK_FILES_PER_MB ? max_mb * KS_DISK_FILES_PER_MB :
												  KS_ARCHIVE_ENTRIES;

	ks_pack_int(request, restore->links);
	ks_pack_int(request, bytes);
	ks_pack_int(request, names);
	ks_pack_string(request, restore->path ? "/path" : "/blob");
	restore->task.job.fds[0] = KS_TAKE_FD(restore->fd);
	restore->task.job.fd_count = 1;
}

/* Extracting and sweeping have a worker of their own, which a cancel or a close kills; the swap has the session's, and ends. */
static void step(struct ks_restore *restore, enum ks_restore_stage stage)
{
	static const enum ks_job_kind kinds[] = { [KS_RESTORE_EXTRACTING] = KS_JOB_RESTORE, [KS_RESTORE_SWAPPING] = KS_JOB_SWAP,
						  [KS_RESTORE_SWEEPING] = KS_JOB_SWEEP };
	struct ks_error err;

	restore->stage = stage;
	if (stage == KS_RESTORE_SWEEPING && !is_there(restore->session)) {
		end(restore);
		return;
	}
	restore->task = (struct ks_task){ .job = { .kind = kinds[stage], .progress = on_extracting },
					  .alone = stage != KS_RESTORE_SWAPPING, .done = on_restore_task };
	if (stage == KS_RESTORE_EXTRACTING)
		pack_extract(restore);
	if (ks_files_start_exclusive(restore->session, &restore->task, &err) == 0)
		return;
	ks_job_drop(&restore->task.job);
	on_restore_task(&restore->task, NULL, &err);
}

static void stop(struct ks_restore *restore, const struct ks_error *err)
{
	restore->error = *err;
	end(restore);
}

/* A blob, or a text of the request, becomes a file in memory, a piece each turn of the loop. */
static void copy_piece(struct ks_chore *chore)
{
	struct ks_restore *restore = KS_ENTRY(chore, struct ks_restore, chore);
	struct ks_error err;
	const char *data;
	size_t len;
	int rc = ks_text_bytes(restore->text, restore->session->core->blobs, &data, &len, &err);

	if (rc == 0 && restore->copied < len) {
		size_t want = len - restore->copied < COPY_PIECE ? len - restore->copied : COPY_PIECE;
		ssize_t n = write(restore->fd, data + restore->copied, want);
		if (n > 0) {
			restore->copied += (size_t)n;
			return;
		}
		rc = ks_fail_errno(&err, KS_E_NO_SPACE, errno, "no memory for the archive");
	}
	ks_list_remove(&chore->node);
	if (rc < 0) {
		(void)ks_error_at(&err, "/blob");
		stop(restore, &err);
	} else {
		step(restore, KS_RESTORE_EXTRACTING);
	}
}

static void on_grant(struct ks_exclusive *exclusive)
{
	struct ks_restore *restore = KS_ENTRY(exclusive, struct ks_restore, exclusive);
	struct ks_error err;

	if (ks_kernels_closed(restore->session, &err) < 0) {
		stop(restore, &err);
		return;
	}
	if (restore->path) {
		step(restore, KS_RESTORE_EXTRACTING);
		return;
	}
	restore->fd = memfd_create("restore", MFD_CLOEXEC);
	if (restore->fd < 0) {
		(void)ks_fail_errno(&err, KS_E_INTERNAL, errno, "no memory for the archive");
		stop(restore, &err);
		return;
	}
	restore->stage = KS_RESTORE_COPYING;
	restore->chore = (struct ks_chore){ .step = copy_piece };
	ks_core_add_chore(restore->session->core, &restore->chore);
}

void ks_restore_cancel(struct ks_restore *restore)
{
	struct ks_error err;

	switch (restore->stage) {
	case KS_RESTORE_COPYING:
		ks_list_remove(&restore->chore.node);
		__attribute__((__fallthrough__));
	case KS_RESTORE_WAITING:
		(void)ks_fail(&err, KS_E_CANCELLED, "the request was cancelled");
		stop(restore, &err);
		return;
	case KS_RESTORE_EXTRACTING:
		ks_files_cancel(&restore->task);
		return;
	case KS_RESTORE_SWAPPING:
	case KS_RESTORE_REOPENING:
	case KS_RESTORE_SWEEPING:
		return;
	}
}

static void on_closing(struct ks_exclusive *exclusive)
{
	ks_restore_cancel(KS_ENTRY(exclusive, struct ks_restore, exclusive));
}

int ks_restore_start(struct ks_restore *restore, struct ks_error *err)
{
	restore->exclusive = (struct ks_exclusive){ .grant = on_grant, .closing = on_closing };
	restore->stage = KS_RESTORE_WAITING;
	restore->fd = -1;
	if (restore->path) {
		restore->fd = ks_host_file_open(restore->session->core, restore->path, err);
		if (restore->fd < 0)
			return -1;
	} else {
		const char *data;
		size_t len;
		if (ks_text_bytes(restore->text, restore->session->core->blobs, &data, &len, err) < 0)
			return ks_error_at(err, "/blob");
	}
	ks_gate_ask(restore->session, &restore->exclusive);
	return 0;
}

/* ---- a restore that was cut off ---- */

struct recovery {
	struct ks_task task;
	void (*done)(struct ks_session *session);
};

static void on_recovered(struct ks_task *task, struct ks_unpack *result, const struct ks_error *err)
{
	static const char *const what[] = { [KS_SWEEP_NOTHING] = NULL,
					    [KS_SWEEP_REMOVED] = "what a restore that was cut off had left was removed",
					    [KS_SWEEP_BACK] = "a restore that was cut off has been undone",
					    [KS_SWEEP_FORWARD] = "a restore that was cut off has been finished" };
	struct recovery *recovery = KS_ENTRY(task, struct recovery, task);
	struct ks_session *session = task->session;
	const int64_t found = result ? ks_unpack_int(result) : KS_SWEEP_NOTHING;

	if (err)
		ks_notes_add(&session->notes, "restore_unfinished", "%s in the workspace is left of a restore: %.150s", KS_RESTORE_NAME,
				    err->text);
	else if (found > 0 && found < (int64_t)KS_COUNT(what))
		ks_notes_add(&session->notes, "restore_recovered", "%s", what[found]);
	void (*done)(struct ks_session *) = recovery->done;
	free(recovery);
	done(session);
}

void ks_restore_recover(struct ks_session *session, void (*done)(struct ks_session *session))
{
	struct recovery *recovery;
	struct ks_error err;

	if (session->workspace_private || !is_there(session) || !(recovery = calloc(1, sizeof(*recovery)))) {
		done(session);
		return;
	}
	recovery->task = (struct ks_task){ .job = { .kind = KS_JOB_SWEEP }, .alone = true, .done = on_recovered };
	recovery->done = done;
	if (ks_files_start_exclusive(session, &recovery->task, &err) < 0) {
		recovery->task.session = session;
		on_recovered(&recovery->task, NULL, &err);
	}
}
