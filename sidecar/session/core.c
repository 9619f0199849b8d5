#include "session/core.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "session/anonymous.h"
#include "session/call.h"
#include "session/files.h"
#include "session/session.h"
#include "session/spares.h"

/* ---- chores ---- */

static void on_idle(uv_idle_t *idle)
{
	struct ks_core *core = idle->data;
	struct ks_list turn;

	/* One slice of each in turn; the loop looks at its descriptors between two turns. A step may end any other chore. */
	ks_list_init(&turn);
	ks_list_move_all(&core->chores, &turn);
	while (!ks_list_empty(&turn)) {
		struct ks_chore *chore = KS_ENTRY(turn.next, struct ks_chore, node);
		ks_list_remove(&chore->node);
		ks_list_append(&core->chores, &chore->node);
		chore->step(chore); /* removes itself from the list when it is done */
	}
	if (ks_list_empty(&core->chores))
		(void)uv_idle_stop(idle);
}

void ks_core_add_chore(struct ks_core *core, struct ks_chore *chore)
{
	ks_list_append(&core->chores, &chore->node);
	(void)uv_idle_start(&core->slicer, on_idle);
}

/* What dead sidecars left, removed while we have nothing better to do. */
struct sweep {
	struct ks_chore chore;
	struct ks_core *core;
};

static void sweep_step(struct ks_chore *chore)
{
	struct sweep *sweep = (struct sweep *)(void *)chore;
	struct ks_error err;
	int rc = ks_state_sweep(sweep->core->state, KS_SLICE_US, &err);

	if (rc == 0)
		return;
	if (rc < 0)
		ks_log(KS_LOG_WARN, "sweep_incomplete", "%s", err.text);
	ks_list_remove(&chore->node);
	free(sweep);
}

static void sweep_drop(struct ks_chore *chore)
{
	free(KS_ENTRY(chore, struct sweep, chore));
}

static void start_sweep(struct ks_core *core)
{
	struct sweep *sweep = calloc(1, sizeof(*sweep));

	if (!sweep)
		return;
	*sweep = (struct sweep){ .chore = { .step = sweep_step, .drop = sweep_drop }, .core = core };
	ks_core_add_chore(core, &sweep->chore);
}

/* ---- open ---- */

#define COARSE_MS 5000
/* A build for tests may look often, and an hour ahead: what goes when nobody has called for a while goes at once. */
#define HASTE_MS 100
#define HASTE_US (3600 * 1000000LL)

static bool in_haste(void)
{
	return KS_TEST_HOOKS && getenv("KERN_TEST_HASTE");
}

static void on_coarse(uv_timer_t *timer)
{
	struct ks_core *core = timer->data;
	const int64_t now_us = ks_now_us() + (in_haste() ? HASTE_US : 0);

	ks_blobs_sweep(core->blobs, now_us);
	ks_calls_expire(core, now_us);
	ks_files_idle(core, now_us);
	ks_spares_idle(core, now_us);
	ks_anonymous_idle(core, now_us);
}

int ks_core_open(const struct ks_core_config *config, struct ks_core **ret, struct ks_error *err)
{
	struct ks_core *core = calloc(1, sizeof(*core));

	if (!core)
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	core->loop = config->loop;
	core->engine = config->engine;
	if (!core->engine)
		core->engine_error = *config->engine_error;
	core->worker_program = config->worker_program;
	core->one_call = config->one_call;
	core->max_runs = KS_RUNS_DEFAULT;
	core->max_queued = KS_QUEUED_DEFAULT;
	ks_list_init(&core->sessions);
	ks_list_init(&core->running);
	ks_list_init(&core->queued);
	ks_list_init(&core->finished);
	ks_list_init(&core->forgotten);
	ks_list_init(&core->chores);
	ks_list_init(&core->kernels);
	ks_list_init(&core->anonymous.sessions);
	if (ks_blobs_new(KS_BLOB_BYTES_DEFAULT, &core->blobs, err) < 0 ||
	    ks_plugins_load(config->plugin_dirs, &core->plugins, err) < 0 || ks_state_open(&core->state, err) < 0) {
		ks_plugins_free(core->plugins);
		ks_blobs_free(core->blobs);
		free(core);
		return -1;
	}
	(void)uv_idle_init(core->loop, &core->slicer);
	(void)uv_timer_init(core->loop, &core->coarse);
	(void)uv_timer_init(core->loop, &core->spare_timer);
	core->slicer.data = core->coarse.data = core->spare_timer.data = core;
	const unsigned every_ms = in_haste() ? HASTE_MS : COARSE_MS;
	(void)uv_timer_start(&core->coarse, on_coarse, every_ms, every_ms);
	uv_unref((uv_handle_t *)&core->coarse);
	start_sweep(core);
	*ret = core;
	return 0;
}

void ks_core_make_handle(struct ks_core *core, const char *prefix, char ret[65])
{
	(void)snprintf(ret, 65, "%s-%" PRIu64, prefix, ++core->last_number);
}

/* ---- close ---- */

void ks_core_turn(struct ks_core *core)
{
	ks_calls_start_queued(core);
	if (core->drained && core->running_count == 0 && core->queued_count == 0) {
		void (*drained)(void *arg) = core->drained;
		core->drained = NULL;
		drained(core->drained_arg);
		return;
	}
	if (!core->closing || !ks_list_empty(&core->sessions) || !core->closed)
		return;
	void (*closed)(void *arg) = core->closed;
	core->closed = NULL;
	closed(core->closed_arg);
}

void ks_core_drain(struct ks_core *core, void (*drained)(void *arg), void *arg)
{
	core->drained = drained;
	core->drained_arg = arg;
	ks_core_turn(core);
}

void ks_core_close(struct ks_core *core, void (*closed)(void *arg), void *arg)
{
	core->closing = true;
	core->closed = closed;
	core->closed_arg = arg;
	for (struct ks_list *n = core->sessions.next, *next; n != &core->sessions; n = next) {
		next = n->next;
		ks_session_close(KS_ENTRY(n, struct ks_session, node), NULL, NULL);
	}
	ks_calls_cancel_queued(core);
	ks_core_turn(core);
}

void ks_core_free(struct ks_core *core)
{
	struct ks_error err;

	/* first, as tasks may be parts of calls */
	for (struct ks_list *n = core->sessions.next; n != &core->sessions; n = n->next)
		ks_files_free(KS_ENTRY(n, struct ks_session, node));
	for (struct ks_list *n = core->sessions.next; n != &core->sessions; n = n->next)
		ks_spares_free(KS_ENTRY(n, struct ks_session, node));
	ks_calls_forget_all(core);
	while (!ks_list_empty(&core->sessions))
		ks_session_forget(KS_ENTRY(core->sessions.next, struct ks_session, node));
	while (!ks_list_empty(&core->chores)) { /* the state directory goes as a whole, below */
		struct ks_chore *chore = KS_ENTRY(core->chores.next, struct ks_chore, node);
		ks_list_remove(&chore->node);
		if (chore->drop)
			chore->drop(chore);
	}
	uv_close((uv_handle_t *)&core->slicer, NULL);
	uv_close((uv_handle_t *)&core->coarse, NULL);
	uv_close((uv_handle_t *)&core->spare_timer, NULL);
	int rc = 0;
	for (int64_t until = ks_now_us() + 500000; rc == 0 && ks_now_us() < until;)
		rc = ks_state_close_step(core->state, 50000, &err); /* what is left, the next start sweeps */
	if (rc < 0)
		ks_log(KS_LOG_WARN, "state_left", "%s", err.text);
	ks_state_free(core->state);
	ks_blobs_free(core->blobs);
	ks_plugins_free(core->plugins);
}
