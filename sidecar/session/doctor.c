#include "session/doctor.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "proto/messages.h"
#include "proto/scan.h"
#include "proto/tables.h"
#include "proto/write.h"
#include "session/call.h"

struct doctor {
	struct ks_core *core;
	void (*done)(void *arg, bool ok, const struct ks_buf *checks);
	void *arg;
	struct ks_run_params params;
	struct ks_call *call;
	struct ks_buf json;
	bool ok;
};

enum status { OK, WARN, FAIL };

static void add(struct doctor *doctor, const char *id, enum status status, const char *found, const char *wanted, const char *fix)
{
	static const char *const names[] = { "ok", "warn", "fail" };

	doctor->ok &= status != FAIL;
	ks_write_open(&doctor->json, '{');
	ks_write_key_string(&doctor->json, "id", id);
	ks_write_key_string(&doctor->json, "status", names[status]);
	ks_write_key_string(&doctor->json, "found", found);
	ks_write_key_string(&doctor->json, "wanted", wanted && wanted[0] ? wanted : NULL);
	ks_write_key_string(&doctor->json, "fix", fix && fix[0] ? fix : NULL);
	ks_write_close(&doctor->json, '}');
}

/* seccomp(2): SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV came with 5.19; everything else we need is older. */
static void check_kernel(struct doctor *doctor)
{
	struct utsname name;
	int major = 0, minor = 0;

	(void)uname(&name);
	(void)sscanf(name.release, "%d.%d", &major, &minor);
	bool good = major > 5 || (major == 5 && minor >= 19);
	add(doctor, "kernel", good ? OK : FAIL, name.release, good ? NULL : "Linux 5.19 or later",
	    good ? NULL : "update the kernel: older ones lack a part of seccomp notification that the sandbox needs");
}

static void check_limits(struct doctor *doctor)
{
	static const char *const ids[] = { "limit_memory", "limit_pids", "limit_cpu" };
	const struct ks_cgroup_status *status = ks_engine_limits(doctor->core->engine);
	char found[256];

	for (int kind = 0; kind < KS_LIMIT_KINDS; kind++) {
		bool kernel = status->enforced[kind] == KS_ENFORCED_KERNEL;
		(void)snprintf(found, sizeof(found), "%s (cgroup %s)%s%s", ks_enforced_name(status->enforced[kind]), status->backend,
			       status->reason[kind][0] ? ": " : "", status->reason[kind]);
		add(doctor, ids[kind], kernel ? OK : WARN, found, kernel ? NULL : "kernel",
		    kernel ? NULL : "start the sidecar in a cgroup that is delegated to its user: systemd-run --user --scope "
				    "-p Delegate=yes kern-sidecar --stdio, or as root with the cgroup hierarchies mounted writable");
	}
}

static void check_plugins(struct doctor *doctor)
{
	const struct ks_plugins *plugins = doctor->core->plugins;
	const struct ks_language *language = NULL;
	KS_AUTOBUF struct ks_buf names = { 0 };

	while ((language = ks_plugins_next_language(plugins, language)))
		ks_buf_printf(&names, "%s%s", names.len ? " " : "", language->api.name);
	ks_buf_char(&names, '\0');
	if (names.failed)
		return;
	add(doctor, "languages", names.len > 1 ? OK : FAIL, names.len > 1 ? names.data : "none", NULL,
	    names.len > 1 ? NULL : "install the plugins beside the program, or name their directory with --plugin-dir");
	for (struct ks_list *n = plugins->refused.next; n != &plugins->refused; n = n->next) {
		const struct ks_refused *refused = KS_ENTRY(n, struct ks_refused, node);
		char found[512];
		(void)snprintf(found, sizeof(found), "%.200s was refused: %.200s", refused->path, refused->reason);
		add(doctor, "plugin", WARN, found, NULL, "mend or remove it");
	}
}

static void check_interpreters(struct doctor *doctor)
{
	const struct ks_language *language = NULL;
	struct ks_image *image = NULL;
	struct ks_error err;

	if (ks_image_open(NULL, &image, &err) < 0) {
		add(doctor, "image_host", FAIL, err.text, NULL, err.hint);
		return;
	}
	while ((language = ks_plugins_next_language(doctor->core->plugins, language))) {
		char id[64], *path = NULL;
		(void)snprintf(id, sizeof(id), "interpreter_%s", language->api.name);
		bool there = ks_image_find_program(image, language->api.programs, &path, &err) == 0;
		add(doctor, id, there ? OK : WARN, there ? path : err.text, NULL,
		    there ? NULL : "install it under /usr, or use an image that has it");
		free(path);
	}
	ks_image_free(image);
}

static void finish(struct doctor *doctor)
{
	if (doctor->core->engine)
		check_limits(doctor);
	check_plugins(doctor);
	check_interpreters(doctor);
	ks_write_close(&doctor->json, ']');
	doctor->done(doctor->arg, doctor->ok, &doctor->json);
	ks_params_free(&ks_run_argv_params, &doctor->params);
	ks_buf_free(&doctor->json);
	free(doctor);
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

static void add_failure(struct doctor *doctor, const struct ks_error *err)
{
	char found[512];

	(void)snprintf(found, sizeof(found), "step '%s': %s", err->step[0] ? err->step : "?", err->text);
	add(doctor, "box", FAIL, found, "a box with all layers starts",
	    err->hint[0] ? err->hint : "see the step's name: the kernel refused it");
}

static void on_done(void *arg)
{
	struct doctor *doctor = arg;
	struct ks_call *call = doctor->call;
	char found[400];

	if (call->outcome.exit_code == 0 && call->outcome.fault == KS_FAULT_NONE)
		(void)snprintf(found, sizeof(found), "started in %lld us, with every layer", (long long)call->outcome.start_us);
	else
		(void)snprintf(found, sizeof(found), "exit code %d: %s", call->outcome.exit_code, call->outcome.message);
	add(doctor, "box", call->outcome.exit_code == 0 ? OK : FAIL, found, NULL, NULL);
	ks_call_finish(call);
	finish(doctor);
}

static void on_failed(void *arg, const struct ks_error *err)
{
	add_failure(arg, err);
	finish(arg);
}

static const struct ks_call_ops probe_ops = { on_started, on_output, on_room, on_done, on_failed };

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
	*doctor = (struct doctor){ .core = core, .done = done, .arg = arg, .ok = true };
	ks_write_open(&doctor->json, '[');
	check_kernel(doctor);
	if (decode_probe(&doctor->params, &err) < 0 ||
	    ks_call_new(core, NULL, &doctor->params, true, "", 0, "", 0, &probe_ops, doctor, &doctor->call, &err) < 0) {
		add_failure(doctor, &err);
		finish(doctor);
		return;
	}
	ks_calls_start_queued(core);
}
