#include "session/doctor.h"

#include <json-c/json.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/program.h"
#include "proto/messages.h"
#include "proto/scan.h"
#include "proto/tables.h"
#include "session/call.h"
#include "session/doctor_checks.h"

#define DEFAULT_MEMORY_MB 512 /* of session/open */

struct doctor {
	struct ks_core *core;
	void (*done)(void *arg, bool ok, const struct ks_buf *checks);
	void *arg;
	struct ks_run_params params;
	struct ks_call *call;
};

/* ---- facts about the sidecar itself ---- */

/* The strings that the facts point to. */
struct own {
	char cwd[PATH_MAX];
};

static void collect(struct own *own, struct ks_doctor_facts *ret)
{
	const char *program = ks_program_path();

	if (!getcwd(own->cwd, sizeof(own->cwd)))
		(void)snprintf(own->cwd, sizeof(own->cwd), "/");
	*ret = (struct ks_doctor_facts){ .root = "",
					 .uid = geteuid(),
					 .cwd = own->cwd,
					 .program = program[0] ? program : NULL,
					 .runtime_dir = getenv("XDG_RUNTIME_DIR"),
					 .runs = KS_RUNS_DEFAULT,
					 .memory_mb = DEFAULT_MEMORY_MB };
}

static void collect_core(const struct ks_core *core, struct ks_doctor_facts *facts)
{
	struct statvfs fs;

	facts->runs = core->max_runs;
	facts->limits = core->engine ? ks_engine_limits(core->engine) : NULL;
	facts->state_path = ks_state_path(core->state);
	if (fstatvfs(ks_state_fd(core->state), &fs) == 0)
		facts->state_free = (uint64_t)fs.f_bavail * fs.f_frsize;
}

/* ---- what it would run ---- */

static void check_plugins(const struct ks_core *core, struct ks_checks *checks)
{
	const struct ks_plugins *plugins = core->plugins;
	const struct ks_language *language = NULL;
	struct ks_check *check = ks_check_new(checks, "languages");
	KS_AUTOBUF struct ks_buf names = { 0 }, refused = { 0 };
	size_t count = 0;

	while ((language = ks_plugins_next_language(plugins, language)))
		ks_buf_printf(&names, "%s%s", names.len ? " " : "", language->api.name);
	ks_buf_char(&names, '\0');
	ks_check_wanted(check, "at least one");
	ks_check_fix(check, "install the plugins beside the program, or name their directory with --plugin-dir");
	ks_check_found(check, names.len > 1 ? KS_CHECK_OK : KS_CHECK_FAIL, "%s", names.len > 1 ? names.data : "none");

	check = ks_check_new(checks, "plugins");
	for (struct ks_list *n = plugins->refused.next; n != &plugins->refused; n = n->next, count++) {
		const struct ks_refused *plugin = KS_ENTRY(n, struct ks_refused, node);
		ks_buf_printf(&refused, "%s%.150s (%.150s)", count ? "; " : "", plugin->path, plugin->reason);
	}
	ks_buf_char(&refused, '\0');
	ks_check_wanted(check, "none refused");
	ks_check_fix(check, "mend or remove them; plugin/list has every reason in full");
	ks_check_found(check, count ? KS_CHECK_WARN : KS_CHECK_OK, "%s%s", count ? "refused: " : "none refused",
		       count && !refused.failed ? refused.data : "");
}

static void check_interpreters(const struct ks_core *core, struct ks_checks *checks)
{
	const struct ks_language *language = NULL;
	struct ks_image *image = NULL;
	struct ks_error err;
	struct ks_check *check = ks_check_new(checks, "image_host");

	ks_check_wanted(check, "a root file system made of the host's /usr");
	if (ks_image_open(NULL, &image, &err) < 0) {
		ks_check_fix(check, "%s", err.hint[0] ? err.hint : "name another image: \"dir:/path/to/rootfs\"");
		ks_check_found(check, KS_CHECK_FAIL, "%s", err.text);
		return;
	}
	ks_check_found(check, KS_CHECK_OK, "/usr and what belongs to it");
	while ((language = ks_plugins_next_language(core->plugins, language))) {
		char id[64];
		KS_AUTOFREE char *path = NULL;
		(void)snprintf(id, sizeof(id), "interpreter_%s", language->api.name);
		check = ks_check_new(checks, id);
		bool there = ks_image_find_program(image, language->api.programs, &path, &err) == 0;
		ks_check_wanted(check, "a program that runs it under the host's /usr");
		ks_check_fix(check, "sudo apt-get install %s, or use an image that has it", language->api.programs[0]);
		ks_check_found(check, there ? KS_CHECK_OK : KS_CHECK_WARN, "%s", there ? path : err.text);
	}
	ks_image_free(image);
}

/* ---- the report ---- */

static void finish(struct doctor *doctor, const struct ks_error *probe, int64_t start_us)
{
	struct ks_checks *checks = malloc(sizeof(*checks));
	KS_AUTOBUF struct ks_buf json = { 0 };
	struct ks_doctor_facts facts;
	struct own own;

	if (!checks)
		abort();
	collect(&own, &facts);
	collect_core(doctor->core, &facts);
	facts.probe = probe;
	facts.start_us = start_us;
	ks_doctor_examine(&facts, checks);
	check_plugins(doctor->core, checks);
	check_interpreters(doctor->core, checks);
	ks_checks_write(checks, &json);
	bool ok = ks_checks_ok(checks);
	free(checks);
	doctor->done(doctor->arg, ok, &json);
	ks_params_free(&ks_run_argv_params, &doctor->params);
	free(doctor);
}

void ks_doctor_without_core(const struct ks_error *why, struct ks_buf *ret_checks)
{
	struct ks_checks *checks = malloc(sizeof(*checks));
	struct ks_doctor_facts facts;
	struct own own;

	if (!checks)
		abort();
	collect(&own, &facts);
	facts.probe = why;
	facts.state_error = why->reason == KS_E_INTERNAL || why->reason == KS_E_PLUGIN_ERROR ? NULL : why;
	ks_doctor_examine(&facts, checks);
	ks_checks_write(checks, ret_checks);
	free(checks);
}

/* ---- the probe: every layer of a box, once, for real ---- */

static void on_started(void *arg)
{
	(void)arg;
}

static void on_output(void *arg, enum ks_output which, const void *data, size_t len)
{
	(void)arg;
	(void)which;
	(void)data;
	(void)len;
}

static size_t on_room(void *arg)
{
	(void)arg;
	return SIZE_MAX;
}

/* `true` ran, or the box could not do what it is for: then the outcome is the probe's error. */
static void on_done(void *arg)
{
	struct doctor *doctor = arg;
	const struct ks_outcome *outcome = &doctor->call->outcome;
	bool ran = outcome->exit_code == 0 && outcome->fault == KS_FAULT_NONE;
	const int64_t start_us = outcome->start_us;
	struct ks_error err;

	if (!ran) {
		(void)ks_fail(&err, KS_E_START_FAILED, "`true` ended with exit code %d: %.250s", outcome->exit_code,
			      outcome->message[0] ? outcome->message : "no fault");
		(void)ks_error_step(&err, outcome->fault == KS_FAULT_EXEC_FAILED ? "exec" : "run");
	}
	ks_call_finish(doctor->call);
	finish(doctor, ran ? NULL : &err, start_us);
}

static void on_failed(void *arg, const struct ks_error *err)
{
	finish(arg, err, 0);
}

static const struct ks_call_ops probe_ops = { on_started, on_output, NULL, on_room, NULL, on_done, on_failed };

static int decode_probe(struct ks_run_params *params, struct ks_error *err)
{
	static const char request[] = "{\"argv\":[\"true\"],\"timeoutMs\":10000}";
	struct json_object *json = ks_json_parse(request, sizeof(request) - 1, err);
	int rc = json ? ks_decode(&ks_run_argv_params, json, params, err) : -1;

	json_object_put(json);
	return rc;
}

void ks_doctor(struct ks_core *core, void (*done)(void *arg, bool ok, const struct ks_buf *checks), void *arg)
{
	struct doctor *doctor = calloc(1, sizeof(*doctor));
	struct ks_error err;

	if (!doctor)
		abort();
	*doctor = (struct doctor){ .core = core, .done = done, .arg = arg };
	if (decode_probe(&doctor->params, &err) < 0 ||
	    ks_call_new(core, NULL, &doctor->params, true, "", 0, "", 0, &probe_ops, doctor, &doctor->call, &err) < 0) {
		finish(doctor, &err, 0);
		return;
	}
	ks_calls_start_queued(core);
}
