#include "cli/local.h"

#define CLOSE_WAIT_MS 2000 /* then what is left is killed with the launcher */

static void stop(void *arg)
{
	struct ks_local *local = arg;

	uv_stop(&local->loop);
}

static void on_timer(uv_timer_t *timer)
{
	stop(timer->data);
}

void ks_local_stop(struct ks_local *local)
{
	stop(local);
}

int ks_local_open(struct ks_local *local, char *arguments, size_t arguments_len, const char *const *plugin_dirs,
		  const char *worker_program, struct ks_error *err)
{
	struct ks_engine_config engine = { .arguments = arguments, .arguments_len = arguments_len };
	struct ks_core_config core = { .loop = &local->loop,
				       .engine_error = &local->engine_error,
				       .plugin_dirs = plugin_dirs,
				       .worker_program = worker_program,
				       .one_call = true };

#if KS_TEST_HOOKS
	engine.fail_step = getenv("KERN_TEST_FAIL_STEP");
#endif
	(void)ks_engine_start(&engine, &local->engine, &local->engine_error); /* with one thread, before anything else */
	if (uv_loop_init(&local->loop) < 0)
		abort(); /* no memory, at the start of a program */
	(void)uv_timer_init(&local->loop, &local->timer);
	local->timer.data = local;
	core.engine = local->engine;
	if (local->engine && ks_engine_attach(local->engine, &local->loop, stop, local, err) < 0)
		return -1;
	return ks_core_open(&core, &local->core, err);
}

void ks_local_run(struct ks_local *local)
{
	(void)uv_run(&local->loop, UV_RUN_DEFAULT);
}

void ks_local_close(struct ks_local *local)
{
	if (local->core) {
		(void)uv_timer_start(&local->timer, on_timer, CLOSE_WAIT_MS, 0);
		ks_core_close(local->core, stop, local);
		ks_local_run(local);
	}
	if (local->engine)
		ks_engine_stop(local->engine);
	uv_close((uv_handle_t *)&local->timer, NULL);
	if (local->core)
		ks_core_free(local->core);
	for (int i = 0; i < 16 && uv_run(&local->loop, UV_RUN_NOWAIT); i++)
		;
	free(local->core);
	if (local->engine)
		ks_engine_free(local->engine);
	(void)uv_loop_close(&local->loop);
}
