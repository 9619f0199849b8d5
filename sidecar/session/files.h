/* files.h: the file operations of a session. Each is a task for a kern-worker that has the rights of the box's user on the workspace
 * and the mounts, and no others. Short tasks go in order through one worker of the session, started at the first and ended when idle;
 * long ones ("alone") get one of their own, which can be killed. */
#pragma once

#include "session/session.h"
#include "worker/worker.h"

#define KS_TASKS_MAX 1024	   /* of a session, without an answer */
#define KS_TASK_BYTES ((size_t)256 << 20) /* what they hold together */
#define KS_ALONE_MAX 8		   /* workers of long tasks, of all sessions; more wait */
#define KS_WORKER_IDLE_US 30000000

struct ks_task {
	struct ks_job job; /* kind, request, fds, record and progress are the caller's to fill; done is ours */
	bool alone;
	int root_fd; /* alone: one more directory, behind the others, writable; owned until the worker has it. 0: none */
	void (*done)(struct ks_task *task, struct ks_unpack *result, const struct ks_error *err); /* once, last */
	/* ours */
	struct ks_list node; /* in the session's tasks */
	struct ks_session *session;
	struct ks_worker *worker; /* its own */
	uint64_t ticket;
	bool pushed, exclusive;
	size_t bytes;
};

void ks_files_init(struct ks_files *files);
/* `done` follows, perhaps at once; or -1 (overloaded, closing), and it does not. */
int ks_files_start(struct ks_session *session, struct ks_task *task, struct ks_error *err);
/* For who has the gate, or before the session is open: does not wait for it. Starts in a session that closes, too, and a close does not
 * cancel it: its owner hears of that (gate.h). */
int ks_files_start_exclusive(struct ks_session *session, struct ks_task *task, struct ks_error *err);
/* `done` with cancelled at once, if the task has not begun or is alone; else its normal answer comes. */
void ks_files_cancel(struct ks_task *task);
/* Tasks that came before that number of the gate, and have no answer. */
bool ks_files_before(const struct ks_session *session, uint64_t number);
bool ks_files_busy(const struct ks_session *session);
void ks_files_turn(struct ks_session *session); /* the gate has moved */
/* The session closes: what has begun and is short still answers, the rest is cancelled. */
void ks_files_close(struct ks_session *session);
void ks_files_free(struct ks_session *session);
void ks_files_idle(struct ks_core *core, int64_t now_us);
