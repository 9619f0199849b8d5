/* progress.c: $/progress of a request. */
#include <json-c/json_object.h>
#include <string.h>

#include "base/clock.h"
#include "proto/write.h"
#include "server_private.h"

#define INTERVAL_US 120000 /* eight in a second, and the last: never more than ten */

void ks_progress_begin(struct ks_request *request, const struct ks_envelope *envelope)
{
	struct json_object *token;
	char text[KS_ID_TEXT];

	if (envelope->params && json_object_object_get_ex(envelope->params, "progressToken", &token) &&
	    ks_id_text(token, text, sizeof(text)) == 0)
		request->progress.token = strdup(text); /* without memory there is none */
}

static void tell(struct ks_request *request)
{
	struct ks_buf json = { 0 };

	ks_write_open(&json, '{');
	ks_write_key(&json, "token");
	ks_write_raw(&json, request->progress.token, strlen(request->progress.token));
	ks_write_key_string(&json, "phase", request->progress.phase);
	ks_write_key_int(&json, "done", request->progress.done);
	if (request->progress.total >= 0)
		ks_write_key_int(&json, "total", request->progress.total);
	ks_write_close(&json, '}');
	request->progress.phase = NULL;
	ks_notify(request->server, KS_LANE_CONTROL, KS_LINE_NOTE, "$/progress", &json);
}

void ks_request_progress(struct ks_request *request, const char *phase, int64_t done, int64_t total)
{
	const int64_t now = ks_now_us();

	if (!request->progress.token)
		return;
	if (done > request->progress.done) /* it never falls */
		request->progress.done = done;
	request->progress.phase = phase;
	request->progress.total = total;
	if (now - request->progress.told_us < INTERVAL_US)
		return;
	request->progress.told_us = now;
	tell(request);
}

void ks_progress_end(struct ks_request *request)
{
	if (request->progress.phase)
		tell(request);
}
