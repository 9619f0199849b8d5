/* box.h: the sidecar's handle of one box: made by the template, claimed once for one command, gone when its last process has
 * been reaped. Every fact about the command comes from here. */
#pragma once

#include "claim.h"
#include "engine.h"
#include "escape.h"

struct ks_box;

struct ks_box_limits {
	int64_t memory_bytes, pids;
	int64_t cpus_milli; /* thousandths of a cpu; 0 = uncapped */
	int64_t file_bytes; /* RLIMIT_FSIZE; 0 = none */
	bool enforce;	    /* false: no cgroup is asked for */
	bool memory_files;  /* it may leave files in memory behind: ks_leaf_spend() */
	bool any_cpus;	    /* made ahead: its call may come with a cap of cpus, or none */
};

enum ks_end_how {
	KS_END_EXITED,	    /* the main process ended: wait_status */
	KS_END_EXEC_FAILED, /* the program could not be executed: exec_errno */
	KS_END_LOST,	    /* the whole box died: it was killed by us, or from outside */
};

struct ks_box_end {
	enum ks_end_how how;
	int wait_status; /* as in wait(2) */
	int exec_errno;
	bool killed_by_us, alone; /* alone: no process was left besides the main one */
	bool polled_oom, listener_lost;
	int64_t wall_us, user_us, system_us, max_rss_bytes; /* of the reaped; wall from the main process's start */
	struct ks_leaf_facts leaf;			     /* -1 where no cgroup tells */
};

struct ks_box_ops {
	void (*started)(void *arg); /* the program has been executed */
	void (*failed)(void *arg, const struct ks_error *err); /* instead of ended: nothing foreign ran */
	void (*ended)(void *arg, const struct ks_box_end *end);
	void (*gone)(void *arg); /* last: reaped; the handle is no more */
	void (*ready)(void *arg); /* all steps are done, it waits for its claim; may be NULL */
};

struct ks_box *ks_box_make(struct ks_group *group, const struct ks_box_limits *limits, const struct ks_box_ops *ops, void *arg,
			   struct ks_error *err);
/* A box that was made ahead: from now on it reports to the call that will claim it, and has that call's limits. Cannot be one that has
 * ended: of that its former owner has been told. -1 with err: it is still the former owner's. */
int ks_box_adopt(struct ks_box *box, const struct ks_box_limits *limits, const struct ks_box_ops *ops, void *arg, struct ks_error *err);
/* One whose main process may enter boxes of the group: as a box, but for its place in the session's pid namespace and that power;
 * no landlock confines it, and its memory is not polled. Needs a plan that keeps no capabilities. */
struct ks_box *ks_box_make_zygote(struct ks_group *group, const struct ks_box_limits *limits, const struct ks_box_ops *ops, void *arg,
				  struct ks_error *err);
/* What a zygote needs to bring a process into this box (base/join.h): `sock`, the other end of what its claim has as `join_fd`, and
 * files of the box's. How many descriptors, or -1 with err. All stay whose they are. */
int ks_box_entrance(struct ks_box *box, int sock, int ret_fds[1 + KS_LEAF_FDS], struct ks_error *err);
bool ks_box_is_ready(const struct ks_box *box);
/* Once. The descriptors stay the caller's. */
int ks_box_claim(struct ks_box *box, const struct ks_command_spec *spec, struct ks_error *err);
/* Its main process has said that it ends now, with this status, and it is the only one: the box is killed, and `ended` called as if it had.
 * The kernel takes the memory of the process apart before it tells of its end. False, and nothing is done: somebody else may be
 * there, or no cgroup counts its memory. */
bool ks_box_conclude(struct ks_box *box, int exit_code);
/* Of the main process, in our pid namespace; -1: it has not started, or is gone, or /proc is not of that namespace. */
int ks_box_main_pid(struct ks_box *box);
/* SIGKILL to everything inside; `ended` (how LOST) follows unless the end was known already. */
void ks_box_kill(struct ks_box *box);
/* To the main process only. 0 or -errno; -ESRCH before it has started and after it has ended. */
int ks_box_signal(struct ks_box *box, int signal_number);
/* The main process runs, and has not begun to end. */
bool ks_box_lives(struct ks_box *box);
/* No more callbacks; killed when it still runs, cleaned up behind the caller's back. */
void ks_box_release(struct ks_box *box);
/* What it has used so far; cpu time without a cgroup is that of the main process. */
void ks_box_usage(struct ks_box *box, struct ks_box_end *ret);
/* Processes and threads that are in it beside its main process and the threads of that; -1: not known. */
int64_t ks_box_others(struct ks_box *box);
/* From now on escape calls count anew. */
void ks_box_escape_begin(struct ks_box *box);
/* The first escape call that was refused, and how many. */
const struct ks_escape *ks_box_escape(const struct ks_box *box);
