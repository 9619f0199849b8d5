/* methods_render.c: render: output that a client has got, as a text for a model. */
#include "proto/write.h"
#include "render/render.h"
#include "rpc/methods.h"
#include "session/text.h"

static int render(struct ks_blobs *blobs, struct ks_request *request, const struct ks_render_params *params, struct ks_buf *json,
		  struct ks_error *err)
{
	KS_AUTOBUF struct ks_buf text = { 0 };
	const char *data;
	size_t len;

	if (ks_text_bytes(&params->text, blobs, &data, &len, err) < 0)
		return ks_error_at(err, "/text");
	ks_render_text(&text, data, len, (size_t)params->max_chars, KS_KEEP_HEAD);
	if (text.failed)
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	struct ks_text_item item = { .data = text.data, .len = text.len };
	(void)ks_text_plan(&item, 1, ks_request_room(request) - sizeof("{\"rendered\":}"));
	ks_write_open(json, '{');
	ks_write_key(json, "rendered");
	if (ks_text_write(json, &item, blobs, NULL, err) < 0)
		return -1;
	ks_write_close(json, '}');
	return 0;
}

static void handle_render(void *arg, struct ks_request *request, const void *params)
{
	KS_AUTOBUF struct ks_buf json = { 0 };
	struct ks_error err;

	if (render(arg, request, params, &json, &err) < 0)
		ks_reply_error(request, &err);
	else
		ks_reply(request, &json);
}

void ks_methods_render(struct ks_server *server, struct ks_blobs *blobs)
{
	ks_server_handle(server, "render", handle_render, blobs);
}
