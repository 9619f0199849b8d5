/* app.h: what the handlers of methods share: one connection, one core. */
#pragma once

#include "rpc/server.h"
#include "session/core.h"

struct ks_app {
	struct ks_server *server;
	struct ks_core *core;
	int64_t started_us;
	bool shutting_down;
	struct ks_request *shutdown; /* waits until the boxes are gone */
	bool draining;
	struct ks_flow *late; /* what kernels and shells print outside of cells; see methods_kernel.c */
};

struct ks_kernel_spec;
struct ks_buf;

/* methods_kernel.c, for methods_shell.c: opens a kernel or a shell, and answers. */
void ks_app_open_kernel(struct ks_app *app, struct ks_request *request, const char *session_id, const struct ks_kernel_spec *spec);
void ks_app_close_kernel(struct ks_request *request, struct ks_kernel *kernel, const struct ks_error *err); /* NULL: err says why */


void ks_methods_run(struct ks_app *app);
void ks_methods_session(struct ks_app *app);
void ks_methods_kernel(struct ks_app *app);
void ks_methods_shell(struct ks_app *app);
void ks_methods_setup(struct ks_app *app);
void ks_methods_file(struct ks_app *app);
void ks_methods_archive(struct ks_app *app);
void ks_methods_search(struct ks_app *app);
void ks_methods_info(struct ks_app *app);
