/* kernel.h: kernels and shells, which are one thing with two faces: an interpreter that lives in a box of its own and runs one cell after
 * the other. Its process is a call without a request (the host call, which never ends by itself); each cell is a call that makes no box
 * but is handed to that process over the result channel (plugins/README.md), with pipes of its own for its output. A shell of mode pipes
 * is a kernel of bash or sh whose cells are commands; one of mode pty has no cells, only input and output (shell.c). */
#pragma once

#include "session/call.h"

#define KS_KERNELS_MAX 64	  /* of a sidecar, shells included */
#define KS_KERNEL_CELLS_MAX 64	  /* that wait in one kernel */
#define KS_KERNEL_INSIST_MS 500	  /* between the first SIGINT, the second, and SIGKILL */
#define KS_KERNEL_LOST_MS 200	  /* a process without its channel has so long to end */
#define KS_KERNEL_FRESH_US 2000	  /* so long after the end of a cell its usage is still that of the process */
#define KS_KERNEL_CODE_INLINE ((size_t)32 << 10) /* longer code goes beside the message */
#define KS_PROMPT_MAX 4096	  /* bytes that a cell shows when it asks for input */
#define KS_KERNEL_TAILS 16	  /* pipes of former cells that something still holds open; the oldest go */

enum ks_kernel_state { KS_KERNEL_STARTING, KS_KERNEL_IDLE, KS_KERNEL_BUSY, KS_KERNEL_DEAD };

/* The pipe of a cell that has ended: what is written to it now belongs to no cell. */
struct ks_kernel_tail {
	struct ks_list node;
	struct ks_kernel *kernel;
	int which;
	struct ks_pipe *pipe;
};

struct ks_kernel {
	struct ks_list node; /* core->kernels */
	struct ks_core *core;
	struct ks_session *session;
	char id[65];
	bool is_shell, pty;
	const struct ks_language *language; /* of a pty: the one whose plugin brings kern-pty */
	char *program; /* of a shell whose words name one; else the session's interpreter */
	enum ks_kernel_state state;
	struct ks_run_params params; /* what its process is started with; env and cwd are ours */
	struct ks_call *host;	     /* NULL: it has no process */
	struct ks_call *cell;	     /* at work */
	uint32_t cells;		     /* started so far, in any process of this id: the number of the last one */
	int64_t executions;	     /* of this process */
	struct {
		struct ks_pipe *pipes[2]; /* NULL: not made */
		int theirs[2];
		bool same; /* not these, but those of the last cell: no other process can hold them */
	} next; /* of the next cell */
	int64_t others; /* ks_box_others() when it was ready */
	struct ks_box_end usage; /* of this process, as it was at... */
	int64_t seen_us;
	int64_t timeout_ms;
	struct ks_list tails; /* struct ks_kernel_tail, oldest first */
	size_t tail_count;
	size_t users; /* cells, waiting or at work */
	bool forgotten; /* freed with its last user */
	/* Who waits: for the start or restart, for the end. */
	void (*opened)(void *arg, struct ks_kernel *kernel, const struct ks_error *err);
	void *opened_arg;
	void (*closed)(void *arg);
	void *closed_arg;
	bool restarting, was_ready, takes_code; /* the last: in the message */
	struct ks_outcome death; /* of the last process */
};

/* What kernel/open and shell/open ask for; it lives until ks_kernel_open() has returned. */
struct ks_kernel_spec {
	const char *id, *cwd; /* may be NULL */
	const struct ks_pairs *env;
	int64_t timeout_ms, memory_mb;
	bool is_shell;
	const char *language; /* of a kernel */
	bool pty; /* of a shell, as the rest */
	const struct ks_strings *argv; /* none: bash, else sh */
	int64_t rows, cols;
};

/* Checks, and starts the process; `opened` follows, once. */
int ks_kernel_open(struct ks_session *session, const struct ks_kernel_spec *spec,
		   void (*opened)(void *arg, struct ks_kernel *kernel, const struct ks_error *err), void *arg, struct ks_kernel **ret,
		   struct ks_error *err);
/* Kills it; a cell at work answers first. `closed` (may be NULL) when it is gone. */
void ks_kernel_close(struct ks_kernel *kernel, void (*closed)(void *arg), void *arg);
/* The same id and settings, a new process. */
int ks_kernel_restart(struct ks_kernel *kernel, void (*opened)(void *arg, struct ks_kernel *kernel, const struct ks_error *err), void *arg,
		      struct ks_error *err);
/* SIGINT, if a cell (with that run id, unless NULL) is at work: was one? */
bool ks_kernel_interrupt(struct ks_kernel *kernel, const char *run_id);
/* NULL with err at /kernelId, at /shellId. */
struct ks_kernel *ks_kernel_find(struct ks_core *core, const char *id, struct ks_error *err);
struct ks_kernel *ks_shell_find(struct ks_core *core, const char *id, struct ks_error *err);
/* A word for the program that leads the box: one part. */
int ks_kernel_tell(const struct ks_kernel *kernel, const char *key, const char *text, struct ks_error *err);
/* Of shells; what they refuse is at the field that says so. */
int ks_shell_write(struct ks_kernel *shell, const void *data, size_t len, struct ks_error *err);
int ks_shell_resize(struct ks_kernel *shell, int64_t rows, int64_t cols, struct ks_error *err);
int ks_shell_signal(struct ks_kernel *shell, int signal_number, struct ks_error *err);
/* There is room again for what no cell prints. */
void ks_kernels_resume(struct ks_core *core);
size_t ks_kernels_count(const struct ks_core *core, const struct ks_session *session, bool shells); /* session NULL: of all */
/* For what exchanges the session's template: a kernel lives in it, and runs for as long as its owner likes. -1: busy, at /sessionId. */
int ks_kernels_closed(const struct ks_session *session, struct ks_error *err);
const char *ks_kernel_state_name(enum ks_kernel_state state);

/* ---- for call.c ---- */
bool ks_kernel_ready(const struct ks_kernel *kernel); /* a cell may start */
/* The cell's turn: hands it to the process. -1: no code ran. */
int ks_kernel_send(struct ks_call *cell, struct ks_error *err);
/* Deadline or cancel: SIGINT, again, then SIGKILL. */
void ks_kernel_stop_cell(struct ks_call *cell);
void ks_kernel_cell_left(struct ks_call *cell);
/* Of its process, now or at most so long ago. */
const struct ks_box_end *ks_kernel_usage(struct ks_kernel *kernel, int64_t fresh_us);
/* A state frame of the host call, said by its main process, or by nobody knows whom while it boots. -1: makes no sense. */
int ks_kernel_frame(struct ks_kernel *kernel, const struct kern_frame *frame);
void ks_kernel_channel_lost(struct ks_kernel *kernel);
void ks_kernels_forget_session(struct ks_session *session);

/* ---- between kernel.c, kernel_words.c, kernel_tails.c, shell.c ---- */
void ks_kernel_set_state(struct ks_kernel *kernel, enum ks_kernel_state state);
int ks_kernel_fail_dead(const struct ks_kernel *kernel, struct ks_error *err); /* -1 */
void ks_kernel_report(struct ks_kernel *kernel, int which, const char *data, size_t len); /* printed by no cell */
size_t ks_kernel_room(const struct ks_kernel *kernel); /* for it; 0: later */
void ks_kernel_keep_tail(struct ks_kernel *kernel, int which, struct ks_pipe *pipe);
/* Those of the last cell, for a cell again. False, and none is taken: the box has closed one, or output of no cell waits in it. */
bool ks_kernel_take_tails(struct ks_kernel *kernel, struct ks_pipe *ret[2]);
void ks_kernel_drop_tails(struct ks_kernel *kernel);
int ks_shell_fill(struct ks_kernel *shell, const struct ks_kernel_spec *spec, struct ks_error *err); /* language, program, words */
