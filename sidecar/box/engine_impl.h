/* engine_impl.h: what engine.c and box.c share, and nobody else may see. */
#pragma once

#include "base/list.h"
#include "box.h"
#include "launcher.h"
#include "msg.h"

struct ks_engine {
	uv_loop_t *loop;
	uv_poll_t control_poll;
	uv_timer_t insist_timer;
	bool attached, lost, is_root;
	int control;
	struct ks_filter filters[2][2]; /* by `untrusted`: allowlist and arguments; made on demand */
	pid_t launcher;
	struct ks_cgroups *cgroups;
	struct ks_cgroup_status limits; /* as boxes get them: see ks_engine_limits() */
	bool pids_by_rlimit;
	struct ks_list groups, boxes, outgoing;
	uint32_t last_number;
	unsigned alive; /* boxes not reaped */
	char fail_step[40];
	void (*on_lost)(void *arg);
	void *on_lost_arg;
	/* the launcher keeps a pointer to its copy */
	struct ks_launcher_config *launcher_config;
};

struct ks_group {
	struct ks_list node;
	struct ks_engine *engine;
	uint32_t number;
	const struct ks_group_ops *ops;
	void *arg;
	bool failed, closing;
};

/* Queues when the launcher's socket is full; takes the descriptors' content, not the descriptors. */
void ks_engine_send(struct ks_engine *engine, const struct ks_msg *msg, const int *fds, int nfds);

/* What the launcher said about a box; `pidfd` is given away or -1. */
void ks_box_made(struct ks_box *box, const struct ks_error *err, int pidfd);
void ks_box_reaped(struct ks_box *box);
struct ks_box *ks_box_find(struct ks_engine *engine, uint32_t number);
/* Its template died with their orders unread: nobody will answer for them. */
void ks_box_group_ended(struct ks_engine *engine, uint32_t group);
void ks_box_insist(struct ks_engine *engine);
/* The launcher is dead, so are they: each says so. */
void ks_box_lose_all(struct ks_engine *engine);
/* The same without a word. */
void ks_box_drop_all(struct ks_engine *engine);
void ks_engine_start_insisting(struct ks_engine *engine);
