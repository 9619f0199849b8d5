/* methods_blob.c: blob/read, blob/write, blob/free. */
#include <string.h>

#include "proto/write.h"
#include "rpc/methods.h"
#include "session/text.h"

/* {,"nextOffset":,"eof":false} with a number of 20 digits, the key of the text and some air */
#define SLICE_OVERHEAD 80

static void blob_read(void *arg, struct ks_request *request, const void *params)
{
	struct ks_blobs *blobs = arg;
	const struct ks_blob_read_params *wanted = params;
	struct ks_buf json = { 0 };
	struct ks_blob *blob;
	struct ks_error err;

	if (ks_blob_find(blobs, wanted->id, &blob, &err) < 0) {
		ks_reply_error(request, &err);
		return;
	}
	size_t size = ks_blob_size(blob);
	if ((uint64_t)wanted->offset > size) {
		(void)ks_fail_at(&err, KS_E_OUT_OF_RANGE, "/offset", "offset %lld is behind the end of the blob (%zu bytes)",
				 (long long)wanted->offset, size);
		ks_reply_error(request, &err);
		return;
	}
	size_t offset = (size_t)wanted->offset, len = size - offset;
	if (wanted->length != KS_ABSENT && (uint64_t)wanted->length < len)
		len = (size_t)wanted->length;
	ks_write_open(&json, '{');
	size_t n = ks_text_write_slice(&json, len ? ks_blob_data(blob) + offset : "", len,
				       ks_request_room(request) - SLICE_OVERHEAD);
	ks_write_key_int(&json, "nextOffset", (int64_t)(offset + n));
	ks_write_key_bool(&json, "eof", offset + n == size);
	ks_write_close(&json, '}');
	ks_reply(request, &json);
}

/* A blob of the client belongs to the connection: it lives until it is freed or newer ones need the room. */
static int write_blob(struct ks_blobs *blobs, const struct ks_blob_write_params *wanted, struct ks_blob **ret,
		      struct ks_error *err)
{
	if (!wanted->id)
		return ks_blob_copy(blobs, NULL, wanted->text.data, wanted->text.len, "application/octet-stream", ret,
				    err);
	if (ks_blob_find(blobs, wanted->id, ret, err) < 0)
		return -1;
	return ks_blob_append(blobs, *ret, wanted->text.data, wanted->text.len, err);
}

static void blob_write(void *arg, struct ks_request *request, const void *params)
{
	struct ks_blob *blob = NULL;
	struct ks_buf json = { 0 };
	struct ks_error err;

	if (write_blob(arg, params, &blob, &err) < 0) {
		ks_reply_error(request, &err);
		return;
	}
	ks_write_open(&json, '{');
	ks_write_key_string(&json, "id", ks_blob_id(blob));
	ks_write_key_int(&json, "bytes", (int64_t)ks_blob_size(blob));
	ks_write_close(&json, '}');
	ks_reply(request, &json);
}

static void blob_free(void *arg, struct ks_request *request, const void *params)
{
	struct ks_blobs *blobs = arg;
	const struct ks_blob_free_params *wanted = params;
	struct ks_buf json = { 0 };
	struct ks_blob *blob;
	struct ks_error err;

	if (ks_blob_find(blobs, wanted->id, &blob, &err) < 0) {
		ks_reply_error(request, &err);
		return;
	}
	ks_blob_drop(blobs, blob);
	ks_buf_str(&json, "{}");
	ks_reply(request, &json);
}

void ks_methods_blob(struct ks_server *server, struct ks_blobs *blobs)
{
	ks_server_handle(server, "blob/read", blob_read, blobs);
	ks_server_handle(server, "blob/write", blob_write, blobs);
	ks_server_handle(server, "blob/free", blob_free, blobs);
}
