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
};

void ks_methods_run(struct ks_app *app);
void ks_methods_session(struct ks_app *app);
void ks_methods_kernel(struct ks_app *app);
void ks_methods_setup(struct ks_app *app);
void ks_methods_file(struct ks_app *app);
void ks_methods_archive(struct ks_app *app);
void ks_methods_search(struct ks_app *app);
void ks_methods_info(struct ks_app *app);
