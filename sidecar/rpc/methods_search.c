/* methods_search.c: file/glob and file/search: each a worker of its own, which a cancel kills. */
#include <string.h>

#include "proto/tables.h"
#include "proto/write.h"
#include "rpc/file_call.h"
#include "session/text.h"

#define LIST_BYTES ((size_t)64 << 20) /* of JSON; what a worker has more is left out, and said */
#define CONTEXT_LINES 100
#define REST_ROOM 160 /* for the members beside the list */

/* The path of a record: what is found, from where the request looks. The result has it as the request would name it. */
static void write_path(struct ks_file_call *call, const char *found, size_t len)
{
	const struct ks_where_params *p = call->params;
	const char *base = p->path ? p->path : p->path_bytes.present ? p->path_bytes.data : "";
	size_t base_len = p->path_bytes.present ? p->path_bytes.len : strlen(base);
	KS_AUTOBUF struct ks_buf path = { 0 };

	while (base_len >= 2 && memcmp(base, "./", 2) == 0) {
		base += 2;
		base_len -= 2;
	}
	if (base_len == 1 && base[0] == '.')
		base_len = 0;
	ks_buf_add(&path, base, base_len);
	if (base_len > 0 && len > 0 && base[base_len - 1] != '/')
		ks_buf_char(&path, '/');
	ks_buf_add(&path, found, len);
	if (path.failed)
		call->list.failed = true;
	else
		ks_write_path(&call->list, path.data ? path.data : "", path.len);
}

/* As glob.c packs it: path, type. */
static void take_name(struct ks_job *job, struct ks_unpack *record)
{
	struct ks_file_call *call = KS_ENTRY(job, struct ks_file_call, task.job);
	size_t len;
	const char *path = ks_unpack_bytes(record, &len);
	const int64_t type = ks_unpack_int(record);

	if (type < 0 || type >= KS_FILE_TYPES)
		record->bad = true;
	if (record->bad || call->list.len > LIST_BYTES)
		return;
	ks_write_open(&call->list, '{');
	write_path(call, path, len);
	ks_write_key_string(&call->list, "type", ks_file_type_words[type]);
	ks_write_close(&call->list, '}');
}

static void take_lines(struct ks_file_call *call, struct ks_unpack *record, const char *key)
{
	const int64_t count = ks_unpack_int(record);
	size_t len;

	if (count < 0 || count > CONTEXT_LINES)
		record->bad = true;
	ks_write_key(&call->list, key);
	ks_write_open(&call->list, '[');
	for (int64_t i = 0; i < count && !record->bad; i++) {
		const char *line = ks_unpack_bytes(record, &len);
		ks_write_utf8_lossy(&call->list, line, len);
	}
	ks_write_close(&call->list, ']');
}

/* As grep.h has it: path, line, column, cut, text, lines before, lines after. */
static void take_match(struct ks_job *job, struct ks_unpack *record)
{
	struct ks_file_call *call = KS_ENTRY(job, struct ks_file_call, task.job);
	struct ks_buf *list = &call->list;
	size_t len;

	if (list->len > LIST_BYTES) {
		*record = (struct ks_unpack){ .at = record->at };
		return;
	}
	const char *path = ks_unpack_bytes(record, &len);
	ks_write_open(list, '{');
	write_path(call, path, len);
	ks_write_key_int(list, "line", ks_unpack_int(record));
	ks_write_key_int(list, "column", ks_unpack_int(record));
	if (ks_unpack_int(record))
		ks_write_key_bool(list, "cut", true);
	const char *text = ks_unpack_bytes(record, &len);
	ks_write_key(list, "text");
	ks_write_text(list, KS_ENCODING_UTF8, text, len);
	take_lines(call, record, "before");
	take_lines(call, record, "after");
	ks_write_close(list, '}');
}

static void write_list(struct ks_file_call *call, const char *key, struct ks_buf *json)
{
	const size_t room = ks_request_room(call->request);
	struct ks_error err;

	ks_write_close(&call->list, ']');
	if (call->list.failed) {
		(void)ks_fail(&err, KS_E_INTERNAL, "out of memory");
		ks_file_call_fail(call, &err);
		return;
	}
	struct ks_text_item item = { .data = call->list.data, .len = call->list.len, .owned = true, .json = true };
	call->list = (struct ks_buf){ 0 };
	(void)ks_text_plan(&item, 1, room > REST_ROOM ? room - REST_ROOM : 0);
	ks_write_key(json, key);
	if (ks_text_write(json, &item, call->app->core->blobs, call->session, &err) < 0)
		ks_file_call_fail(call, &err);
}

static void write_unreadable(struct ks_unpack *result, struct ks_buf *json)
{
	const int64_t unreadable = ks_unpack_int(result);

	if (unreadable > 0)
		ks_write_key_int(json, "unreadable", unreadable);
}

static void write_glob(struct ks_file_call *call, struct ks_unpack *result, struct ks_buf *json)
{
	const bool left_out = call->list.len > LIST_BYTES;

	write_list(call, "entries", json);
	ks_write_key_bool(json, "truncated", ks_unpack_int(result) != 0 || left_out);
	write_unreadable(result, json);
}

static void write_search(struct ks_file_call *call, struct ks_unpack *result, struct ks_buf *json)
{
	const bool left_out = call->list.len > LIST_BYTES;

	write_list(call, "matches", json);
	ks_write_key_bool(json, "truncated", ks_unpack_int(result) != 0 || left_out);
	ks_write_key_int(json, "binarySkipped", ks_unpack_int(result));
	write_unreadable(result, json);
}

/* `p` is what both params begin with. */
static struct ks_file_call *new_call(void *arg, struct ks_request *request, const struct ks_where_params *p, enum ks_job_kind kind,
				     void (*record)(struct ks_job *job, struct ks_unpack *record),
				     void (*write)(struct ks_file_call *call, struct ks_unpack *result, struct ks_buf *json))
{
	struct ks_file_call *call = ks_file_call_new(arg, request, p, p->session_id, kind, write);

	if (!call)
		return NULL;
	call->task.alone = true;
	call->task.job.record = record;
	ks_write_open(&call->list, '[');
	ks_file_call_place(call, p->path || p->path_bytes.present ? p->path : ".", &p->path_bytes, "/path", false);
	return call;
}

static void file_glob(void *arg, struct ks_request *request, const void *params)
{
	const struct ks_glob_params *p = params;
	struct ks_file_call *call = new_call(arg, request, params, KS_JOB_GLOB, take_name, write_glob);

	if (!call)
		return;
	struct ks_buf *job = ks_file_call_pack(call);
	ks_pack_string(job, p->pattern);
	ks_pack_int(job, (int64_t)p->ignore.count);
	for (size_t i = 0; i < p->ignore.count; i++)
		ks_pack_string(job, p->ignore.items[i]);
	ks_pack_int(job, p->hidden);
	ks_pack_int(job, p->gitignore);
	ks_pack_int(job, p->limit);
	ks_file_call_start(call);
}

static void file_search(void *arg, struct ks_request *request, const void *params)
{
	const struct ks_search_params *p = params;
	struct ks_file_call *call = new_call(arg, request, params, KS_JOB_SEARCH, take_match, write_search);

	if (!call)
		return;
	struct ks_buf *job = ks_file_call_pack(call);
	ks_pack_string(job, p->pattern);
	ks_pack_int(job, p->regex);
	ks_pack_int(job, p->ignore_case);
	ks_pack_string(job, p->glob);
	ks_pack_int(job, p->before);
	ks_pack_int(job, p->after);
	ks_pack_int(job, p->hidden);
	ks_pack_int(job, p->gitignore);
	ks_pack_int(job, p->limit);
	ks_file_call_start(call);
}

void ks_methods_search(struct ks_app *app)
{
	ks_server_handle(app->server, "file/glob", file_glob, app);
	ks_server_handle(app->server, "file/search", file_search, app);
}
