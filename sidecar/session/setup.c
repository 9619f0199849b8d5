#include "session/setup.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "session/deps.h"
#include "session/kernel.h"
#include "session/posture.h"

static void end(struct ks_setup *setup);
static void clear(struct ks_setup *setup);

static void give_up(struct ks_setup *setup, const struct ks_error *err)
{
	if (!setup->error.reason)
		setup->error = *err;
}

static bool is_closing(const struct ks_setup *setup)
{
	return setup->session->state == KS_SESSION_CLOSING;
}

/* ---- jobs of a worker ---- */

static void on_task(struct ks_task *task, struct ks_unpack *result, const struct ks_error *err);

static struct ks_buf *new_task(struct ks_setup *setup, enum ks_setup_state state, enum ks_job_kind kind, bool alone)
{
	setup->state = state;
	setup->task = (struct ks_task){ .job.kind = kind, .alone = alone, .done = on_task };
	return &setup->task.job.request;
}

/* `on_task` follows, perhaps at once. */
static void start_task(struct ks_setup *setup)
{
	struct ks_error err;

	if (ks_files_start_exclusive(setup->session, &setup->task, &err) == 0)
		return;
	ks_job_drop(&setup->task.job);
	if (setup->task.root_fd > 0)
		(void)close(KS_TAKE(setup->task.root_fd, 0));
	on_task(&setup->task, NULL, &err);
}

/* Gives the task the cache, and says which. */
static void pack_cache(struct ks_setup *setup, struct ks_buf *request)
{
	int fd = setup->key[0] ? ks_cache_open(setup->session) : -1;

	setup->task.root_fd = fd > 0 ? fd : 0;
	ks_pack_int(request, fd > 0 ? (int64_t)setup->session->mount_count + 1 : 0);
	ks_pack_string(request, setup->key);
}

static void stage(struct ks_setup *setup)
{
	const struct ks_session *session = setup->session;
	struct ks_buf *request = new_task(setup, KS_SETUP_STAGING, KS_JOB_DEPS_STAGE, true);

	ks_pack_int(request, session->deps.present);
	ks_pack_int(request, (int64_t)session->deps.identity.st_dev);
	ks_pack_int(request, (int64_t)session->deps.identity.st_ino);
	pack_cache(setup, request);
	start_task(setup);
}

/* Short, so that a session that closes waits for its answer. */
static void swap(struct ks_setup *setup, enum ks_setup_state state)
{
	(void)new_task(setup, state, KS_JOB_DEPS_SWAP, false);
	start_task(setup);
}

static void clear(struct ks_setup *setup)
{
	setup->session->stage = NULL;
	if (is_closing(setup) && setup->session->workspace_private) {
		end(setup); /* all of the workspace goes */
		return;
	}
	ks_pack_int(new_task(setup, KS_SETUP_CLEARING, KS_JOB_DEPS_CLEAR, true), !setup->session->deps.present);
	start_task(setup);
}

/* ---- the run ---- */

static void on_started(void *arg)
{
	struct ks_setup *setup = arg;

	setup->ops->started(setup->arg);
}

static void on_output(void *arg, enum ks_output which, const void *data, size_t len)
{
	struct ks_setup *setup = arg;

	setup->ops->output(setup->arg, which, data, len);
}

static void on_credit(void *arg, uint64_t bytes)
{
	struct ks_setup *setup = arg;

	setup->ops->credit(setup->arg, bytes);
}

static size_t on_room(void *arg)
{
	struct ks_setup *setup = arg;

	return setup->ops->room(setup->arg);
}

/* Nothing of the request has happened: the shell or the installer is not there. */
static void look_for_tools(struct ks_setup *setup)
{
	const struct ks_outcome *outcome = &setup->call->outcome;
	const struct ks_buf *said = &setup->call->log[KS_STDERR].kept;
	const bool pip = setup->installer == KS_INSTALLER_PIP;
	struct ks_error err;

	if (outcome->fault == KS_FAULT_EXEC_FAILED) {
		(void)ks_fail(&err, KS_E_SETUP_FAILED, "%s", outcome->message);
		(void)ks_error_hint(&err, "a setup needs a shell in the image");
	} else if (outcome->exit_code == 1 && ks_install_missing(setup->installer, said->data, said->len)) {
		(void)ks_fail(&err, KS_E_SETUP_FAILED, "%s is not in the image %.200s", pip ? "pip" : "npm", setup->session->image->ref);
		(void)ks_error_hint(&err, pip ? "install the package python3-pip there (Alpine: py3-pip)" :
						"install the package npm there");
	} else {
		return;
	}
	give_up(setup, &err);
}

static void on_done(void *arg)
{
	struct ks_setup *setup = arg;

	setup->session->stage = NULL;
	look_for_tools(setup);
	if (!setup->error.reason && setup->call->outcome.exit_code == 0 && setup->call->outcome.fault == KS_FAULT_NONE)
		swap(setup, KS_SETUP_SWAPPING);
	else
		clear(setup);
}

static void on_failed(void *arg, const struct ks_error *err)
{
	struct ks_setup *setup = arg;

	setup->call = NULL;
	give_up(setup, err);
	clear(setup);
}

static const struct ks_call_ops call_ops = { on_started, on_output, on_credit, on_room, NULL, on_done, on_failed };

static void run(struct ks_setup *setup)
{
	struct ks_session *session = setup->session;
	struct ks_core *core = session->core;
	struct ks_error err;

	setup->state = KS_SETUP_RUNNING;
	if (ks_call_new(core, session, &setup->run, true, "", 0, "", 0, &call_ops, setup, &setup->call, &err) < 0) {
		give_up(setup, &err);
		clear(setup);
		return;
	}
	session->stage = &setup->stage;
	setup->call->is_setup = true;
	ks_calls_start_queued(core);
}

/* ---- its packages become the session's ---- */

static void on_reopened(void *arg, const struct ks_error *err)
{
	struct ks_setup *setup = arg;

	if (err) {
		give_up(setup, err);
		setup->session->deps = setup->before;
		swap(setup, KS_SETUP_BACK);
	} else if (setup->key[0] && setup->fresh && !setup->cached) {
		pack_cache(setup, new_task(setup, KS_SETUP_STORING, KS_JOB_DEPS_STORE, true));
		start_task(setup);
	} else {
		clear(setup);
	}
}

static void reopen(struct ks_setup *setup)
{
	struct ks_error err;

	setup->state = KS_SETUP_REOPENING;
	setup->before = setup->session->deps;
	if (is_closing(setup)) {
		clear(setup);
		return;
	}
	if (ks_deps_changed(setup->session, &setup->stage.tree, &err) < 0 ||
	    ks_session_reopen(setup->session, on_reopened, setup, &err) < 0)
		on_reopened(setup, &err);
}

static void staged(struct ks_setup *setup, struct ks_unpack *result)
{
	struct ks_error err;

	setup->fresh = ks_unpack_int(result) != 0;
	setup->cached = ks_unpack_int(result) != 0;
	if (ks_deps_stage_open(setup->session, &setup->stage, &err) < 0) {
		give_up(setup, &err);
		clear(setup);
	} else if (setup->cached) {
		swap(setup, KS_SETUP_SWAPPING);
	} else {
		run(setup);
	}
}

static void swapped(struct ks_setup *setup, struct ks_unpack *result)
{
	if (ks_unpack_int(result) != 0 && !setup->session->deps.present)
		clear(setup); /* nothing was installed */
	else
		reopen(setup);
}

static void on_task(struct ks_task *task, struct ks_unpack *result, const struct ks_error *err)
{
	struct ks_setup *setup = KS_ENTRY(task, struct ks_setup, task);
	const enum ks_setup_state state = setup->state;

	if (!result && state == KS_SETUP_CLEARING)
		ks_log(KS_LOG_WARN, "setup_left", "%s/" KS_STAGE_TOP_NAME ": %s", setup->session->workspace, err->text);
	if (!result && (state == KS_SETUP_STAGING || state == KS_SETUP_SWAPPING))
		give_up(setup, err);
	if (state == KS_SETUP_CLEARING)
		end(setup);
	else if (result && state == KS_SETUP_STAGING)
		staged(setup, result);
	else if (result && state == KS_SETUP_SWAPPING)
		swapped(setup, result);
	else
		clear(setup); /* also when nothing could be stored: too large, no room */
}

/* ---- life ---- */

static void on_grant(struct ks_exclusive *exclusive)
{
	stage(KS_ENTRY(exclusive, struct ks_setup, exclusive));
}

static void on_closing(struct ks_exclusive *exclusive)
{
	ks_setup_cancel(KS_ENTRY(exclusive, struct ks_setup, exclusive));
}

/* There is a result, though no command ran. */
static void settle(struct ks_setup *setup)
{
	struct ks_error err;

	if (ks_call_new(setup->session->core, setup->session, &setup->run, true, "", 0, "", 0, &call_ops, setup, &setup->call, &err) < 0) {
		give_up(setup, &err);
		return;
	}
	ks_call_settle(setup->call);
	ks_notes_add(&setup->call->notes, "setup_cached", "not run again: this is what the same command has installed before");
}

static void end(struct ks_setup *setup)
{
	setup->state = KS_SETUP_DONE;
	if (!setup->error.reason && setup->cached)
		settle(setup);
	if (!setup->error.reason) {
		setup->ops->done(setup->arg);
		return;
	}
	setup->ops->failed(setup->arg, &setup->error);
	ks_setup_finish(setup);
}

void ks_setup_finish(struct ks_setup *setup)
{
	struct ks_exclusive exclusive = setup->exclusive;

	if (setup->call)
		ks_call_finish(setup->call);
	if (exclusive.session)
		ks_gate_leave(&setup->exclusive);
	ks_buf_free(&setup->script);
	free(setup);
}

void ks_setup_cancel(struct ks_setup *setup)
{
	struct ks_error err;

	if (setup->cancelled)
		return;
	setup->cancelled = true;
	if (setup->state == KS_SETUP_WAITING) {
		(void)ks_fail(&err, KS_E_CANCELLED, "the setup was cancelled before its command started");
		give_up(setup, &err);
		end(setup);
	} else if (setup->state == KS_SETUP_STAGING) {
		ks_files_cancel(&setup->task);
	} else if (setup->state == KS_SETUP_RUNNING && setup->call) {
		ks_call_cancel(setup->call);
	} /* else it is too late: what was installed takes its place */
}

static int check(const struct ks_session *session, struct ks_error *err)
{
	if (!session->untrusted)
		return ks_kernels_closed(session, err);
	(void)ks_fail(err, KS_E_SETUP_FAILED, "a setup has the network on, which securityProfile untrusted does not allow");
	return ks_error_hint(err, "set up the workspace in another session, then open this one on it");
}

/* The command line of its run. */
static int write_command(struct ks_setup *setup, struct ks_error *err)
{
	struct ks_session *session = setup->session;
	const struct ks_language *python = ks_plugins_find_language(session->core->plugins, "python");
	const char *interpreter = python && python->plugin->runner_dir ? ks_session_interpreter(session, python) : NULL;
	size_t count = 0;

	setup->installer = ks_install_text(setup->params->command, &setup->script);
	if (setup->installer == KS_INSTALLER_PIP && !interpreter) {
		(void)ks_fail(err, KS_E_SETUP_FAILED, "python is not in the image %.200s", session->image->ref);
		return ks_error_hint(err, "use an image with python3 and python3-pip, or name the interpreter in session/open");
	}
	ks_buf_char(&setup->script, '\0');
	const size_t deps_at = setup->script.len;
	ks_buf_printf(&setup->script, "%s/" KS_DEPS_NAME, session->workspace_target);
	ks_buf_char(&setup->script, '\0');
	const size_t installer_at = setup->script.len;
	ks_buf_printf(&setup->script, KS_RUNNER_DIR "/%s/install.py", python ? python->plugin->api.name : "");
	ks_buf_char(&setup->script, '\0');
	if (setup->script.failed)
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	/* Nobody can change a source that is read-only: its bytecode needs no check (PEP 552), and copies may have other times. */
	const char *const words[] = { "sh", "-c", ks_install_script, "setup", setup->script.data, interpreter ? interpreter : "",
				      setup->script.data + deps_at, setup->script.data + installer_at,
				      session->deps.readonly ? "unchecked-hash" : "timestamp" };
	for (; count < KS_COUNT(words); count++)
		setup->words[count] = (char *)(uintptr_t)words[count];
	setup->run.argv = (struct ks_strings){ setup->words, count };
	return 0;
}

int ks_setup_new(struct ks_session *session, const struct ks_setup_params *params, const struct ks_call_ops *ops, void *arg,
		 struct ks_setup **ret, struct ks_error *err)
{
	int64_t timeout = session->timeout_ms > KS_SETUP_TIMEOUT_MS ? session->timeout_ms : KS_SETUP_TIMEOUT_MS;

	if (check(session, err) < 0)
		return -1;
	struct ks_setup *setup = calloc(1, sizeof(*setup));
	if (!setup)
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	*setup = (struct ks_setup){ .session = session, .params = params, .ops = ops, .arg = arg,
				    .exclusive = { .grant = on_grant, .closing = on_closing } };
	setup->run = (struct ks_run_params)KS_RUN_PARAMS_ABSENT;
	setup->run.run_id = setup->id;
	setup->run.stream = params->stream;
	setup->run.timeout_ms = params->timeout_ms == KS_ABSENT ? timeout : params->timeout_ms;
	ks_core_make_handle(session->core, "setup", setup->id);
	if (ks_install_is_plain(params->command) && !ks_cache_key(session, params->command, setup->key))
		setup->key[0] = '\0';
	if (write_command(setup, err) < 0) {
		ks_setup_finish(setup);
		return -1;
	}
	*ret = setup;
	return 0;
}

void ks_setup_start(struct ks_setup *setup)
{
	ks_gate_ask(setup->session, &setup->exclusive);
}
