/* methods_file.c: the file methods: from params to jobs of a worker, and from their results to replies. */
#include "proto/tables.h"
#include "proto/write.h"
#include "rpc/file_call.h"

/* As KS_JOB_STAT packs it: type, size, mtime in ms, mode, etag ("" when it has none), mime (""). */
static void write_stat(struct ks_file_call *call, struct ks_unpack *result, struct ks_buf *json)
{
	const int64_t type = ks_unpack_int(result);

	(void)call;
	if (type < 0 || type >= KS_FILE_TYPES)
		result->bad = true;
	else
		ks_write_key_string(json, "type", ks_file_type_words[type]);
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

void ks_methods_file(struct ks_app *app)
{
	ks_server_handle(app->server, "file/stat", file_stat, app);
}
