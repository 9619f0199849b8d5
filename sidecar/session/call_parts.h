/* call_parts.h: what the files of a call share: call.c its life, call_start.c its start, call_claim.c what its box is told, call_io.c pipes
 * and result channel, call_files.c the two looks at the workspace, call_images.c images of results, call_cell.c kernels, call_park.c
 * interpreters that wait, calls.c all calls, outcome.c what all of it means. */
#pragma once

#include "session/call.h"

#define KS_RESULT_FD 3 /* of the result channel, in the box */

/* ---- call.c ---- */
bool ks_call_is_host(const struct ks_call *call); /* the process of a kernel: no request, no deadline, no turn to wait for */
extern const struct ks_box_ops ks_call_box_ops;
/* The rest of the output has been read, or waits for an image; also when what it waited for has come. */
void ks_call_end(struct ks_call *call);
void ks_call_fail(struct ks_call *call, const struct ks_error *err);
/* Out of the running ones; the session may now end, and another call may start. */
void ks_call_leave(struct ks_call *call);
/* It is in no list, and nobody asks for it any more. */
void ks_call_let_go(struct ks_call *call);
void ks_call_free_if_over(struct ks_call *call); /* if it is forgotten, and nothing of it is left */
void ks_call_forget(struct ks_call *call); /* a finished one */
/* Nothing is asked of the loop any more. */
void ks_call_stop(struct ks_call *call);

/* ---- calls.c ---- */
int ks_call_check(struct ks_core *core, const struct ks_session *session, const struct ks_run_params *params, bool is_argv,
		  const struct ks_language **ret_language, struct ks_error *err);
/* In the queue. Its handle is the request's, or made of `prefix`. */
struct ks_call *ks_call_alloc(struct ks_core *core, struct ks_session *session, const struct ks_run_params *params,
			      const struct ks_call_ops *ops, void *arg, const char *prefix, struct ks_error *err);

/* This moment, for the log. */
void ks_call_note(struct ks_call *call, enum ks_moment moment);
/* Files, disk: each that was wanted, at the same time; ks_call_look_done() for each that has ended. */
void ks_call_look_at(struct ks_call *call, bool before);
void ks_call_started(void *call);
void ks_call_disk_measured(struct ks_disk *disk);
void ks_call_disk_full(struct ks_disk *disk);

/* ---- call_start.c ---- */
struct ks_box_limits ks_call_session_limits(const struct ks_session *session);
/* Into the session: its limits, and what the request says otherwise. */
void ks_call_inherit(struct ks_call *call);
void ks_call_start(struct ks_call *call);
void ks_call_make_box(struct ks_call *call, struct ks_group *group);
void ks_call_claim_now(struct ks_call *call); /* everything that it waited for is there */
/* The runner has its words. */
void ks_call_begun(struct ks_call *call);
void ks_call_box_ready(void *call);
/* What it waited for has become its box, or there is none (call->box NULL). */
void ks_call_spare_ready(struct ks_call *call);
/* What was made ahead has died before it ran anything: another box, true. False: the call has to bear it. */
bool ks_call_replace_spare(struct ks_call *call);

/* ---- call_claim.c ---- */
int ks_call_claim(struct ks_call *call, struct ks_error *err);
/* The words, files and variables of the plugin; nothing without a language. Free them also when it fails. */
int ks_call_prepare(struct ks_call *call, struct ks_prepared *prepared, struct ks_error *err);

/* ---- call_park.c: interpreters that have been booted before their call comes ---- */
/* Could it be served by one? */
bool ks_call_can_park(const struct ks_call *call);
#define KS_PARK_REASON 320 /* bytes */

enum ks_park_word {
	KS_PARK_READY,
	KS_PARK_FAILED, /* a module cannot be imported */
	KS_PARK_UNABLE, /* it cannot do what is asked of a zygote */
	KS_PARK_SILENT, /* it has ended, or is no runner */
};
/* What will be connected to one, in the shape of a call that has no request. NULL: this session cannot have one. `done` comes only after
 * ks_call_park(), with a sentence unless it is ready. */
struct ks_call *ks_call_new_parked(struct ks_session *session, const struct ks_language *language, bool forks,
				   void (*done)(void *arg, enum ks_park_word word, const char *why), void *arg);
/* Boots it, in a box that is ready; or lets one that was forked come in over `join_fd`, which stays the caller's. */
int ks_call_park(struct ks_call *parked, struct ks_box *box, int join_fd, struct ks_error *err);
/* Its processes have ended: why, if it has said so. FAILED, UNABLE or SILENT. */
enum ks_park_word ks_call_park_last_word(const struct ks_call *parked, char ret_why[KS_PARK_REASON]);
uint32_t ks_call_park_flags(const struct ks_call *parked); /* KERN_RUN_* */
int ks_call_join_fd(const struct ks_call *call); /* -1: it is executed, as is every call that is not parked */
/* It is over for this; its box is somebody else's, or released. */
void ks_call_unpark_done(struct ks_call *parked);
/* The box is the call's, and pipes and channel with it if there is an interpreter in it. */
int ks_call_adopt(struct ks_call *call, struct ks_box *box, struct ks_call *parked, struct ks_error *err);
/* Tells the runner what to run. */
int ks_call_unpark(struct ks_call *call, struct ks_error *err);

/* ---- the others ---- */
int ks_call_connect(struct ks_call *call, int ret_stdio[3], int *ret_result, struct ks_error *err); /* the box's ends */
void ks_call_watch(struct ks_call *call);
void ks_call_watch_channel(struct ks_call *call);
void ks_call_look_whether_begun(struct ks_call *call); /* ks_call_begun() may follow at once */
void ks_call_drain(struct ks_call *call); /* what lies in the pipes and the channel now */
void ks_call_disconnect(struct ks_call *call);
void ks_call_io_free(struct ks_call *call);
void ks_call_handle_closed(uv_handle_t *handle);
/* Starts looking; ks_call_look_done() follows, perhaps at once. */
void ks_call_look(struct ks_call *call, bool before);
void ks_call_look_done(struct ks_call *call);
/* True: the frame waits for a worker; ks_call_frame_checked() and ks_call_channel_free() follow, perhaps at once. */
bool ks_call_check_images(struct ks_call *call, const struct kern_frame *frame);
void ks_call_frame_checked(struct ks_call *call, const struct kern_frame *frame);
void ks_call_channel_free(struct ks_call *call);
/* For struct ks_results; `arg` is the call whose channel it is. */
const char *ks_call_image_verdict(void *arg, const char *mime, const void *data, size_t len, char **ret_data, size_t *ret_len);
void ks_call_images_free(struct ks_call *call);
void ks_call_files_stop(struct ks_call *call); /* frees all but `changes` */
void ks_outcome_decide(struct ks_call *call);
