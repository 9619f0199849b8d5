/* setup.h: session/setup: a command with the network on, in a box of its own, that nothing else of the session runs beside.
 *
 *   waiting (for the gate) -> staging (a copy of the packages, beside them) -> running -> swapping (they take their place)
 *           -> reopening (the session's template gets them) -> storing (in the cache) -> clearing -> done
 *
 * The same again is taken from the cache: no command runs then.
 *
 * What it installs is there whole, or not at all: when the command fails, is cancelled or dies, .deps is as it was. */
#pragma once

#include "session/call.h"
#include "session/cache.h"
#include "session/files.h"
#include "session/install.h"

#define KS_SETUP_TIMEOUT_MS 120000 /* at least, when the request says nothing */

enum ks_setup_state {
	KS_SETUP_WAITING,
	KS_SETUP_STAGING,
	KS_SETUP_RUNNING,
	KS_SETUP_SWAPPING,
	KS_SETUP_REOPENING,
	KS_SETUP_BACK,
	KS_SETUP_STORING,
	KS_SETUP_CLEARING,
	KS_SETUP_DONE,
};

struct ks_setup {
	struct ks_exclusive exclusive; /* its session: NULL before it has asked */
	struct ks_session *session;
	enum ks_setup_state state;
	char id[65]; /* of its run */
	const struct ks_setup_params *params;
	enum ks_installer installer;
	struct ks_buf script; /* what the shell runs */
	char *words[10];      /* of its command line */
	struct ks_run_params run;
	const struct ks_call_ops *ops; /* of the owner: started, output, room, then done or failed */
	void *arg;
	struct ks_task task;
	struct ks_deps_stage stage;
	struct ks_deps before; /* as the session knew them */
	struct ks_call *call; /* from RUNNING on */
	char key[KS_CACHE_KEY]; /* "": not for the cache */
	bool cancelled, fresh, cached; /* fresh: there were no packages before */
	struct ks_error error; /* reason set: it ends with `failed` */
};

/* Asks for the session's gate. -1 with err: nothing has happened, and no callback comes. `params` must live as long as it does. */
int ks_setup_new(struct ks_session *session, const struct ks_setup_params *params, const struct ks_call_ops *ops, void *arg,
		 struct ks_setup **ret, struct ks_error *err);
/* May call `failed` at once. */
void ks_setup_start(struct ks_setup *setup);
void ks_setup_cancel(struct ks_setup *setup);
/* After `done`, when the answer has been written; or instead of ks_setup_start(). Lets the session go on, and frees it, as `failed`
 * has done. */
void ks_setup_finish(struct ks_setup *setup);
