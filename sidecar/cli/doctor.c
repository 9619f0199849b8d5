#include "cli/doctor.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#include "proto/scan.h"
#include "session/doctor.h"

#define CLOSE_WAIT_MS 2000 /* then what is left of the probe is killed with the launcher */

struct visit {
	uv_loop_t loop;
	uv_timer_t timer;
	struct ks_engine *engine;
	struct ks_core *core;
	struct ks_error engine_error;
	struct ks_buf checks;
	bool done, ok;
};

static void on_checked(void *arg, bool ok, const struct ks_buf *checks)
{
	struct visit *visit = arg;

	visit->ok = ok;
	visit->done = true;
	ks_buf_add(&visit->checks, checks->data, checks->len);
	uv_stop(&visit->loop);
}

static void stop_loop(void *arg)
{
	struct visit *visit = arg;

	uv_stop(&visit->loop);
}

static void on_timer(uv_timer_t *timer)
{
	stop_loop(timer->data);
}

/* A host where no box can be made still gets a report: that is what it is for. */
static int start(struct visit *visit, char *arguments, size_t arguments_len, const char *const *plugin_dirs,
		 struct ks_error *err)
{
	struct ks_engine_config engine = { .arguments = arguments, .arguments_len = arguments_len };
	struct ks_core_config core = { .loop = &visit->loop,
				       .engine_error = &visit->engine_error,
				       .plugin_dirs = plugin_dirs };

#if KS_TEST_HOOKS
	engine.fail_step = getenv("KERN_TEST_FAIL_STEP");
#endif
	(void)ks_engine_start(&engine, &visit->engine,
			      &visit->engine_error); /* with one thread, before anything else */
	if (uv_loop_init(&visit->loop) < 0)
		return ks_fail(err, KS_E_INTERNAL, "cannot make an event loop");
	(void)uv_timer_init(&visit->loop, &visit->timer);
	visit->timer.data = visit;
	core.engine = visit->engine;
	if (visit->engine && ks_engine_attach(visit->engine, &visit->loop, stop_loop, visit, err) < 0)
		return -1;
	return ks_core_open(&core, &visit->core, err);
}

static void close_core(struct visit *visit)
{
	(void)uv_timer_start(&visit->timer, on_timer, CLOSE_WAIT_MS, 0);
	ks_core_close(visit->core, stop_loop, visit);
	(void)uv_run(&visit->loop, UV_RUN_DEFAULT);
}

static void close_all(struct visit *visit)
{
	if (visit->engine)
		ks_engine_stop(visit->engine);
	uv_close((uv_handle_t *)&visit->timer, NULL);
	if (visit->core)
		ks_core_free(visit->core);
	for (int i = 0; i < 16 && uv_run(&visit->loop, UV_RUN_NOWAIT); i++)
		;
	free(visit->core);
	if (visit->engine)
		ks_engine_free(visit->engine);
	(void)uv_loop_close(&visit->loop);
}

/* ---- printing ---- */

/* Some of it comes from files of the host: nothing that a terminal obeys (C0, DEL, and C1 as UTF-8). */
static void print_text(const char *text)
{
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		bool c1 = c[0] == 0xc2 && c[1] >= 0x80 && c[1] <= 0x9f;
		(void)putchar(*c < 0x20 || *c == 0x7f || c1 ? '?' : *c);
		c += c1;
	}
}

static const char *member(struct json_object *check, const char *name)
{
	struct json_object *value;

	return json_object_object_get_ex(check, name, &value) ? json_object_get_string(value) : NULL;
}

static void print_more(const char *name, const char *text)
{
	if (!text)
		return;
	(void)printf("      %s: ", name);
	print_text(text);
	(void)putchar('\n');
}

/* One line a check; what to do about it below those that are not ok. */
static int print_for_people(const struct ks_buf *checks, struct ks_error *err)
{
	struct json_object *list = ks_json_parse(checks->data, checks->len, err);
	int width = 0;

	if (!list)
		return -1;
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		int len = (int)strlen(member(json_object_array_get_idx(list, i), "id"));
		width = len > width ? len : width;
	}
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *check = json_object_array_get_idx(list, i);
		const char *status = member(check, "status");
		(void)printf("%-4s  %-*s  ", strcmp(status, "fail") == 0 ? "FAIL" : status, width, member(check, "id"));
		print_text(member(check, "found"));
		(void)putchar('\n');
		print_more("wanted", member(check, "wanted"));
		print_more("fix", member(check, "fix"));
	}
	json_object_put(list);
	return 0;
}

static int report(const struct visit *visit, bool json, struct ks_error *err)
{
	if (visit->checks.failed)
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	if (json)
		(void)printf("{\"ok\":%s,\"checks\":%.*s}\n", visit->ok ? "true" : "false", (int)visit->checks.len,
			     visit->checks.data);
	else if (print_for_people(&visit->checks, err) < 0)
		return -1;
	return fflush(stdout) == 0 && !ferror(stdout) ? 0 : ks_fail(err, KS_E_IO, "cannot write to stdout");
}

int ks_cli_doctor(int argc, char **argv, char *arguments, size_t arguments_len, const char *const *plugin_dirs)
{
	static struct visit visit;
	bool json = argc == 2 && strcmp(argv[1], "--json") == 0;
	struct ks_error err;

	if (argc > 1 && !json) {
		(void)fprintf(stderr, "kern-sidecar: doctor takes --json and nothing else\n");
		return 2;
	}
	if (start(&visit, arguments, arguments_len, plugin_dirs, &err) < 0) {
		visit.done = true;
		ks_doctor_without_core(&err, &visit.checks);
	} else {
		ks_doctor(visit.core, on_checked, &visit);
		if (!visit.done)
			(void)uv_run(&visit.loop, UV_RUN_DEFAULT);
		close_core(&visit);
	}
	close_all(&visit);
	int rc = visit.done ? report(&visit, json, &err)
			    : ks_fail(&err, KS_E_INTERNAL, "the launcher died before the probe ended");
	if (rc < 0)
		(void)fprintf(stderr, "kern-sidecar: %s\n", err.text);
	ks_buf_free(&visit.checks);
	return rc < 0 || !visit.ok;
}
