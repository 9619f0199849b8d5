/* methods_kernel.c: the kernel methods, but for kernel/run, which is a run (methods_run.c); what shells share with them. */
#include <string.h>

#include "proto/write.h"
#include "rpc/app.h"
#include "rpc/reply.h"
#include "session/kernel.h"
#include "session/outcome_json.h"
#include "session/text.h"

struct opening {
	struct ks_request *request;
	struct ks_kernel *kernel;
	bool restart;
};

/* ---- open, restart ---- */

static void on_opened(void *arg, struct ks_kernel *kernel, const struct ks_error *err)
{
	struct opening *opening = arg;
	struct ks_buf json = { 0 };

	if (!kernel) {
		ks_reply_error(opening->request, err);
	} else {
		ks_write_open(&json, '{');
		if (kernel->is_shell) {
			ks_write_key_string(&json, "shellId", kernel->id);
		} else if (!opening->restart) {
			const char *interpreter = ks_session_interpreter(kernel->session, kernel->language);
			ks_write_key_string(&json, "kernelId", kernel->id);
			ks_write_key_string(&json, "language", kernel->language->api.name);
			ks_write_key_string(&json, "interpreter", interpreter ? interpreter : "");
		}
		ks_write_close(&json, '}');
		ks_reply(opening->request, &json);
	}
	ks_buf_free(&json);
	free(opening);
}

/* Its opening ends with `cancelled`. */
static void on_cancel(void *arg)
{
	struct opening *opening = arg;

	if (opening->kernel)
		ks_kernel_close(opening->kernel, NULL, NULL);
}

static struct opening *new_opening(struct ks_request *request, bool restart)
{
	struct opening *opening = calloc(1, sizeof(*opening));

	if (!opening)
		abort();
	*opening = (struct opening){ .request = request, .restart = restart };
	return opening;
}

static void fail_opening(struct opening *opening, const struct ks_error *err)
{
	ks_reply_error(opening->request, err);
	free(opening);
}

void ks_app_open_kernel(struct ks_app *app, struct ks_request *request, const char *session_id, const struct ks_kernel_spec *spec)
{
	struct ks_error err;
	struct opening *opening = new_opening(request, false);
	struct ks_session *session = ks_session_find(app->core, session_id, false, &err);

	if (!session || ks_kernel_open(session, spec, on_opened, opening, &opening->kernel, &err) < 0)
		fail_opening(opening, &err);
	else
		ks_request_on_cancel(request, on_cancel, opening);
}

static void kernel_open(void *arg, struct ks_request *request, const void *params)
{
	const struct ks_kernel_open_params *p = params;
	const struct ks_kernel_spec spec = { .id = p->kernel_id, .cwd = p->cwd, .env = &p->env, .timeout_ms = p->timeout_ms,
					     .memory_mb = p->memory_mb, .language = p->language };

	ks_app_open_kernel(arg, request, p->session_id, &spec);
}

static void kernel_restart(void *arg, struct ks_request *request, const void *params)
{
	const struct ks_kernel_handle_params *p = params;
	struct ks_app *app = arg;
	struct ks_error err;
	struct opening *opening = new_opening(request, true);
	struct ks_kernel *kernel = ks_kernel_find(app->core, p->kernel_id, &err);

	if (!kernel || ks_kernel_restart(kernel, on_opened, opening, &err) < 0)
		fail_opening(opening, &err);
}

/* ---- close, interrupt, list ---- */

static void on_closed(void *arg)
{
	ks_reply_empty(arg);
}

void ks_app_close_kernel(struct ks_request *request, struct ks_kernel *kernel, const struct ks_error *err)
{
	struct ks_error closing;

	if (kernel && kernel->closed) {
		(void)ks_fail_at(&closing, KS_E_UNKNOWN_HANDLE, kernel->is_shell ? "/shellId" : "/kernelId", "%s is closing", kernel->id);
		kernel = NULL;
		err = &closing;
	}
	if (kernel)
		ks_kernel_close(kernel, on_closed, request);
	else
		ks_reply_error(request, err);
}

static void kernel_close(void *arg, struct ks_request *request, const void *params)
{
	const struct ks_kernel_handle_params *p = params;
	struct ks_app *app = arg;
	struct ks_error err;
	struct ks_kernel *kernel = ks_kernel_find(app->core, p->kernel_id, &err);

	ks_app_close_kernel(request, kernel, &err);
}

static void kernel_interrupt(void *arg, struct ks_request *request, const void *params)
{
	const struct ks_kernel_interrupt_params *p = params;
	struct ks_app *app = arg;
	struct ks_error err;
	struct ks_buf json = { 0 };
	struct ks_kernel *kernel = ks_kernel_find(app->core, p->kernel_id, &err);

	if (!kernel) {
		ks_reply_error(request, &err);
		return;
	}
	ks_write_open(&json, '{');
	ks_write_key_bool(&json, "running", ks_kernel_interrupt(kernel, p->run_id));
	ks_write_close(&json, '}');
	ks_reply(request, &json);
	ks_buf_free(&json);
}

static void kernel_list(void *arg, struct ks_request *request, const void *params)
{
	struct ks_app *app = arg;
	KS_AUTOBUF struct ks_buf list = { 0 };

	(void)params;
	ks_write_open(&list, '[');
	for (struct ks_list *n = app->core->kernels.next; n != &app->core->kernels; n = n->next) {
		const struct ks_kernel *kernel = KS_ENTRY(n, struct ks_kernel, node);
		if (kernel->is_shell)
			continue;
		ks_write_open(&list, '{');
		ks_write_key_string(&list, "kernelId", kernel->id);
		ks_write_key_string(&list, "sessionId", kernel->session->id);
		ks_write_key_string(&list, "language", kernel->language->api.name);
		ks_write_key_string(&list, "state", ks_kernel_state_name(kernel->state));
		ks_write_close(&list, '}');
	}
	ks_write_close(&list, ']');
	ks_reply_list(app, request, "{", "kernels", &list);
}

/* ---- what kernels and shells tell by themselves ---- */

#define LATE_MAX ((size_t)1 << 20) /* unsent lines of what no cell has printed; then the boxes wait */

static void on_drained(void *arg)
{
	struct ks_app *app = arg;

	if (app->late->bytes < LATE_MAX / 2)
		ks_kernels_resume(app->core);
}

static size_t on_late_room(void *arg)
{
	const struct ks_app *app = arg;

	return app->late->bytes < LATE_MAX ? 16384 : 0;
}

/* Behind what it has printed. */
static void tell_exited(struct ks_app *app, const struct ks_kernel *shell)
{
	struct ks_buf json = { 0 };
	char room[8];

	ks_write_open(&json, '{');
	ks_write_key_string(&json, "shellId", shell->id);
	ks_write_key_int(&json, "exitCode", shell->death.exit_code);
	if (shell->death.signal)
		ks_write_key_string(&json, "signal", ks_signal_name(shell->death.signal, room));
	ks_write_close(&json, '}');
	ks_notify_in_flow(app->server, app->late, "shell/exited", &json);
}

static void on_state(void *arg, const struct ks_kernel *kernel)
{
	struct ks_app *app = arg;
	struct ks_buf json = { 0 };

	if (kernel->is_shell && kernel->state == KS_KERNEL_DEAD)
		tell_exited(app, kernel);
	if (kernel->is_shell || kernel->state == KS_KERNEL_STARTING)
		return;
	ks_write_open(&json, '{');
	ks_write_key_string(&json, "kernelId", kernel->id);
	ks_write_key_string(&json, "state", ks_kernel_state_name(kernel->state));
	if (kernel->state == KS_KERNEL_DEAD)
		ks_outcome_write_fault(&kernel->death, &json);
	ks_write_close(&json, '}');
	ks_notify(app->server, KS_LANE_EVENT, KS_LINE_PATIENT, "kernel/state", &json);
}

static void on_output(void *arg, const struct ks_kernel *kernel, enum ks_output which, const char *data, size_t len)
{
	struct ks_app *app = arg;

	while (len > 0) {
		struct ks_buf json = { 0 };
		ks_write_open(&json, '{');
		ks_write_key_string(&json, kernel->is_shell ? "shellId" : "kernelId", kernel->id);
		ks_write_key_string(&json, "stream", which == KS_STDERR ? "stderr" : "stdout");
		size_t done = ks_text_write_slice(&json, data, len, 2048);
		ks_write_close(&json, '}');
		ks_notify_in_flow(app->server, app->late, kernel->is_shell ? "shell/output" : "kernel/output", &json);
		data += done;
		len -= done;
	}
}

void ks_methods_kernel(struct ks_app *app)
{
	app->late = ks_flow_new();
	if (!app->late)
		abort(); /* no memory, at the start of a program */
	app->late->drained = on_drained;
	app->late->arg = app;
	app->core->kernel_state = on_state;
	app->core->kernel_room = on_late_room;
	app->core->kernel_output = on_output;
	app->core->kernel_arg = app;
	ks_server_handle(app->server, "kernel/open", kernel_open, app);
	ks_server_handle(app->server, "kernel/restart", kernel_restart, app);
	ks_server_handle(app->server, "kernel/close", kernel_close, app);
	ks_server_handle(app->server, "kernel/interrupt", kernel_interrupt, app);
	ks_server_handle(app->server, "kernel/list", kernel_list, app);
}
