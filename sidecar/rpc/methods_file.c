/* methods_file.c: the file methods: from params to jobs of a worker, and from their results to replies. What a job's request and result
 * hold is said in worker/jobs/. */
#include <string.h>

#include "proto/tables.h"
#include "proto/write.h"
#include "rpc/file_call.h"
#include "session/text.h"

#define NEW_FILE_MODE 0644

/* Of a reply beside its content: keys, integers, an etag, the longest media type, an encoding. */
#define READ_OVERHEAD 512
/* Of a page beside its entries: a cursor. */
#define LIST_OVERHEAD (64 + 4 * (KS_PATH_BYTES + 1 + 2) / 3)
#define LIST_BYTES_MAX ((size_t)64 << 20) /* of JSON: 4 MiB of paths as \u00XX, and what is around them */

/* ---- read ---- */

static void write_content(struct ks_file_call *call, const char *data, size_t len, const char *mime, struct ks_buf *json)
{
	const struct ks_file_read_params *p = call->params;
	struct ks_text_item item = { .data = (char *)(uintptr_t)data, .len = len, .encoding = p->encoding, .mime = mime };
	KS_AUTOBUF struct ks_buf text = { 0 };
	struct ks_error err;

	(void)ks_text_plan(&item, 1, ks_request_room(call->request) - READ_OVERHEAD);
	if (ks_text_write(&text, &item, call->app->core->blobs, call->session, &err) < 0) {
		ks_file_call_fail(call, &err);
		return;
	}
	if (text.failed) {
		json->failed = true;
	} else if (text.data[0] == '"') {
		ks_write_key(json, "text");
		ks_write_raw(json, text.data, text.len);
	} else { /* {"base64":"…"} and {"blob":{…}} are here members of the result */
		ks_write_raw(json, text.data + 1, text.len - 2);
	}
}

static void write_read(struct ks_file_call *call, struct ks_unpack *result, struct ks_buf *json)
{
	static const char *const charsets[] = { "utf-8", "utf-16le", "utf-16be", "binary" }; /* by enum ks_charset */
	const struct ks_file_read_params *p = call->params;
	size_t len;
	const char *data = ks_unpack_bytes(result, &len);
	const int64_t size = ks_unpack_int(result), eof = ks_unpack_int(result);
	const char *etag = ks_unpack_bytes(result, NULL), *mime = ks_unpack_bytes(result, NULL);
	const int64_t charset = ks_unpack_int(result), first = ks_unpack_int(result), last = ks_unpack_int(result),
		      total = ks_unpack_int(result);

	if (charset < 0 || charset >= (int64_t)KS_COUNT(charsets) || strlen(mime) > 128)
		result->bad = true;
	if (result->bad)
		return;
	write_content(call, data, len, mime[0] ? mime : NULL, json);
	ks_write_key_int(json, "size", size);
	ks_write_key_bool(json, "eof", eof != 0);
	ks_write_key_string(json, "etag", etag);
	ks_write_key_string(json, "mime", mime[0] ? mime : NULL);
	ks_write_key_string(json, "encoding", charsets[charset]);
	ks_write_key_int(json, "startLine", p->has_lines ? first : KS_ABSENT);
	ks_write_key_int(json, "endLine", p->has_lines ? last : KS_ABSENT);
	ks_write_key_int(json, "totalLines", total >= 0 ? total : KS_ABSENT);
}

static int64_t or_none(int64_t value)
{
	return value == KS_ABSENT ? -1 : value;
}

static void file_read(void *arg, struct ks_request *request, const void *params)
{
	const struct ks_file_read_params *p = params;
	struct ks_file_call *call = ks_file_call_new(arg, request, p, p->session_id, KS_JOB_READ, write_read);

	if (!call)
		return;
	struct ks_buf *job = ks_file_call_pack(call);
	ks_file_call_place(call, p->path, &p->path_bytes, "/path", false);
	ks_pack_int(job, p->follow_links);
	ks_pack_int(job, or_none(p->offset));
	ks_pack_int(job, or_none(p->length));
	ks_pack_int(job, p->has_lines ? p->lines.start : -1);
	ks_pack_int(job, p->has_lines ? p->lines.count : -1);
	ks_file_call_start(call);
}

/* ---- write ---- */

static void write_written(struct ks_file_call *call, struct ks_unpack *result, struct ks_buf *json)
{
	(void)call;
	ks_write_key_int(json, "size", ks_unpack_int(result));
	ks_write_key_string(json, "etag", ks_unpack_bytes(result, NULL));
	ks_write_key_bool(json, "created", ks_unpack_int(result) != 0);
}

static void pack_content(struct ks_file_call *call, const struct ks_text *content)
{
	const char *data;
	struct ks_error err;
	size_t len;

	if (ks_text_bytes(content, call->app->core->blobs, &data, &len, &err) < 0) {
		(void)ks_error_at(&err, "/content/blob/id");
		ks_file_call_fail(call, &err);
	} else if (len > KS_CONTENT_MAX) {
		(void)ks_fail_at(&err, KS_E_TOO_LARGE, "/content", "%zu bytes are more than %zu", len, KS_CONTENT_MAX);
		(void)ks_error_hint(&err, "write the first part, then the others with ifExists: append");
		ks_file_call_fail(call, &err);
	} else {
		ks_pack_bytes(ks_file_call_pack(call), data, len);
	}
}

static void file_write(void *arg, struct ks_request *request, const void *params)
{
	const struct ks_file_write_params *p = params;
	struct ks_file_call *call = ks_file_call_new(arg, request, p, p->session_id, KS_JOB_WRITE, write_written);

	if (!call)
		return;
	struct ks_buf *job = ks_file_call_pack(call);
	ks_file_call_place(call, p->path, &p->path_bytes, "/path", true);
	ks_pack_int(job, p->follow_links);
	ks_pack_int(job, p->if_exists);
	ks_pack_string(job, p->if_match);
	ks_pack_int(job, p->mkdirs);
	ks_pack_int(job, p->mode == KS_ABSENT ? NEW_FILE_MODE : p->mode);
	pack_content(call, &p->content);
	ks_file_call_start(call);
}

/* ---- stat ---- */

static void write_type(struct ks_unpack *result, struct ks_buf *json)
{
	const int64_t type = ks_unpack_int(result);

	if (type < 0 || type >= KS_FILE_TYPES)
		result->bad = true;
	else
		ks_write_key_string(json, "type", ks_file_type_words[type]);
}

static void write_stat(struct ks_file_call *call, struct ks_unpack *result, struct ks_buf *json)
{
	(void)call;
	write_type(result, json);
	ks_write_key_int(json, "size", ks_unpack_int(result));
	ks_write_key_int(json, "mtimeMs", ks_unpack_int(result));
	ks_write_key_int(json, "mode", ks_unpack_int(result));
	const char *etag = ks_unpack_bytes(result, NULL), *mime = ks_unpack_bytes(result, NULL);
	ks_write_key_string(json, "etag", etag[0] ? etag : NULL);
	ks_write_key_string(json, "mime", mime[0] ? mime : NULL);
}

static void file_stat(void *arg, struct ks_request *request, const void *params)
{
	const struct ks_path_params *p = params;
	struct ks_file_call *call = ks_file_call_new(arg, request, p, p->session_id, KS_JOB_STAT, write_stat);

	if (!call)
		return;
	ks_file_call_place(call, p->path, &p->path_bytes, "/path", false);
	ks_pack_int(ks_file_call_pack(call), p->follow_links);
	ks_file_call_start(call);
}

/* ---- list ---- */

static void add_entry(struct ks_job *job, struct ks_unpack *record)
{
	struct ks_file_call *call = KS_ENTRY(job, struct ks_file_call, task.job);
	struct ks_error err;
	size_t len;
	const char *path = ks_unpack_bytes(record, &len);

	if (call->list.len > LIST_BYTES_MAX) {
		(void)ks_fail(&err, KS_E_INTERNAL, "the worker's page is too large");
		ks_file_call_fail(call, &err);
		ks_buf_free(&call->list);
	}
	if (call->list.len > 0)
		ks_buf_char(&call->list, ',');
	ks_buf_char(&call->list, '{');
	ks_file_call_write_path(call, &call->list, path, len);
	write_type(record, &call->list);
	ks_write_key_int(&call->list, "size", ks_unpack_int(record));
	ks_write_key_int(&call->list, "mtimeMs", ks_unpack_int(record));
	ks_write_close(&call->list, '}');
}

static void write_list(struct ks_file_call *call, struct ks_unpack *result, struct ks_buf *json)
{
	const int64_t kind = ks_unpack_int(result);
	size_t len;
	const char *cursor = ks_unpack_bytes(result, &len);
	const int64_t skipped = ks_unpack_int(result);

	if (len > KS_PATH_BYTES || (kind != 0 && kind != 'd' && kind != 'r'))
		result->bad = true;
	if (result->bad)
		return;
	ks_file_call_write_list(call, json, "entries", LIST_OVERHEAD);
	if (kind) {
		char packed[KS_PATH_BYTES + 1];
		packed[0] = (char)kind;
		memcpy(packed + 1, cursor, len);
		ks_write_key(json, "nextCursor");
		ks_write_base64(json, packed, len + 1);
	}
	ks_write_key_int(json, "skipped", skipped > 0 ? skipped : KS_ABSENT);
}

/* A whole tree may take long: a worker of its own can be killed. */
static void file_list(void *arg, struct ks_request *request, const void *params)
{
	const struct ks_file_list_params *p = params;
	struct ks_file_call *call = ks_file_call_new(arg, request, p, p->session_id, KS_JOB_LIST, write_list);

	if (!call)
		return;
	struct ks_buf *job = ks_file_call_pack(call);
	call->task.alone = p->recursive;
	call->task.job.record = add_entry;
	ks_file_call_place(call, p->path || p->path_bytes.present ? p->path : ".", &p->path_bytes, "/path", false);
	ks_pack_int(job, p->follow_links);
	ks_pack_int(job, p->recursive);
	ks_pack_int(job, p->limit);
	ks_pack_bytes(job, p->cursor.data, p->cursor.present ? p->cursor.len : 0);
	const size_t shown = call->shown ? strlen(call->shown) : 0;
	ks_pack_int(job, (int64_t)shown + (shown > 0 && call->shown[shown - 1] != '/'));
	ks_file_call_start(call);
}

/* ---- mkdir, move, remove ---- */

static void file_mkdir(void *arg, struct ks_request *request, const void *params)
{
	const struct ks_file_mkdir_params *p = params;
	struct ks_file_call *call = ks_file_call_new(arg, request, p, p->session_id, KS_JOB_MKDIR, NULL);

	if (!call)
		return;
	ks_file_call_place(call, p->path, &p->path_bytes, "/path", true);
	ks_pack_int(ks_file_call_pack(call), p->follow_links);
	ks_pack_int(ks_file_call_pack(call), p->parents);
	ks_file_call_start(call);
}

static void file_move(void *arg, struct ks_request *request, const void *params)
{
	const struct ks_file_move_params *p = params;
	struct ks_file_call *call = ks_file_call_new(arg, request, p, p->session_id, KS_JOB_MOVE, NULL);

	if (!call)
		return;
	ks_file_call_place(call, p->path, &p->path_bytes, "/path", true);
	ks_pack_int(ks_file_call_pack(call), p->follow_links);
	ks_file_call_place(call, p->to, &p->to_bytes, "/to", true);
	ks_pack_int(ks_file_call_pack(call), p->follow_links);
	ks_pack_int(ks_file_call_pack(call), p->replace);
	ks_file_call_start(call);
}

static void file_remove(void *arg, struct ks_request *request, const void *params)
{
	const struct ks_file_remove_params *p = params;
	struct ks_file_call *call = ks_file_call_new(arg, request, p, p->session_id, KS_JOB_REMOVE, NULL);

	if (!call)
		return;
	ks_file_call_place(call, p->path, &p->path_bytes, "/path", true);
	ks_pack_int(ks_file_call_pack(call), p->follow_links);
	ks_pack_int(ks_file_call_pack(call), p->recursive);
	ks_file_call_start(call);
}

/* ---- edit ---- */

static void write_edited(struct ks_file_call *call, struct ks_unpack *result, struct ks_buf *json)
{
	const struct ks_file_edit_params *p = call->params;

	ks_write_key(json, "replacements");
	ks_write_open(json, '[');
	for (size_t i = 0; i < p->edits.count; i++)
		ks_write_int(json, ks_unpack_int(result));
	ks_write_close(json, ']');
	ks_write_key_string(json, "etag", ks_unpack_bytes(result, NULL));
}

static void file_edit(void *arg, struct ks_request *request, const void *params)
{
	const struct ks_file_edit_params *p = params;
	struct ks_file_call *call = ks_file_call_new(arg, request, p, p->session_id, KS_JOB_EDIT, write_edited);

	if (!call)
		return;
	struct ks_buf *job = ks_file_call_pack(call);
	ks_file_call_place(call, p->path, &p->path_bytes, "/path", true);
	ks_pack_int(job, p->follow_links);
	ks_pack_string(job, p->if_match);
	ks_pack_int(job, (int64_t)p->edits.count);
	for (size_t i = 0; i < p->edits.count; i++) {
		const struct ks_file_edit *edit = &p->edits.items[i];
		ks_pack_string(job, edit->old_text);
		ks_pack_string(job, edit->new_text);
		ks_pack_int(job, edit->all);
	}
	ks_file_call_start(call);
}

void ks_methods_file(struct ks_app *app)
{
	static const struct {
		const char *method;
		void (*handler)(void *arg, struct ks_request *request, const void *params);
	} handlers[] = {
		{ "file/read", file_read },   { "file/write", file_write }, { "file/stat", file_stat },	    { "file/list", file_list },
		{ "file/mkdir", file_mkdir }, { "file/move", file_move },   { "file/remove", file_remove }, { "file/edit", file_edit },
	};

	for (size_t i = 0; i < KS_COUNT(handlers); i++)
		ks_server_handle(app->server, handlers[i].method, handlers[i].handler, app);
}
