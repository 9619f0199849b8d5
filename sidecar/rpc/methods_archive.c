/* methods_archive.c: session/snapshot and session/restore: from params to session/archive.h, and from its results to replies. */
#include "proto/write.h"
#include "rpc/app.h"
#include "session/archive.h"
#include "session/text.h"

static struct ks_session *find_session(struct ks_app *app, struct ks_request *request, const char *id)
{
	struct ks_error err;
	struct ks_session *session = ks_session_find(app->core, id, false, &err);

	if (!session)
		ks_reply_error(request, &err);
	return session;
}

/* ---- snapshot ---- */

struct snapshot_call {
	struct ks_snapshot snapshot;
	struct ks_app *app;
	struct ks_request *request;
};

static void write_blob(struct ks_buf *json, const struct ks_snapshot *snapshot)
{
	ks_write_key(json, "blob");
	ks_write_open(json, '{');
	ks_write_key(json, "blob");
	ks_write_open(json, '{');
	ks_write_key_string(json, "id", snapshot->blob);
	ks_write_key_int(json, "bytes", snapshot->bytes);
	ks_write_key_string(json, "sha256", snapshot->sha256);
	ks_write_key_string(json, "mime", "application/gzip");
	ks_write_close(json, '}');
	ks_write_close(json, '}');
}

/* The list is what may not fit a line: it then becomes a blob. */
static int write_skipped(struct snapshot_call *call, struct ks_buf *json, struct ks_error *err)
{
	KS_AUTOBUF struct ks_buf list = { 0 };
	const size_t room = ks_request_room(call->request), used = json->len + 64;

	ks_write_open(&list, '[');
	ks_buf_add(&list, call->snapshot.skipped.data, call->snapshot.skipped.len);
	ks_write_close(&list, ']');
	struct ks_text_item item = { .data = list.data, .len = list.len, .json = true };
	(void)ks_text_plan(&item, 1, room > used ? room - used : 0);
	ks_write_key(json, "skipped");
	return ks_text_write(json, &item, call->app->core->blobs, call->snapshot.session, err);
}

static void on_snapshot(struct ks_snapshot *snapshot, const struct ks_error *err)
{
	struct snapshot_call *call = KS_ENTRY(snapshot, struct snapshot_call, snapshot);
	struct ks_buf json = { 0 };
	struct ks_error why;
	int rc = err ? -1 : 0;

	if (rc == 0) {
		ks_write_open(&json, '{');
		ks_write_key_int(&json, "bytes", snapshot->bytes);
		ks_write_key_int(&json, "entries", snapshot->entries);
		ks_write_key_string(&json, "sha256", snapshot->sha256);
		if (snapshot->not_listed > 0)
			ks_write_key_int(&json, "skippedMore", snapshot->not_listed);
		if (snapshot->blob[0])
			write_blob(&json, snapshot);
		rc = write_skipped(call, &json, &why);
		err = &why;
	}
	if (rc == 0) {
		ks_write_close(&json, '}');
		ks_reply(call->request, &json);
	} else {
		ks_reply_error(call->request, err);
	}
	ks_buf_free(&json);
	ks_snapshot_free(snapshot);
	free(call);
}

static void on_snapshot_progress(struct ks_snapshot *snapshot, const char *phase, int64_t done, int64_t total)
{
	ks_request_progress(KS_ENTRY(snapshot, struct snapshot_call, snapshot)->request, phase, done, total);
}

static void cancel_snapshot(void *arg)
{
	struct snapshot_call *call = arg;

	ks_snapshot_cancel(&call->snapshot);
}

static void session_snapshot(void *arg, struct ks_request *request, const void *params)
{
	const struct ks_snapshot_params *p = params;
	struct ks_session *session = find_session(arg, request, p->session_id);
	struct snapshot_call *call = session ? calloc(1, sizeof(*call)) : NULL;
	struct ks_error err;

	if (!session)
		return;
	if (!call)
		abort();
	*call = (struct snapshot_call){ .app = arg, .request = request,
					.snapshot = { .session = session, .path = p->path, .links = (enum ks_links)p->links,
						      .progress = on_snapshot_progress, .done = on_snapshot } };
	ks_request_keep_params(request);
	ks_request_on_cancel(request, cancel_snapshot, call);
	if (ks_snapshot_start(&call->snapshot, &err) < 0)
		on_snapshot(&call->snapshot, &err);
}

/* ---- restore ---- */

struct restore_call {
	struct ks_restore restore;
	struct ks_request *request;
};

static void on_restore(struct ks_restore *restore, const struct ks_error *err)
{
	struct restore_call *call = KS_ENTRY(restore, struct restore_call, restore);
	struct ks_buf json = { 0 };

	if (err) {
		ks_reply_error(call->request, err);
	} else {
		ks_write_open(&json, '{');
		ks_write_key_int(&json, "entries", restore->entries);
		ks_write_key_int(&json, "bytes", restore->bytes);
		ks_write_key(&json, "notes");
		ks_notes_write(&restore->notes, &json);
		ks_write_close(&json, '}');
		ks_reply(call->request, &json);
	}
	ks_buf_free(&json);
	free(call);
}

static void on_restore_progress(struct ks_restore *restore, const char *phase, int64_t done, int64_t total)
{
	ks_request_progress(KS_ENTRY(restore, struct restore_call, restore)->request, phase, done, total);
}

static void cancel_restore(void *arg)
{
	struct restore_call *call = arg;

	ks_restore_cancel(&call->restore);
}

static void session_restore(void *arg, struct ks_request *request, const void *params)
{
	const struct ks_restore_params *p = params;
	struct ks_session *session = find_session(arg, request, p->session_id);
	struct restore_call *call = session ? calloc(1, sizeof(*call)) : NULL;
	struct ks_error err;

	if (!session)
		return;
	if (!call)
		abort();
	*call = (struct restore_call){ .request = request,
				       .restore = { .session = session, .path = p->path, .text = &p->blob,
						    .links = (enum ks_links)p->links, .progress = on_restore_progress,
						    .done = on_restore } };
	ks_request_keep_params(request);
	ks_request_on_cancel(request, cancel_restore, call);
	if (ks_restore_start(&call->restore, &err) < 0)
		on_restore(&call->restore, &err);
}

void ks_methods_archive(struct ks_app *app)
{
	ks_server_handle(app->server, "session/snapshot", session_snapshot, app);
	ks_server_handle(app->server, "session/restore", session_restore, app);
}
