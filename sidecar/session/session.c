#include "session/session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "session/anonymous.h"
#include "session/archive.h"
#include "session/call.h"
#include "session/deps.h"
#include "session/files.h"
#include "session/identity.h"
#include "session/kernel.h"
#include "session/mounts.h"
#include "session/posture.h"
#include "session/spares.h"
#include "session/storage.h"
#include "workspace/policy.h"
#include "workspace/quota.h"

#define MEMORY_DEFAULT_MB 512

/* ---- memory ---- */

void ks_pairs_free(struct ks_pairs *pairs)
{
	for (size_t i = 0; i < pairs->count; i++) {
		free(pairs->names[i]);
		free(pairs->values[i]);
	}
	free(pairs->names);
	free(pairs->values);
	*pairs = (struct ks_pairs){ 0 };
}

static void free_group(struct ks_session_group *holder)
{
	ks_list_remove(&holder->node);
	free(holder);
}

static void free_session(struct ks_session *session)
{
	ks_files_free(session);
	ks_spares_free(session);
	while (!ks_list_empty(&session->groups))
		free_group(KS_ENTRY(session->groups.next, struct ks_session_group, node));
	ks_looks_free(&session->looks);
	while (!ks_list_empty(&session->interpreters)) {
		struct ks_interpreter *i = KS_ENTRY(session->interpreters.next, struct ks_interpreter, node);
		ks_list_remove(&i->node);
		free(i->language);
		free(i->path);
		free(i);
	}
	ks_image_free(session->image);
	ks_close(&session->workspace_fd);
	free(session->workspace);
	free(session->workspace_target);
	free(session->cwd);
	ks_pairs_free(&session->env);
	ks_session_free_mounts(session);
	free(session->apparmor);
	for (size_t i = 0; i < session->preload.count; i++)
		free(session->preload.items[i]);
	free(session->preload.items);
	free(session);
}

int ks_pairs_copy(const struct ks_pairs *from, struct ks_pairs *ret)
{
	ret->names = calloc(from->count + 1, sizeof(char *));
	ret->values = calloc(from->count + 1, sizeof(char *));
	if (!ret->names || !ret->values)
		return -1;
	for (; ret->count < from->count; ret->count++) {
		ret->names[ret->count] = strdup(from->names[ret->count]);
		ret->values[ret->count] = strdup(from->values[ret->count]);
		if (!ret->names[ret->count] || !ret->values[ret->count])
			return -1;
	}
	return 0;
}

/* ---- opening: everything that can be said no to, before anything is made ---- */

static int check_limits(struct ks_session *session, const struct ks_session_params *params, struct ks_error *err)
{
	static const char *const names[] = { "/memoryMb", "/pids", "/cpusMilli" };
	const struct ks_cgroup_status *status = ks_engine_limits(session->core->engine);
	int64_t memory_mb = params->memory_mb == KS_ABSENT ? MEMORY_DEFAULT_MB : params->memory_mb;

	session->limits = (struct ks_box_limits){ .memory_bytes = memory_mb << 20, .pids = params->pids,
					      .cpus_milli = params->cpus_milli == KS_ABSENT ? 0 : params->cpus_milli,
					      .enforce = params->enforce_limits };
	if (!params->require_limits)
		return 0;
	if (!params->enforce_limits)
		return ks_fail_at(err, KS_E_INVALID_VALUE, "/requireLimits", "requireLimits contradicts enforceLimits:false");
	for (int kind = 0; kind < KS_LIMIT_KINDS; kind++) {
		if (status->enforced[kind] == KS_ENFORCED_KERNEL || (kind == KS_LIMIT_CPU && session->limits.cpus_milli == 0))
			continue;
		(void)ks_fail_at(err, KS_E_LIMITS_UNENFORCED, names[kind], "the kernel does not enforce this limit here: %s",
				 status->reason[kind]);
		return ks_error_hint(err, "host/doctor names the cure for this host; or drop requireLimits");
	}
	return 0;
}

static int open_image(struct ks_session *session, const struct ks_session_params *params, struct ks_error *err)
{
	if (ks_image_open(params->image, &session->image, err) < 0)
		return -1;
	if (session->image->kind != KS_IMAGE_DIR ||
	    ks_source_check(session->image->root_fd, session->image->path, session->core->state, err) == 0)
		return 0;
	return ks_error_at(err, "/image");
}

static int add_interpreter(struct ks_session *session, const char *language, char *path, bool given)
{
	struct ks_interpreter *i = calloc(1, sizeof(*i));

	if (!i)
		return -1;
	i->language = strdup(language);
	i->path = path;
	i->given = given;
	ks_list_append(&session->interpreters, &i->node);
	return 0;
}

static int take_interpreters(struct ks_session *session, const struct ks_session_params *params, struct ks_error *err)
{
	char pointer[128];

	for (size_t i = 0; i < params->interpreters.count; i++) {
		const char *name = params->interpreters.names[i];
		(void)snprintf(pointer, sizeof(pointer), "/interpreters/%.64s", name);
		const struct ks_language *language = ks_plugins_find_language(session->core->plugins, name);
		if (!language)
			return ks_fail_at(err, KS_E_UNKNOWN_LANGUAGE, pointer, "no plugin runs %.64s; plugin/list names the languages",
					  name);
		/* one in the workspace may not exist yet: a missing one is exec_failed when it is used */
		char *path = strdup(params->interpreters.values[i]);
		if (!path || add_interpreter(session, language->api.name, path, true) < 0)
			return ks_fail(err, KS_E_INTERNAL, "out of memory");
	}
	return 0;
}

const char *ks_session_interpreter(struct ks_session *session, const struct ks_language *language)
{
	struct ks_error err;
	char *path = NULL;

	for (struct ks_list *n = session->interpreters.next; n != &session->interpreters; n = n->next) {
		struct ks_interpreter *i = KS_ENTRY(n, struct ks_interpreter, node);
		if (strcmp(i->language, language->api.name) == 0)
			return i->path;
	}
	if (ks_image_find_program(session->image, language->api.programs, &path, &err) < 0)
		return NULL; /* not remembered: the next call looks again */
	return add_interpreter(session, language->api.name, path, false) < 0 ? NULL : path;
}

char *ks_session_resolve_cwd(const struct ks_session *session, const char *cwd, struct ks_error *err)
{
	char *path = NULL;

	if (!cwd)
		return strdup(session->cwd ? session->cwd : session->workspace_target);
	if (cwd[0] == '/')
		path = strdup(cwd);
	else if (asprintf(&path, "%s/%s", session->cwd ? session->cwd : session->workspace_target, cwd) < 0)
		path = NULL;
	if (!path)
		(void)ks_fail(err, KS_E_INTERNAL, "out of memory");
	else if (strlen(path) >= 4096) {
		(void)ks_fail_at(err, KS_E_INVALID_VALUE, "/cwd", "the path is longer than 4095 bytes");
		free(path);
		path = NULL;
	}
	return path;
}

static int take_preload(struct ks_session *session, const struct ks_session_params *params, struct ks_error *err)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
	const struct ks_strings *names = &params->preload;
	char pointer[32];

	if (names->count == 0)
		return 0;
	if (params->start != KS_START_AUTO && params->start != KS_START_ZYGOTE)
		return ks_fail_at(err, KS_E_INVALID_VALUE, "/preload",
				  "preload is of interpreters that are booted ahead, and start forbids to use them");
	session->preload.items = calloc(names->count + 1, sizeof(char *));
	for (; session->preload.items && session->preload.count < names->count; session->preload.count++) {
		const char *name = names->items[session->preload.count];
		(void)snprintf(pointer, sizeof(pointer), "/preload/%zu", session->preload.count);
		if (!*name || name[strspn(name, letters)] || strstr(name, "..") || name[0] == '.' || (name[0] >= '0' && name[0] <= '9'))
			return ks_fail_at(err, KS_E_INVALID_VALUE, pointer, "\"%.64s\" is no name of a module", name);
		session->preload.items[session->preload.count] = strdup(name);
		if (!session->preload.items[session->preload.count])
			break;
	}
	return session->preload.count == names->count ? 0 : ks_fail(err, KS_E_INTERNAL, "out of memory");
}

static int take_params(struct ks_session *session, const struct ks_session_params *params, struct ks_error *err)
{
	session->timeout_ms = params->timeout_ms;
	session->max_output_bytes = params->max_output_bytes;
	session->track_files = params->track_files;
	session->deps.readonly = params->deps_readonly;
	session->start = params->start;
	session->prewarm = params->prewarm;
	if (params->prewarm > 0 && (params->start == KS_START_COLD || params->start == KS_START_TEMPLATE))
		return ks_fail_at(err, KS_E_INVALID_VALUE, "/prewarm", "prewarm keeps boxes ready, and start forbids to use them");
	if (strcmp(params->workspace_target, "/workspace") != 0 && ks_target_check(params->workspace_target, err) < 0)
		return ks_error_at(err, "/workspaceTarget");
	if (take_preload(session, params, err) < 0)
		return -1;
	session->workspace_target = strdup(params->workspace_target);
	if (!session->workspace_target || ks_pairs_copy(&params->env, &session->env) < 0)
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	session->cwd = params->cwd ? ks_session_resolve_cwd(session, params->cwd, err) : NULL;
	return params->cwd && !session->cwd ? -1 : 0;
}

/* ---- the group ---- */

static void discard(struct ks_session *session);

static void finish_opening(struct ks_session *session, const struct ks_error *err)
{
	void (*opened)(void *, struct ks_session *, const struct ks_error *) = session->opened;
	void *arg = session->opened_arg;

	session->opened = NULL;
	if (opened)
		opened(arg, err ? NULL : session, err);
}

static void finish_reopening(struct ks_session *session, const struct ks_error *err)
{
	void (*reopened)(void *, const struct ks_error *) = KS_TAKE(session->reopened, NULL);

	reopened(session->reopened_arg, err);
}

static void fail_opening(struct ks_session *session, const struct ks_error *err)
{
	session->core->counters.starts_failed++;
	finish_opening(session, err);
	ks_session_close(session, NULL, NULL);
}

static bool is_newest(const struct ks_session_group *holder)
{
	return holder->session->groups.prev == &holder->node;
}

void ks_session_preloaded(struct ks_session *session, const struct ks_error *err)
{
	if (session->state != KS_SESSION_OPENING)
		return;
	if (err) {
		fail_opening(session, err);
		return;
	}
	session->state = KS_SESSION_OPEN;
	ks_spares_begin(session);
	finish_opening(session, NULL);
	ks_calls_session_opened(session);
}

static void on_settled(struct ks_session *session)
{
	if (session->preload.count > 0 && session->state == KS_SESSION_OPENING)
		ks_spares_preload(session);
	else
		ks_session_preloaded(session, NULL);
}

static void on_ready(void *arg, int memory_fd)
{
	struct ks_session_group *holder = arg;
	struct ks_session *session = holder->session;
	KS_AUTOCLOSE int memory = memory_fd;
	struct ks_error err;

	if (session->reopened && is_newest(holder)) {
		ks_spares_drop(session);
		ks_group_close(session->group);
		session->group = holder->group;
		finish_reopening(session, NULL);
		return;
	}
	if (session->state != KS_SESSION_OPENING)
		return;
	if (session->workspace_memory && memory < 0) { /* it came, and we have no descriptor left for it */
		(void)ks_fail(&err, KS_E_OVERLOADED, "the workspace cannot be opened: too many open files");
		fail_opening(session, &err);
		return;
	}
	if (session->workspace_memory) {
		ks_close(&session->workspace_fd);
		session->workspace_fd = KS_TAKE_FD(memory);
	}
	ks_restore_recover(session, on_settled);
}

static void on_failed(void *arg, const struct ks_error *err)
{
	struct ks_session_group *holder = arg;
	struct ks_session *session = holder->session;
	struct ks_core *core = session->core;

	if (holder->group != session->group) {
		if (session->reopened && is_newest(holder))
			finish_reopening(session, err);
		return;
	}
	if (session->state == KS_SESSION_OPENING) {
		fail_opening(session, err);
		return;
	}
	if (session->state == KS_SESSION_OPEN && !session->throwaway && core->session_closed)
		core->session_closed(core->session_closed_arg, session->id, "template_died");
	ks_session_close(session, NULL, NULL);
}

static void on_ended(void *arg)
{
	struct ks_session_group *holder = arg;
	struct ks_session *session = holder->session;
	const bool current = holder->group == session->group;

	if (current)
		session->group = NULL;
	free_group(holder);
	if (current && session->state != KS_SESSION_CLOSING)
		ks_session_close(session, NULL, NULL);
	else
		ks_session_turn(session);
}

static const struct ks_group_ops group_ops = { on_ready, on_failed, on_ended };

static struct ks_group *open_group(struct ks_session *session, struct ks_error *err)
{
	struct ks_session_group *holder = calloc(1, sizeof(*holder));

	if (!holder) {
		(void)ks_fail(err, KS_E_INTERNAL, "out of memory");
		return NULL;
	}
	holder->session = session;
	holder->group = ks_session_open_group(session, &group_ops, holder, err);
	if (!holder->group) {
		free(holder);
		return NULL;
	}
	ks_list_append(&session->groups, &holder->node);
	return holder->group;
}

int ks_session_reopen(struct ks_session *session, void (*reopened)(void *arg, const struct ks_error *err), void *arg,
		      struct ks_error *err)
{
	session->reopened = reopened;
	session->reopened_arg = arg;
	if (open_group(session, err))
		return 0;
	session->reopened = NULL;
	return -1;
}

struct ks_group *ks_session_open_group(struct ks_session *session, const struct ks_group_ops *ops, void *arg, struct ks_error *err)
{
	struct ks_plan *plan = malloc(sizeof(*plan));
	struct ks_group *group = NULL;

	if (!plan) {
		(void)ks_fail(err, KS_E_INTERNAL, "out of memory");
		return NULL;
	}
	if (ks_posture_plan(session, plan, err) == 0)
		group = ks_group_open(session->core->engine, plan, ops, arg, err);
	ks_plan_free(plan);
	free(plan);
	return group;
}

static int check_handle(struct ks_core *core, const char *id, struct ks_error *err)
{
	size_t count = 0;

	for (struct ks_list *n = core->sessions.next; n != &core->sessions; n = n->next, count++)
		if (id && strcmp(KS_ENTRY(n, struct ks_session, node)->id, id) == 0)
			return ks_fail_at(err, KS_E_DUPLICATE_HANDLE, "/sessionId", "session %s is open or still closing", id);
	if (count - core->anonymous.count >= KS_SESSIONS_MAX)
		return ks_fail(err, KS_E_OVERLOADED, "%d sessions are open; close one", KS_SESSIONS_MAX);
	return core->closing ? ks_fail(err, KS_E_INVALID_REQUEST, "the sidecar is shutting down") : 0;
}

int ks_session_open(struct ks_core *core, const struct ks_session_params *params, bool throwaway,
		    void (*opened)(void *arg, struct ks_session *session, const struct ks_error *err), void *arg,
		    struct ks_session **ret, struct ks_error *err)
{
	if (!core->engine) {
		*err = core->engine_error;
		return -1;
	}
	if (check_handle(core, params->session_id, err) < 0)
		return -1;
	struct ks_session *session = calloc(1, sizeof(*session));
	if (!session)
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	*session = (struct ks_session){ .core = core, .throwaway = throwaway, .workspace_fd = -1, .opened = opened,
					.opened_arg = arg, .opened_us = ks_now_us() };
	ks_list_init(&session->interpreters);
	ks_list_init(&session->calls);
	ks_spares_init(session);
	ks_list_init(&session->anonymous.node);
	ks_list_init(&session->groups);
	ks_files_init(&session->files);
	ks_looks_init(&session->looks, core);
	ks_gate_init(&session->gate);
	if (params->session_id)
		(void)snprintf(session->id, sizeof(session->id), "%s", params->session_id);
	else
		ks_core_make_handle(core, throwaway ? "once" : "session", session->id);
	ks_list_append(&core->sessions, &session->node);
	if (take_params(session, params, err) < 0 || ks_session_take_storage(session, params, err) < 0 ||
	    check_limits(session, params, err) < 0 || open_image(session, params, err) < 0 || take_interpreters(session, params, err) < 0 ||
	    ks_session_take_identity(session, params, err) < 0 || ks_session_take_mounts(session, params, err) < 0 ||
	    ks_session_open_workspace(session, params, err) < 0 || ks_session_choose_owner(session, params->map_owner, err) < 0) {
		discard(session);
		return -1;
	}
	if (!session->workspace_private) /* a new one is empty */
		(void)ks_deps_find(session, &session->notes);
	session->group = open_group(session, err);
	if (!session->group) {
		discard(session);
		return -1;
	}
	*ret = session;
	return 0;
}

/* ---- closing ---- */

struct removal {
	struct ks_chore chore;
	struct ks_remove *remove;
	char *path;
	int state_fd;
	uint32_t project; /* whose quota goes with it; 0: none */
	struct ks_session *session; /* waits for it; NULL when it does not */
};

static void finish_closing(struct ks_session *session)
{
	struct ks_core *core = session->core;
	void (*closed)(void *arg) = session->closed;
	void *arg = session->closed_arg;

	ks_kernels_forget_session(session);
	ks_calls_forget_session(session);
	ks_blobs_release(core->blobs, session);
	ks_list_remove(&session->node);
	free_session(session);
	if (closed)
		closed(arg);
	ks_core_turn(core);
}

static void removal_step(struct ks_chore *chore)
{
	struct removal *removal = (struct removal *)(void *)chore;
	struct ks_error err;
	int rc = ks_remove_step(removal->remove, KS_SLICE_US, &err);

	if (rc == 0)
		return;
	if (rc < 0)
		ks_log(KS_LOG_WARN, "workspace_left", "%s: %s", removal->path, err.text);
	ks_list_remove(&chore->node);
	ks_remove_free(removal->remove);
	if (removal->project)
		ks_quota_release(removal->state_fd, removal->project);
	struct ks_session *session = removal->session;
	free(removal->path);
	free(removal);
	if (session)
		finish_closing(session);
}

static void removal_drop(struct ks_chore *chore)
{
	struct removal *removal = KS_ENTRY(chore, struct removal, chore);

	ks_remove_free(removal->remove);
	free(removal->path);
	free(removal);
}

/* A private workspace goes before the session says that it is closed. */
static void remove_workspace(struct ks_session *session, bool wait)
{
	struct removal *removal = calloc(1, sizeof(*removal));
	struct ks_error err;

	ks_close(&session->workspace_fd);
	if (!removal || ks_private_workspace_remove(session->core->state, session->workspace, &removal->remove, &err) < 0) {
		free(removal);
		if (wait)
			finish_closing(session);
		return;
	}
	removal->chore.step = removal_step;
	removal->chore.drop = removal_drop;
	removal->path = strdup(session->workspace);
	removal->state_fd = ks_state_fd(session->core->state);
	removal->project = session->workspace_project;
	removal->session = wait ? session : NULL;
	ks_core_add_chore(session->core, &removal->chore);
	/* most are empty: the first slice is all, and nobody has to wait for the loop */
	removal_step(&removal->chore);
}

static void discard(struct ks_session *session)
{
	if (session->workspace_private && session->workspace)
		remove_workspace(session, false);
	ks_list_remove(&session->node);
	free_session(session);
}

void ks_session_forget(struct ks_session *session)
{
	ks_anonymous_forget(session);
	ks_list_remove(&session->node);
	free_session(session);
}

void ks_session_turn(struct ks_session *session)
{
	if (session->state != KS_SESSION_CLOSING || session->held)
		return;
	if (session->call_count > 0 || ks_files_busy(session) || !ks_list_empty(&session->gate.asked))
		return; /* they answer first */
	if (session->group) {
		ks_group_close(session->group);
		return; /* on_ended comes back here */
	}
	if (!ks_list_empty(&session->groups))
		return; /* so it does for those that have had their turn */
	if (session->workspace_private && session->workspace_fd >= 0)
		remove_workspace(session, true);
	else if (!session->workspace_private || !session->workspace)
		finish_closing(session);
}

void ks_session_close(struct ks_session *session, void (*closed)(void *arg), void *arg)
{
	struct ks_error err;

	if (closed) {
		session->closed = closed;
		session->closed_arg = arg;
	}
	if (session->state == KS_SESSION_OPENING && session->opened) {
		(void)ks_fail(&err, KS_E_CANCELLED, "the session was closed before it was open");
		finish_opening(session, &err);
	}
	if (session->state == KS_SESSION_CLOSING)
		return;
	session->state = KS_SESSION_CLOSING;
	ks_anonymous_forget(session);
	session->held = true; /* what ends at once must not free it under our hands */
	ks_files_close(session);
	ks_gate_close(session);
	ks_calls_cancel_session(session);
	ks_spares_drop(session);
	session->held = false;
	ks_session_turn(session);
}

struct ks_session *ks_session_find(struct ks_core *core, const char *id, bool opening_too, struct ks_error *err)
{
	for (struct ks_list *n = core->sessions.next; n != &core->sessions; n = n->next) {
		struct ks_session *session = KS_ENTRY(n, struct ks_session, node);
		const bool usable = session->state == KS_SESSION_OPEN || (opening_too && session->state == KS_SESSION_OPENING);
		if (usable && !session->throwaway && strcmp(session->id, id) == 0)
			return session;
	}
	(void)ks_fail_at(err, KS_E_UNKNOWN_HANDLE, "/sessionId", "no session %s is open", id);
	return NULL;
}
