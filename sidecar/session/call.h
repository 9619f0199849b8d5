/* call.h: one run: from the request to its result. Facts come from the box (box/box.h), never from what the code printed.
 *
 *   queued -> opening (a throw-away session, or a template of its own) -> starting (the box is made; the workspace is looked at)
 *          -> running -> ending (the rest of the output; the workspace is looked at again) -> done
 * */
#pragma once

#include "plugins/frames.h"
#include "session/digest.h"
#include "session/disk.h"
#include "session/files.h"
#include "session/pipe.h"
#include "session/session.h"
#include "workspace/diff.h"

#define KS_STDIN_QUEUE ((size_t)1 << 20) /* bytes of run/stdin that wait for the box */
#define KS_START_LIMIT_MS 10000
#define KS_BEGIN_LIMIT_MS 3000 /* an interpreter that was booted ahead, until it is ready, and until it begins */
#define KS_DEATH_GRACE_MS 1000 /* after a kill: then the answer leaves whatever the kernel does */

/* How a cell ended, by its own word unless DEAD. */
enum ks_cell_status { KS_CELL_DEAD, KS_CELL_OK, KS_CELL_ERROR, KS_CELL_INTERRUPTED };

enum ks_call_state { KS_CALL_QUEUED, KS_CALL_OPENING, KS_CALL_STARTING, KS_CALL_RUNNING, KS_CALL_ENDING, KS_CALL_DONE };

/* Moments of a call, in their order; what lies between two of them is the log's line call_timings. */
enum ks_moment {
	KS_AT_BEGIN,
	KS_AT_BOX,
	KS_AT_LOOKED,
	KS_AT_CLAIMED,
	KS_AT_STARTED,
	KS_AT_ENDED,
	KS_AT_DRAINED,
	KS_AT_DECIDED,
	KS_AT_REPLIED,
	KS_MOMENTS
};

struct ks_call;

struct ks_call_ops {
	void (*started)(void *arg);
	void (*output)(void *arg, enum ks_output which, const void *data, size_t len);
	void (*credit)(void *arg, uint64_t bytes); /* of the client; may be NULL */
	size_t (*room)(void *arg); /* bytes that may be read from the box now; SIZE_MAX when nobody holds it up */
	void (*input_wanted)(void *arg, const char *prompt, size_t len, bool password); /* of a cell that may ask; else NULL */
	void (*done)(void *arg);   /* ks_call_outcome() is complete; last */
	void (*failed)(void *arg, const struct ks_error *err); /* instead: no foreign code ran; last */
};

/* A stream of the box's output: the head that is kept, and how much there was. */
struct ks_output_log {
	struct ks_buf kept;
	struct ks_digest digest; /* of most of `kept` while it grows, of all of it at the end when that is a blob */
	uint64_t total;
	char blob[33]; /* not "": the kept bytes live there */
};

enum ks_fault_type {
	KS_FAULT_NONE, KS_FAULT_CANCELLED, KS_FAULT_TIMEOUT, KS_FAULT_OOM, KS_FAULT_ESCAPE_BLOCKED, KS_FAULT_EXEC_FAILED,
	KS_FAULT_DISK, KS_FAULT_KILLED,
};

struct ks_outcome {
	int exit_code;
	int signal; /* 0 none */
	int64_t duration_us;
	enum ks_fault_type fault;
	char message[320], syscall[32], process[20], limit[24];
	struct ks_box_end end;
	bool truncated;
	const char *channel; /* "ok", "closed", "corrupt", "limit" */
	const char *start_kind;
	int64_t start_us;
};

struct ks_call_pipe {
	int fd;
	uv_poll_t poll;
	bool watched;
};

struct ks_image_verdict {
	const void *data;   /* where the frame has it */
	const char *reason; /* NULL: it is kept; a constant */
	char *again;	    /* instead, or NULL */
	size_t len;
};

/* A frame whose images are being looked at. */
struct ks_call_images {
	bool busy, ended; /* ended: the end of the call waits */
	struct kern_frame frame;
	size_t next, count;
	struct ks_image_verdict verdicts[KS_RESULT_MIMES];
	struct ks_task task;
};

struct ks_call {
	struct ks_list node;	     /* core->running, queued, finished or forgotten */
	bool forgotten;		     /* it only waits for what is left of it */
	struct ks_list session_node; /* session->calls */
	struct ks_core *core;
	struct ks_session *session;
	const void *owner; /* the session whose close ends output/read; NULL of a throw-away call */
	struct ks_group *own_group; /* start: "cold", and of a setup */
	uint64_t ticket; /* of the session's gate */
	enum ks_call_state state;
	char id[65];
	const struct ks_call_ops *ops;
	void *arg;
	const struct ks_run_params *params; /* the caller's, valid until done or failed */
	bool throwaway;
	/* kernel.h: NULL; else the process of a kernel, or (cell) one of its cells */
	struct ks_kernel *kernel;
	bool cell;
	uint32_t number;  /* of the cell, on the channel */
	int64_t execution;
	int stops;	  /* what was done to end it: SIGINT, SIGINT, SIGKILL */
	enum ks_cell_status cell_status;
	struct ks_box_end usage_before;
	bool is_setup; /* has the gate, and a template of its own */
	/* what will run */
	const struct ks_language *language; /* NULL: run/argv */
	const char *code;
	size_t code_len;
	const char *stdin_data;
	size_t stdin_len;
	/* what it may do */
	struct ks_box_limits limits;
	int64_t timeout_ms, max_output_bytes;
	bool track_files;
	/* the box and what is connected to it */
	struct ks_box *box;
	struct ks_spare *spare; /* that it waits for; it becomes `box` */
	bool from_spare, awaits_box; /* the box was made ahead; the claim waits until it is ready */
	bool parked, begun; /* its interpreter has been booted ahead, and has said that it begins */
	struct ks_parking *parking; /* of what is no call yet but such an interpreter: call_park.c */
	struct ks_escape escape; /* as it was when the box went */
	bool claimed;
	struct ks_pipe *out[2]; /* NULL: closed, or handed on */
	struct ks_call_pipe in, channel;
	struct ks_buf in_queue; /* from in_done on it waits to be written */
	size_t in_done;
	bool in_eof;
	uv_timer_t timer;
	int handles; /* uv handles that are not closed */
	/* what came of it */
	struct ks_output_log log[2];
	struct ks_frames frames;
	struct ks_results results;
	struct ks_call_images images;
	bool channel_lost; /* the process lives on without it */
	int sender;	   /* of the newest datagram: a process, as the kernel attests */
	int last_word;	   /* the status that its main process says it ends with; -1: nothing yet */
	bool cancelled, timed_out, box_ended, box_gone, overdue, decided;
	int64_t made_us, started_us, finished_us, moments[KS_MOMENTS];
	int looks; /* at the workspace that have to end before the call goes on */
	struct ks_disk disk;
	bool disk_full;
	struct ks_look look;
	struct ks_view *before, *after;
	struct ks_diff *diff;
	struct ks_chore diff_chore;
	struct ks_changes changes;
	struct ks_notes notes;
	struct ks_outcome outcome;
};

/* `session` NULL: a throw-away one is opened when the call's turn comes. The call waits in the queue until the next
 * ks_calls_start_queued(). Everything that can be said no to is said here, or by `failed`. `code` and `stdin_data` must live as long as
 * params. */
int ks_call_new(struct ks_core *core, struct ks_session *session, const struct ks_run_params *params, bool is_argv, const char *code,
		size_t code_len, const char *stdin_data, size_t stdin_len, const struct ks_call_ops *ops, void *arg,
		struct ks_call **ret, struct ks_error *err);
/* Instead of letting it start: it is as if it had run, and done nothing. Without a callback; ks_call_finish() follows. */
void ks_call_settle(struct ks_call *call);
/* Instead of letting it start: without a callback. */
void ks_call_drop(struct ks_call *call);
void ks_call_cancel(struct ks_call *call);
/* There is room again for output. */
void ks_call_resume(struct ks_call *call);
int ks_call_stdin(struct ks_call *call, const void *data, size_t len, bool eof, struct ks_error *err);
int ks_call_signal(struct ks_call *call, int signal_number, struct ks_error *err);
/* After `done`, when the caller has written its answer (it may take its time): the call leaves its session. The output stays for
 * output/read for a while. */
void ks_call_finish(struct ks_call *call);
/* A running or finished one; NULL with err at /runId (unknown_handle, or gone). */
struct ks_call *ks_call_find(struct ks_core *core, const char *id, bool finished_too, struct ks_error *err);
const char *ks_fault_name(enum ks_fault_type fault);

/* ---- for kernel.c ---- */
/* What comes out of the pipe is this call's. */
void ks_call_own_output(struct ks_call *call, int which, struct ks_pipe *pipe);
int ks_call_start_host(struct ks_kernel *kernel, const struct ks_call_ops *ops, struct ks_call **ret, struct ks_error *err);
int ks_call_new_cell(struct ks_kernel *kernel, const struct ks_run_params *params, const char *code, size_t code_len,
		     const struct ks_call_ops *ops, void *arg, struct ks_call **ret, struct ks_error *err);
#define KS_CELL_FDS 4 /* stdout, stderr, code, and stdin or -1 */
int ks_call_connect_input(struct ks_call *call, int *ret_theirs, struct ks_error *err); /* -1 where it has none */
void ks_call_feed(struct ks_call *call); /* writes what fits of the input that it has been given */
/* The cell says that it is done. */
void ks_call_cell_ended(struct ks_call *cell, int exit_code);
/* Its process has ended. */
void ks_call_cell_lost(struct ks_call *cell, const struct ks_call *host);
/* A host call whose end has been seen: its memory goes. */
void ks_call_retire(struct ks_call *host);

/* ---- for core.c and session.c ---- */
void ks_calls_start_queued(struct ks_core *core);
void ks_calls_session_opened(struct ks_session *session); /* those that came before it was */
size_t ks_calls_count(const struct ks_session *session); /* runs and cells; idle kernels are neither */
/* Calls of the session that came before that number of its gate, and have not ended. */
bool ks_calls_before(const struct ks_session *session, uint64_t number);
void ks_calls_cancel_session(struct ks_session *session);
void ks_calls_cancel_queued(struct ks_core *core); /* those without a session */
void ks_calls_forget_session(struct ks_session *session); /* their output goes with it */
void ks_calls_expire(struct ks_core *core, int64_t now_us);
void ks_calls_forget_all(struct ks_core *core);
