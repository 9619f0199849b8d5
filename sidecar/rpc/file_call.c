#include "rpc/file_call.h"

#include <stdio.h>
#include <string.h>

#include "proto/write.h"
#include "session/text.h"

static void free_call(struct ks_file_call *call)
{
	ks_job_drop(&call->task.job);
	ks_buf_free(&call->list);
	free(call->shown);
	free(call);
}

static void reply_error(struct ks_file_call *call, const struct ks_error *given)
{
	struct ks_error err = *given;

	if (call->path_bytes && strcmp(err.pointer, "/path") == 0)
		(void)ks_error_at(&err, "/pathBase64");
	if (call->to_bytes && strcmp(err.pointer, "/to") == 0)
		(void)ks_error_at(&err, "/toBase64");
	ks_reply_error(call->request, &err);
	free_call(call);
}

static void on_done(struct ks_task *task, struct ks_unpack *result, const struct ks_error *err)
{
	struct ks_file_call *call = KS_ENTRY(task, struct ks_file_call, task);
	struct ks_buf json = { 0 };
	struct ks_error damaged;

	if (!result) {
		reply_error(call, err);
		return;
	}
	ks_write_open(&json, '{');
	if (call->write)
		call->write(call, result, &json);
	ks_write_close(&json, '}');
	if (!call->error.reason && !ks_unpack_end(result)) {
		(void)ks_fail(&damaged, KS_E_INTERNAL, "the worker's result is damaged");
		call->error = damaged;
	}
	if (call->error.reason) {
		reply_error(call, &call->error);
	} else {
		ks_reply(call->request, &json);
		free_call(call);
	}
	ks_buf_free(&json);
}

struct ks_file_call *ks_file_call_new(struct ks_app *app, struct ks_request *request, const void *params, const char *session_id,
				      enum ks_job_kind kind,
				      void (*write)(struct ks_file_call *call, struct ks_unpack *result, struct ks_buf *json))
{
	struct ks_error err;
	struct ks_session *session = ks_session_find(app->core, session_id, false, &err);
	struct ks_file_call *call = session ? calloc(1, sizeof(*call)) : NULL;

	if (!call) {
		if (session)
			(void)ks_fail(&err, KS_E_INTERNAL, "out of memory");
		ks_reply_error(request, &err);
		return NULL;
	}
	*call = (struct ks_file_call){ .task = { .job.kind = kind, .done = on_done }, .app = app, .request = request,
				       .params = params, .session = session, .write = write };
	ks_request_keep_params(request);
	return call;
}

void ks_file_call_fail(struct ks_file_call *call, const struct ks_error *err)
{
	if (!call->error.reason)
		call->error = *err;
}

static char *show(const struct ks_session *session, const struct ks_place *place)
{
	const char *rest = strcmp(place->path, ".") == 0 ? "" : place->path;
	char *shown;

	if (place->root == 0)
		return strdup(rest);
	return asprintf(&shown, "%s/%s", session->mounts[place->root - 1].target, rest) < 0 ? NULL : shown;
}

void ks_file_call_place(struct ks_file_call *call, const char *path, const struct ks_text *bytes, const char *pointer, bool to_write)
{
	struct ks_place place = { 0 };
	struct ks_error err;

	call->path_bytes |= !path && strcmp(pointer, "/path") == 0;
	call->to_bytes |= !path && strcmp(pointer, "/to") == 0;
	if (ks_place_find(call->session, path, bytes, pointer, &place, &err) < 0) {
		ks_file_call_fail(call, &err);
		return;
	}
	if (to_write && !place.writable) {
		(void)ks_fail_at(&err, KS_E_READ_ONLY, pointer, "that is in a read-only mount");
		(void)ks_error_hint(&err, "mount it with mode rw if the session may change it");
		ks_file_call_fail(call, &err);
	}
	ks_pack_int(&call->task.job.request, place.root);
	ks_pack_string(&call->task.job.request, place.path);
	if (!call->shown)
		call->shown = show(call->session, &place);
	free(place.path);
}

void ks_file_call_write_path(const struct ks_file_call *call, struct ks_buf *json, const char *below, size_t len)
{
	KS_AUTOBUF struct ks_buf path = { 0 };

	ks_buf_str(&path, call->shown);
	if (path.len > 0 && path.data[path.len - 1] != '/')
		ks_buf_char(&path, '/');
	ks_buf_add(&path, below, len);
	json->failed |= path.failed;
	ks_write_path(json, path.data, path.len);
}

/* Room for the key, brackets and commas of the members that a list has beside it. */
#define LIST_OVERHEAD 64

void ks_file_call_write_list(struct ks_file_call *call, struct ks_buf *json, const char *key, size_t others)
{
	struct ks_text_item item = { .owned = true, .json = true };
	struct ks_error err;

	ks_buf_add(&call->list, "[", 1);
	if (call->list.len > 1) { /* the bracket belongs in front */
		memmove(call->list.data + 1, call->list.data, call->list.len - 1);
		call->list.data[0] = '[';
	}
	ks_write_close(&call->list, ']');
	json->failed |= call->list.failed;
	item.data = call->list.data;
	item.len = call->list.len;
	call->list = (struct ks_buf){ 0 };
	(void)ks_text_plan(&item, 1, ks_request_room(call->request) - LIST_OVERHEAD - others);
	ks_write_key(json, key);
	if (ks_text_write(json, &item, call->app->core->blobs, call->session, &err) < 0)
		ks_file_call_fail(call, &err);
}

struct ks_buf *ks_file_call_pack(struct ks_file_call *call)
{
	return &call->task.job.request;
}

static void on_cancel(void *arg)
{
	struct ks_file_call *call = arg;

	ks_files_cancel(&call->task);
}

void ks_file_call_start(struct ks_file_call *call)
{
	struct ks_error err;

	if (call->error.reason) {
		reply_error(call, &call->error);
		return;
	}
	/* before the start, which may be the end already: nobody can have cancelled a request whose handler is running */
	ks_request_on_cancel(call->request, on_cancel, call);
	if (ks_files_start(call->session, &call->task, &err) < 0)
		reply_error(call, &err);
}
