#include "rpc/reply.h"

#include "proto/write.h"
#include "session/text.h"

void ks_reply_empty(struct ks_request *request)
{
	struct ks_buf json = { 0 };

	if (!request)
		return;
	ks_buf_str(&json, "{}");
	ks_reply(request, &json);
	ks_buf_free(&json);
}

void ks_reply_list(struct ks_app *app, struct ks_request *request, const char *head, const char *key, struct ks_buf *list)
{
	struct ks_text_item item = { .data = list->data, .len = list->len, .json = true };
	struct ks_buf json = { 0 };
	struct ks_error err;
	size_t room = ks_request_room(request);

	(void)ks_text_plan(&item, 1, room > 64 ? room - 64 : 0);
	ks_buf_str(&json, head);
	ks_write_key(&json, key);
	if (ks_text_write(&json, &item, app->core->blobs, NULL, &err) < 0) {
		ks_reply_error(request, &err);
	} else {
		ks_write_close(&json, '}');
		ks_reply(request, &json);
	}
	ks_buf_free(&json);
}
