/* local.h: the sidecar's core without a connection: for the commands that make boxes or sessions by themselves. */
#pragma once

#include "session/core.h"

struct ks_local {
	uv_loop_t loop;
	uv_timer_t timer;
	struct ks_engine *engine; /* NULL: no boxes here, engine_error says why */
	struct ks_error engine_error;
	struct ks_core *core;
};

/* `arguments`: the program's argv and environment block, which the launcher wipes in its copy. `plugin_dirs` ends with NULL. Fine to
 * close after a failure, too. */
int ks_local_open(struct ks_local *local, char *arguments, size_t arguments_len, const char *const *plugin_dirs,
		  const char *worker_program, struct ks_error *err);
/* Until ks_local_stop(), or the launcher's death. */
void ks_local_run(struct ks_local *local);
void ks_local_stop(struct ks_local *local);
void ks_local_close(struct ks_local *local);
