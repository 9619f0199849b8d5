/* methods_setup.c: session/setup: the glue between a request, its stream and a setup. */
#include "proto/write.h"
#include "rpc/app.h"
#include "session/outcome_json.h"
#include "session/setup.h"

#define CACHED_ROOM (sizeof(",\"cached\":false") - 1)

struct setup {
	struct ks_request *request;
	struct ks_setup *setup;
	struct ks_stream *stream;
};

static void free_setup(struct setup *setup)
{
	ks_stream_free(setup->stream);
	free(setup);
}

static void on_started(void *arg)
{
	struct setup *setup = arg;

	ks_stream_started(setup->stream, ks_request_id(setup->request), setup->setup->session->id, NULL, NULL);
}

static void on_output(void *arg, enum ks_output which, const void *data, size_t len)
{
	struct setup *setup = arg;

	ks_stream_feed(setup->stream, which, data, len);
}

static void on_credit(void *arg, uint64_t bytes)
{
	struct setup *setup = arg;

	ks_stream_credit(setup->stream, bytes);
}

static size_t on_room(void *arg)
{
	struct setup *setup = arg;

	return ks_stream_room(setup->stream);
}

static void on_flushed(void *arg)
{
	struct setup *setup = arg;
	struct ks_setup *work = setup->setup;
	struct ks_buf json = { 0 };
	struct ks_error err;

	if (ks_outcome_write(work->call, ks_request_room(setup->request) - CACHED_ROOM, &json, &err) == 0) {
		json.len--; /* an ExecutionResult, and: */
		ks_write_key_bool(&json, "cached", work->cached);
		ks_write_close(&json, '}');
		ks_reply_behind(setup->request, setup->stream, &json);
	} else {
		ks_reply_error(setup->request, &err);
	}
	ks_buf_free(&json);
	free_setup(setup);
	ks_setup_finish(work);
}

static void on_done(void *arg)
{
	struct setup *setup = arg;

	ks_stream_finish(setup->stream, on_flushed, setup);
}

static void on_failed(void *arg, const struct ks_error *err)
{
	struct setup *setup = arg;

	ks_reply_error(setup->request, err);
	free_setup(setup);
}

static const struct ks_call_ops setup_ops = { on_started, on_output, on_credit, on_room, NULL, on_done, on_failed };

static void on_stream_room(void *arg)
{
	struct setup *setup = arg;

	if (setup->setup && setup->setup->call)
		ks_call_resume(setup->setup->call);
}

static void on_cancel(void *arg)
{
	struct setup *setup = arg;

	ks_setup_cancel(setup->setup);
}

static int open_setup(struct ks_app *app, struct setup *setup, const struct ks_setup_params *params, struct ks_error *err)
{
	struct ks_session *session = ks_session_find(app->core, params->session_id, false, err);

	if (!session || ks_setup_new(session, params, &setup_ops, setup, &setup->setup, err) < 0)
		return -1;
	struct ks_stream_options options = { .mode = params->stream, .encoding = KS_ENCODING_UTF8, .run_id = setup->setup->id,
					     .room = on_stream_room, .arg = setup };
	setup->stream = ks_stream_new(ks_server_streams(app->server), &options, err);
	if (setup->stream)
		return 0;
	ks_setup_finish(setup->setup);
	return -1;
}

static void session_setup(void *arg, struct ks_request *request, const void *params)
{
	struct setup *setup = calloc(1, sizeof(*setup));
	struct ks_error err;

	if (!setup)
		abort();
	setup->request = request;
	ks_request_keep_params(request);
	if (open_setup(arg, setup, params, &err) < 0) {
		ks_reply_error(request, &err);
		free_setup(setup);
		return;
	}
	ks_request_on_cancel(request, on_cancel, setup); /* before the start, which may be the end already */
	ks_setup_start(setup->setup);
}

void ks_methods_setup(struct ks_app *app)
{
	ks_server_handle(app->server, "session/setup", session_setup, app);
}
