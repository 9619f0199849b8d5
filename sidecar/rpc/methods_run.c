/* methods_run.c: run/code, run/argv and what goes with a run while it lives: the glue between a request, its stream and its call. */
#include <string.h>

#include "base/log.h"
#include "proto/write.h"
#include "rpc/app.h"
#include "rpc/reply.h"
#include "session/kernel.h"
#include "session/outcome_json.h"
#include "session/text.h"

struct run {
	struct ks_app *app;
	struct ks_request *request;
	struct ks_call *call;
	struct ks_stream *stream;
	char *code, *stdin_data; /* copies of blobs: those may be freed while the call waits */
	struct ks_run_params cell; /* of kernel/run: what it has in common with run/code; its strings are the request's */
};

static void free_run(struct run *run)
{
	ks_stream_free(run->stream);
	free(run->code);
	free(run->stdin_data);
	free(run);
}

/* ---- what the call says ---- */

static void on_started(void *arg)
{
	struct run *run = arg;

	const struct ks_call *call = run->call;

	const struct ks_kernel *kernel = call->kernel;
	ks_stream_started(run->stream, ks_request_id(run->request), call->throwaway ? NULL : call->session->id,
			  kernel && !kernel->is_shell ? kernel->id : NULL, kernel && kernel->is_shell ? kernel->id : NULL);
}

static void on_output(void *arg, enum ks_output which, const void *data, size_t len)
{
	struct run *run = arg;

	ks_stream_feed(run->stream, which, data, len);
}

static void on_event(void *arg, enum ks_result_op op, const struct ks_result *result, bool wait, uint64_t seq)
{
	struct run *run = arg;
	struct ks_buf members = { 0 };
	struct ks_error err;
	size_t line = ks_server_max_line(run->app->server);

	(void)seq;
	if (ks_outcome_write_display(run->call, op, result, wait, line > 512 ? line - 512 : 0, &members, &err) == 0)
		ks_stream_display(run->stream, &members);
	ks_buf_free(&members);
}

static size_t on_room(void *arg)
{
	struct run *run = arg;

	return ks_stream_room(run->stream);
}

static void on_flushed(void *arg)
{
	struct run *run = arg;
	struct ks_buf json = { 0 };
	struct ks_error err;
	struct ks_call *call = run->call;

	if (ks_outcome_write(call, ks_request_room(run->request), &json, &err) == 0) {
		ks_reply_behind(run->request, run->stream, &json);
	} else {
		/* the code ran: an error reply would say that it did not */
		ks_log(KS_LOG_ERROR, "result_lost", "run %s: %s", call->id, err.text);
		ks_reply_error(run->request, &err);
	}
	ks_buf_free(&json);
	if (call->cell) /* the client reads while we tidy up and make ready for the next */
		ks_server_write(run->app->server);
	free_run(run);
	ks_call_finish(call);
}

static void on_done(void *arg)
{
	struct run *run = arg;

	ks_stream_finish(run->stream, on_flushed, run);
}

static void on_failed(void *arg, const struct ks_error *err)
{
	struct run *run = arg;

	ks_reply_error(run->request, err);
	free_run(run);
}

static void on_credit(void *arg, uint64_t bytes)
{
	struct run *run = arg;

	ks_stream_credit(run->stream, bytes);
}

static void on_input_wanted(void *arg, const char *prompt, size_t len, bool password)
{
	struct run *run = arg;

	ks_stream_input_wanted(run->stream, prompt, len, password);
}

static const struct ks_call_ops call_ops = { on_started, on_output, on_credit, on_room, on_input_wanted, on_done, on_failed };

static void on_stream_room(void *arg)
{
	struct run *run = arg;

	if (run->call)
		ks_call_resume(run->call);
}

static void on_cancel(void *arg)
{
	struct run *run = arg;

	ks_call_cancel(run->call);
}

/* ---- run/code, run/argv ---- */

/* `*ret_copy` is set when the bytes are a blob's. */
static int take_text(struct ks_app *app, const struct ks_text *text, const char *pointer, const char **ret_data, size_t *ret_len,
		     char **ret_copy, struct ks_error *err)
{
	if (!text->present) {
		*ret_data = "";
		*ret_len = 0;
		return 0;
	}
	if (ks_text_bytes(text, app->core->blobs, ret_data, ret_len, err) < 0)
		return ks_error_at(err, pointer);
	if (!text->blob)
		return 0;
	*ret_copy = malloc(*ret_len + 1);
	if (!*ret_copy)
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	memcpy(*ret_copy, *ret_data, *ret_len);
	(*ret_copy)[*ret_len] = '\0';
	*ret_data = *ret_copy;
	return 0;
}

static int open_stream(struct run *run, const struct ks_run_params *params, struct ks_error *err);

static int open_cell(struct run *run, const struct ks_kernel_run_params *params, struct ks_error *err)
{
	struct ks_app *app = run->app;
	const char *code;
	size_t code_len;
	struct ks_kernel *kernel = ks_kernel_find(app->core, params->kernel_id, err);

	if (!kernel || take_text(app, &params->code, "/code", &code, &code_len, &run->code, err) < 0)
		return -1;
	if (code_len > KERN_CODE_MAX)
		return ks_fail_at(err, KS_E_TOO_LARGE, "/code", "the code has %zu bytes, at most %zu can run", code_len, KERN_CODE_MAX);
	run->cell = (struct ks_run_params)KS_RUN_PARAMS_ABSENT;
	run->cell.run_id = params->run_id;
	run->cell.filename = params->filename;
	run->cell.timeout_ms = params->timeout_ms;
	run->cell.stream = params->stream;
	run->cell.encoding = params->encoding;
	run->cell.has_render = params->has_render;
	run->cell.render_max_chars = params->render_max_chars;
	run->cell.interactive = params->allow_input;
	if (ks_call_new_cell(kernel, &run->cell, code, code_len, &call_ops, run, &run->call, err) < 0)
		return -1;
	return open_stream(run, &run->cell, err);
}

static int open_command(struct run *run, const struct ks_shell_run_params *params, struct ks_error *err)
{
	struct ks_app *app = run->app;
	const char *command, *stdin_data;
	size_t command_len, stdin_len;
	struct ks_kernel *shell = ks_shell_find(app->core, params->shell_id, err);

	if (!shell || take_text(app, &params->command, "/command", &command, &command_len, &run->code, err) < 0 ||
	    take_text(app, &params->stdin_text, "/stdin", &stdin_data, &stdin_len, &run->stdin_data, err) < 0)
		return -1;
	if (command_len > KERN_CODE_MAX)
		return ks_fail_at(err, KS_E_TOO_LARGE, "/command", "the command has %zu bytes, at most %zu can run", command_len,
				  KERN_CODE_MAX);
	if (shell->pty)
		return ks_fail_at(err, KS_E_INVALID_VALUE, "/shellId", "shell %s has a terminal; use shell/write", shell->id);
	run->cell = (struct ks_run_params)KS_RUN_PARAMS_ABSENT;
	run->cell.run_id = params->run_id;
	run->cell.timeout_ms = params->timeout_ms;
	run->cell.stream = params->stream;
	run->cell.merge = params->merge;
	run->cell.stdin_text = params->stdin_text;
	if (ks_call_new_cell(shell, &run->cell, command, command_len, &call_ops, run, &run->call, err) < 0)
		return -1;
	run->call->stdin_data = stdin_data;
	run->call->stdin_len = stdin_len;
	return open_stream(run, &run->cell, err);
}

static int open_run(struct run *run, const struct ks_run_params *params, bool is_argv, struct ks_error *err)
{
	struct ks_app *app = run->app;
	struct ks_session *session = NULL;
	const char *code, *stdin_data;
	size_t code_len, stdin_len;

	if (params->session_id) {
		session = ks_session_find(app->core, params->session_id, true, err);
		if (!session)
			return -1;
	}
	if (take_text(app, &params->code, "/code", &code, &code_len, &run->code, err) < 0 ||
	    take_text(app, &params->stdin_text, "/stdin", &stdin_data, &stdin_len, &run->stdin_data, err) < 0)
		return -1;
	if (code_len > KERN_CODE_MAX) /* a blob may be larger than a line */
		return ks_fail_at(err, KS_E_TOO_LARGE, "/code", "the code has %zu bytes, at most %zu can run", code_len, KERN_CODE_MAX);
	if (ks_call_new(app->core, session, params, is_argv, code, code_len, stdin_data, stdin_len, &call_ops, run, &run->call, err) < 0)
		return -1;
	return open_stream(run, params, err);
}

static int open_stream(struct run *run, const struct ks_run_params *params, struct ks_error *err)
{
	struct ks_stream_options options = { .mode = params->stream, .encoding = params->encoding, .run_id = run->call->id,
					     .room = on_stream_room, .arg = run };
	run->stream = ks_stream_new(ks_server_streams(run->app->server), &options, err);
	if (!run->stream) {
		ks_call_drop(run->call);
		return -1;
	}
	if (params->stream != KS_STREAM_OFF) {
		run->call->results.event = on_event;
		run->call->results.event_arg = run;
	}
	return 0;
}

enum kind { RUN_CODE, RUN_ARGV, RUN_CELL, RUN_COMMAND };

static void handle_run(struct ks_app *app, struct ks_request *request, const void *params, enum kind kind)
{
	struct run *run = calloc(1, sizeof(*run));
	struct ks_error err;

	if (!run) {
		(void)ks_fail(&err, KS_E_INTERNAL, "out of memory");
		ks_reply_error(request, &err);
		return;
	}
	*run = (struct run){ .app = app, .request = request };
	ks_request_keep_params(request);
	int rc = kind == RUN_CELL ? open_cell(run, params, &err) : kind == RUN_COMMAND ? open_command(run, params, &err) :
										   open_run(run, params, kind == RUN_ARGV, &err);
	if (rc < 0) {
		ks_reply_error(request, &err);
		free_run(run);
		return;
	}
	struct ks_core *core = app->core;
	ks_request_on_cancel(request, on_cancel, run); /* may be at once: then nothing of the run is left */
	ks_calls_start_queued(core);
}

static void run_code(void *arg, struct ks_request *request, const void *params)
{
	handle_run(arg, request, params, RUN_CODE);
}

static void run_argv(void *arg, struct ks_request *request, const void *params)
{
	handle_run(arg, request, params, RUN_ARGV);
}

static void kernel_run(void *arg, struct ks_request *request, const void *params)
{
	handle_run(arg, request, params, RUN_CELL);
}

static void shell_run(void *arg, struct ks_request *request, const void *params)
{
	handle_run(arg, request, params, RUN_COMMAND);
}

/* ---- a run that lives ---- */

static void reply_failure(struct ks_request *request, const struct ks_error *err)
{
	if (request)
		ks_reply_error(request, err);
}

static void run_stdin(void *arg, struct ks_request *request, const void *params)
{
	const struct ks_run_stdin_params *p = params;
	struct ks_app *app = arg;
	struct ks_error err;
	struct ks_call *call = ks_call_find(app->core, p->run_id, false, &err);

	if (!call || ks_call_stdin(call, p->text.data, p->text.len, p->eof, &err) < 0)
		reply_failure(request, &err);
	else
		ks_reply_empty(request);
}

static void run_signal(void *arg, struct ks_request *request, const void *params)
{
	const struct ks_run_signal_params *p = params;
	struct ks_app *app = arg;
	struct ks_error err;
	struct ks_call *call = ks_call_find(app->core, p->run_id, false, &err);
	int number = ks_signal_number(p->signal);

	if (call && number == 0) {
		(void)ks_fail_at(&err, KS_E_INVALID_VALUE, "/signal", "there is no signal %s; use a name without SIG, such as TERM",
				 p->signal);
		call = NULL;
	}
	if (!call || ks_call_signal(call, number, &err) < 0)
		reply_failure(request, &err);
	else
		ks_reply_empty(request);
}

static void run_credit(void *arg, struct ks_request *request, const void *params)
{
	const struct ks_run_credit_params *p = params;
	struct ks_app *app = arg;
	struct ks_error err;
	struct ks_call *call = ks_call_find(app->core, p->run_id, false, &err);

	if (!call) {
		reply_failure(request, &err);
		return;
	}
	ks_reply_empty(request);
	if (call->ops->credit)
		call->ops->credit(call->arg, (uint64_t)p->bytes);
}

static void output_read(void *arg, struct ks_request *request, const void *params)
{
	const struct ks_output_read_params *p = params;
	struct ks_app *app = arg;
	struct ks_error err;
	struct ks_buf json = { 0 };
	struct ks_call *call = ks_call_find(app->core, p->run_id, true, &err);

	if (!call || ks_output_write(call, (enum ks_output)p->stream, p->offset, p->max_bytes, ks_request_room(request), &json, &err) < 0)
		ks_reply_error(request, &err);
	else
		ks_reply(request, &json);
	ks_buf_free(&json);
}

void ks_methods_run(struct ks_app *app)
{
	ks_server_handle(app->server, "run/code", run_code, app);
	ks_server_handle(app->server, "run/argv", run_argv, app);
	ks_server_handle(app->server, "kernel/run", kernel_run, app);
	ks_server_handle(app->server, "shell/run", shell_run, app);
	ks_server_handle(app->server, "run/stdin", run_stdin, app);
	ks_server_handle(app->server, "run/signal", run_signal, app);
	ks_server_handle(app->server, "run/credit", run_credit, app);
	ks_server_handle(app->server, "output/read", output_read, app);
}
