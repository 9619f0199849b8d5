/* engine.h: the sidecar's side of the sandbox core: the launcher, the session groups below it, and what this host enforces.
 * One thread, one libuv loop. Boxes are in box.h. */
#pragma once

#include <uv.h>

#include "cgroup.h"
#include "plan.h"

struct ks_engine;
struct ks_group;

struct ks_engine_config {
	char *arguments; /* this process's argv and environment block: wiped in the launcher */
	size_t arguments_len;
	const char *fail_step; /* test hook: every plan gets it; NULL none */
};

/* Forks the launcher: early, with one thread, before plugins and secrets are in memory. */
int ks_engine_start(const struct ks_engine_config *config, struct ks_engine **ret, struct ks_error *err);
/* `on_lost`: the launcher has died, and with it every box; nothing can be started any more. */
int ks_engine_attach(struct ks_engine *engine, uv_loop_t *loop, void (*on_lost)(void *arg), void *arg, struct ks_error *err);
/* Kills everything and removes what is ours on the host; no callback comes any more. Run the loop once more to close
 * handles, then free. */
void ks_engine_stop(struct ks_engine *engine);
void ks_engine_free(struct ks_engine *engine);

bool ks_engine_is_root(const struct ks_engine *engine);
/* Like ks_cgroups_status(), but pids are always held by the kernel: where there is no cgroup for them by RLIMIT_NPROC, in a user
 * namespace of each box's own. Refused forks are not counted then. */
const struct ks_cgroup_status *ks_engine_limits(const struct ks_engine *engine);
/* See ks_cgroups_limit_all(). */
int ks_engine_limit_all(struct ks_engine *engine, int64_t memory_bytes, int64_t pids, struct ks_error *err);
/* The two filters of a template, as a plan carries them. NULL with err. */
const struct ks_filter *ks_engine_filters(struct ks_engine *engine, bool untrusted, struct ks_error *err);
/* Does every box make a user namespace of its own? See ks_engine_limits(). */
bool ks_engine_box_user_ns(const struct ks_engine *engine);
const char *ks_engine_fail_step(const struct ks_engine *engine);
/* Boxes whose last process has not been reaped yet. */
unsigned ks_engine_boxes(const struct ks_engine *engine);

struct ks_group_ops {
	void (*ready)(void *arg, int memory_fd); /* root of the plan's memory workspace, to be kept; -1: it has none */
	void (*failed)(void *arg, const struct ks_error *err); /* instead of ready, or later when the group dies by itself */
	void (*ended)(void *arg); /* last: every process has been reaped; the group is no more */
};

/* Takes nothing of the plan; it may be freed. NULL with err. */
struct ks_group *ks_group_open(struct ks_engine *engine, const struct ks_plan *plan, const struct ks_group_ops *ops, void *arg,
			       struct ks_error *err);
/* The memory workspace of the group's plan, once more: into the `sock` of a ks_plan_sent(). */
void ks_group_send_memory(struct ks_group *group, int sock);
/* Kills what runs in it; `ended` follows. */
void ks_group_close(struct ks_group *group);
/* Is each of its boxes still somebody's? Else processes of one that was released may be there. */
bool ks_group_is_quiet(struct ks_group *group);
