/* core.h: what all sessions of one sidecar share: the sandbox engine, plugins, blobs, the private state directory, the limits, and
 * the queue of runs. Knows no protocol connection: what happens is told through callbacks. */
#pragma once

#include <uv.h>

#include "base/list.h"
#include "box/engine.h"
#include "plugins/loader.h"
#include "proto/messages.h"
#include "session/blob.h"
#include "workspace/private.h"

#define KS_RUNS_DEFAULT 64
#define KS_RUNS_MAX 256
#define KS_QUEUED_DEFAULT 1024
#define KS_QUEUED_MAX 65536
#define KS_SESSIONS_MAX 256	  /* open ones; throw-away calls have one each */
#define KS_FINISHED_MAX 256	  /* runs whose output is kept for output/read */
#define KS_FINISHED_BYTES ((size_t)16 << 20)
#define KS_GONE_MAX 512	  /* runs that are remembered when their output went */
#define KS_SLICE_US 2000 /* what a tree walk may take of the loop in one turn */

struct ks_session;
struct ks_call;
struct ks_kernel;

/* Work that goes on in slices while the loop has other things to do, too. */
struct ks_chore {
	struct ks_list node;
	void (*drop)(struct ks_chore *chore); /* frees it, unfinished; NULL: somebody else does */
	void (*step)(struct ks_chore *chore); /* one slice of KS_SLICE_US; when done it takes the node out of the list */
};

struct ks_core {
	uv_loop_t *loop;
	struct ks_engine *engine; /* NULL: this host cannot make boxes, engine_error says why */
	struct ks_error engine_error;
	struct ks_plugins *plugins;
	struct ks_blobs *blobs;
	struct ks_state *state;
	int64_t max_runs, max_queued;
	struct ks_list sessions; /* struct ks_session */
	struct ks_list running, queued, finished, forgotten; /* struct ks_call */
	struct ks_list kernels; /* struct ks_kernel */
	size_t kernel_count;
	int64_t running_count, queued_count;
	size_t finished_count, finished_bytes, gone_next;
	char gone[KS_GONE_MAX][65];
	struct ks_list chores;
	uv_idle_t slicer;
	uv_timer_t coarse; /* expiry of blobs and outputs */
	const char *worker_program;
	uv_timer_t spare_timer; /* spares.h */
	unsigned spare_count, parked_count; /* these with an interpreter among those */
	bool spares_low; /* half of those of a pool have been taken since they were made */
	struct {
		struct ks_list sessions; /* struct ks_session, by their anonymous.node */
		unsigned count, target, failures;
		const struct ks_language *language; /* of the last call without a session; NULL: it had none */
		int64_t used_us;
	} anonymous; /* anonymous.h */
	size_t alone_count; /* workers of long file operations */
	size_t snapshot_bytes; /* looks.h */
	bool closing, starting, one_call;
	uint64_t last_number; /* for handles that we choose */
	struct {
		uint64_t calls, faults, starts_failed, leaked;
		uint64_t walks; /* of a workspace, for `files` */
	} counters;
	/* A session that ended by itself. */
	void (*session_closed)(void *arg, const char *session_id, const char *reason);
	void *session_closed_arg;
	/* A kernel changed its state; bytes that belong to none of its cells. */
	void (*kernel_state)(void *arg, const struct ks_kernel *kernel);
	void (*kernel_output)(void *arg, const struct ks_kernel *kernel, enum ks_output which, const char *data, size_t len);
	size_t (*kernel_room)(void *arg); /* bytes of them that there is room for; then ks_kernels_resume() */
	void *kernel_arg;
	void (*closed)(void *arg); /* see ks_core_close */
	void *closed_arg;
	void (*drained)(void *arg); /* see ks_core_drain */
	void *drained_arg;
};

struct ks_core_config {
	uv_loop_t *loop;
	struct ks_engine *engine; /* attached already; NULL with engine_error */
	const struct ks_error *engine_error;
	const char *const *plugin_dirs;
	const char *worker_program; /* absolute path of kern-worker; must live on */
	bool one_call; /* no other will come: nothing is made ahead that is not asked for */
};

int ks_core_open(const struct ks_core_config *config, struct ks_core **ret, struct ks_error *err);
/* Closes every session; running calls answer `cancelled` first. `closed` is called when all is gone. */
void ks_core_close(struct ks_core *core, void (*closed)(void *arg), void *arg);
/* `drained` is called when no run is running or waiting. */
void ks_core_drain(struct ks_core *core, void (*drained)(void *arg), void *arg);
/* After the loop has ended, or at once in an emergency: frees without waiting for anybody. */
void ks_core_free(struct ks_core *core);

void ks_core_add_chore(struct ks_core *core, struct ks_chore *chore);
/* "p-1", "s-2": for a handle that the client left to us. */
void ks_core_make_handle(struct ks_core *core, const char *prefix, char ret[65]);
/* Something ended: starts what waits, and finishes a close. */
void ks_core_turn(struct ks_core *core);
