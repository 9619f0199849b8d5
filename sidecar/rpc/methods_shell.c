/* methods_shell.c: the shell methods, but for shell/run, which is a run (methods_run.c). Opening, closing and what shells tell by
 * themselves is as of kernels (methods_kernel.c). */
#include "rpc/app.h"
#include "rpc/reply.h"
#include "session/kernel.h"
#include "session/outcome_json.h"

static void shell_open(void *arg, struct ks_request *request, const void *params)
{
	const struct ks_shell_open_params *p = params;
	const struct ks_kernel_spec spec = { .id = p->shell_id, .cwd = p->cwd, .env = &p->env, .timeout_ms = KS_ABSENT,
					     .memory_mb = KS_ABSENT, .is_shell = true, .pty = p->mode == KS_SHELL_PTY,
					     .argv = &p->argv, .rows = p->rows, .cols = p->cols };

	ks_app_open_kernel(arg, request, p->session_id, &spec);
}

static void answer(struct ks_request *request, int rc, const struct ks_error *err)
{
	if (rc < 0)
		ks_reply_error(request, err);
	else
		ks_reply_empty(request);
}

static void shell_write(void *arg, struct ks_request *request, const void *params)
{
	const struct ks_shell_write_params *p = params;
	const struct ks_app *app = arg;
	struct ks_error err;
	struct ks_kernel *shell = ks_shell_find(app->core, p->shell_id, &err);

	answer(request, shell ? ks_shell_write(shell, p->text.data, p->text.len, &err) : -1, &err);
}

static void shell_resize(void *arg, struct ks_request *request, const void *params)
{
	const struct ks_shell_resize_params *p = params;
	const struct ks_app *app = arg;
	struct ks_error err;
	struct ks_kernel *shell = ks_shell_find(app->core, p->shell_id, &err);

	answer(request, shell ? ks_shell_resize(shell, p->rows, p->cols, &err) : -1, &err);
}

static void shell_signal(void *arg, struct ks_request *request, const void *params)
{
	const struct ks_shell_signal_params *p = params;
	const struct ks_app *app = arg;
	struct ks_error err;
	struct ks_kernel *shell = ks_shell_find(app->core, p->shell_id, &err);
	const int number = ks_signal_number(p->signal);

	if (shell && number == 0) {
		(void)ks_fail_at(&err, KS_E_INVALID_VALUE, "/signal", "there is no signal %s; use a name without SIG, such as TERM",
				 p->signal);
		shell = NULL;
	}
	answer(request, shell ? ks_shell_signal(shell, number, &err) : -1, &err);
}

static void shell_close(void *arg, struct ks_request *request, const void *params)
{
	const struct ks_shell_handle_params *p = params;
	const struct ks_app *app = arg;
	struct ks_error err;
	struct ks_kernel *shell = ks_shell_find(app->core, p->shell_id, &err);

	ks_app_close_kernel(request, shell, &err);
}

void ks_methods_shell(struct ks_app *app)
{
	ks_server_handle(app->server, "shell/open", shell_open, app);
	ks_server_handle(app->server, "shell/write", shell_write, app);
	ks_server_handle(app->server, "shell/resize", shell_resize, app);
	ks_server_handle(app->server, "shell/signal", shell_signal, app);
	ks_server_handle(app->server, "shell/close", shell_close, app);
}
