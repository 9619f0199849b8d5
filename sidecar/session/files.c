#include "session/files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>

#include "base/clock.h"
#include "box/idmap.h"
#include "session/call.h"
#include "session/gate.h"

void ks_files_init(struct ks_files *files)
{
	ks_list_init(&files->tasks);
}

/* ---- workers ---- */

/* What the box sees at that place: where it is an id-mapped mount there, it is one here. */
static int open_root(const struct ks_session *session, size_t index, struct ks_error *err)
{
	const struct ks_session_mount *mount = index > 0 ? &session->mounts[index - 1] : NULL;
	const int fd = mount ? mount->fd : session->workspace_fd;

	if (!(mount ? mount->id_mapped : session->id_mapped) || !ks_engine_is_root(session->core->engine)) {
		int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		return copy < 0 ? ks_fail_errno(err, KS_E_INTERNAL, errno, "cannot give a directory to the worker") : copy;
	}
	KS_AUTOCLOSE int idmap = ks_idmap_namespace(mount ? mount->owner_uid : 0, mount ? mount->owner_gid : 0, session->owner_uid,
						    session->owner_gid, err);
	return idmap < 0 ? -1 : ks_clone_tree(fd, mount ? mount->source : session->workspace, idmap, err);
}

static void on_ended(void *arg, struct ks_list *unsent);
static void on_alone_ended(void *arg, struct ks_list *unsent);

static int start_worker(struct ks_session *session, struct ks_task *task, struct ks_worker **ret, struct ks_error *err)
{
	struct ks_root roots[KS_ROOTS_MAX];
	struct ks_worker_config config = { .loop = session->core->loop, .program = session->core->worker_program,
					   .become = ks_engine_is_root(session->core->engine), .uid = session->owner_uid,
					   .gid = session->owner_gid, .roots = roots,
					   .ended = task->alone ? on_alone_ended : on_ended, .arg = session };
	int rc = 0;

	if (session->mount_count + 1 + (task->root_fd > 0) > KS_ROOTS_MAX)
		return ks_fail(err, KS_E_LIMIT, "the file methods serve sessions with at most %d mounts", KS_ROOTS_MAX - 1);
	for (size_t i = 0; rc == 0 && i <= session->mount_count; i++) {
		roots[i] = (struct ks_root){ .fd = open_root(session, i, err), .writable = i == 0 || session->mounts[i - 1].writable };
		if (roots[i].fd < 0)
			rc = -1;
		else
			config.root_count++;
	}
	if (rc == 0 && task->root_fd > 0)
		roots[config.root_count++] = (struct ks_root){ .fd = KS_TAKE(task->root_fd, 0), .writable = true };
	if (rc == 0)
		rc = ks_worker_start(&config, ret, err);
	for (size_t i = 0; i < config.root_count; i++)
		(void)close(roots[i].fd);
	return rc;
}

static void finish(struct ks_task *task, struct ks_unpack *result, const struct ks_error *err)
{
	struct ks_session *session = task->session;
	struct ks_core *core = session->core;

	ks_list_remove(&task->node);
	session->files.bytes -= task->bytes;
	session->files.used_us = ks_now_us();
	if (task->worker) {
		ks_worker_free(KS_TAKE_PTR(task->worker));
		core->alone_count--;
	}
	ks_job_drop(&task->job);
	if (task->root_fd > 0)
		(void)close(KS_TAKE(task->root_fd, 0));
	task->done(task, result, err);
	session->files.count--; /* until here: what `done` ends may be what a close waited for */
	ks_gate_turn(session);
	ks_session_turn(session);
}

static void on_done(struct ks_job *job, struct ks_unpack *result, const struct ks_error *err)
{
	finish(KS_ENTRY(job, struct ks_task, job), result, err);
}

/* Long tasks wait for a place that any session may free, so all sessions are looked at. */
static void turn_all(struct ks_core *core)
{
	for (struct ks_list *n = core->sessions.next, *next; n != &core->sessions; n = next) {
		next = n->next;
		ks_files_turn(KS_ENTRY(n, struct ks_session, node));
	}
}

static void on_alone_done(struct ks_job *job, struct ks_unpack *result, const struct ks_error *err)
{
	struct ks_task *task = KS_ENTRY(job, struct ks_task, job);
	struct ks_core *core = task->session->core;

	finish(task, result, err);
	turn_all(core);
}

static struct ks_task *task_of(struct ks_list *job_node)
{
	return KS_ENTRY(KS_ENTRY(job_node, struct ks_job, node), struct ks_task, job);
}

/* The task at work has failed already, those behind it go to another worker. An own worker has but one task. */
static void on_ended(void *arg, struct ks_list *unsent)
{
	struct ks_session *session = arg;

	session->files.worker = NULL;
	while (!ks_list_empty(unsent)) {
		struct ks_task *task = task_of(unsent->next);
		ks_list_remove(&task->job.node);
		task->pushed = false;
	}
	ks_files_turn(session);
}

static void on_alone_ended(void *arg, struct ks_list *unsent)
{
	(void)arg;
	(void)unsent;
}

/* ---- tasks ---- */

static void push(struct ks_task *task)
{
	struct ks_session *session = task->session;
	struct ks_core *core = session->core;
	struct ks_worker **worker = task->alone ? &task->worker : &session->files.worker;
	struct ks_error err;

	task->pushed = true;
	if (!*worker && start_worker(session, task, worker, &err) < 0) {
		finish(task, NULL, &err);
		return;
	}
	core->alone_count += task->alone;
	task->job.done = task->alone ? on_alone_done : on_done;
	ks_worker_push(*worker, &task->job);
}

/* In the order they came; those behind the gate, and long ones without a place, stay. */
void ks_files_turn(struct ks_session *session)
{
	struct ks_files *files = &session->files;

	if (files->turning)
		return; /* a task that fails at once comes back here */
	files->turning = true;
	for (struct ks_list *n = files->tasks.next, *next; n != &files->tasks; n = next) {
		struct ks_task *task = KS_ENTRY(n, struct ks_task, node);
		next = n->next;
		if (!task->pushed && ks_gate_passed(&session->gate, task->ticket) &&
		    (!task->alone || session->core->alone_count < KS_ALONE_MAX))
			push(task);
	}
	files->turning = false;
}

static int start(struct ks_session *session, struct ks_task *task, bool exclusive, struct ks_error *err)
{
	struct ks_files *files = &session->files;

	task->bytes = task->job.request.len;
	if (task->job.request.failed)
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	if (files->count >= KS_TASKS_MAX || files->bytes + task->bytes > KS_TASK_BYTES) {
		(void)ks_fail(err, KS_E_OVERLOADED, "%zu file operations of this session wait", files->count);
		return ks_error_hint(err, "try again when some have been answered");
	}
	task->session = session;
	task->exclusive = exclusive;
	task->ticket = exclusive ? 0 : ks_gate_ticket(&session->gate);
	task->worker = NULL;
	task->pushed = false;
	ks_list_append(&files->tasks, &task->node);
	files->count++;
	files->bytes += task->bytes;
	ks_files_turn(session);
	return 0;
}

int ks_files_start(struct ks_session *session, struct ks_task *task, struct ks_error *err)
{
	if (session->state != KS_SESSION_OPEN)
		return ks_fail_at(err, KS_E_UNKNOWN_HANDLE, "/sessionId", "session %s is closing", session->id);
	return start(session, task, false, err);
}

int ks_files_start_exclusive(struct ks_session *session, struct ks_task *task, struct ks_error *err)
{
	return start(session, task, true, err);
}

void ks_files_cancel(struct ks_task *task)
{
	struct ks_session *session = task->session;
	struct ks_core *core = session->core;
	struct ks_error err;

	if (task->pushed && !task->alone && !(session->files.worker && ks_worker_take_back(session->files.worker, &task->job)))
		return; /* it is being applied: the normal answer comes */
	(void)ks_fail(&err, KS_E_CANCELLED, "the request was cancelled");
	finish(task, NULL, &err);
	turn_all(core);
}

bool ks_files_before(const struct ks_session *session, uint64_t number)
{
	for (struct ks_list *n = session->files.tasks.next; n != &session->files.tasks; n = n->next)
		if (KS_ENTRY(n, struct ks_task, node)->ticket < number)
			return true;
	return false;
}

bool ks_files_busy(const struct ks_session *session)
{
	return session->files.count > 0;
}

void ks_files_close(struct ks_session *session)
{
	for (struct ks_list *n = session->files.tasks.next, *next; n != &session->files.tasks; n = next) {
		next = n->next;
		struct ks_task *task = KS_ENTRY(n, struct ks_task, node);
		if (!task->exclusive)
			ks_files_cancel(task);
	}
}

void ks_files_free(struct ks_session *session)
{
	for (struct ks_list *n = session->files.tasks.next; n != &session->files.tasks; n = n->next) {
		struct ks_task *task = KS_ENTRY(n, struct ks_task, node);
		ks_worker_free(KS_TAKE_PTR(task->worker));
		ks_job_drop(&task->job);
	}
	ks_worker_free(KS_TAKE_PTR(session->files.worker));
	ks_list_init(&session->files.tasks);
	session->files.count = 0;
}

void ks_files_idle(struct ks_core *core, int64_t now_us)
{
	for (struct ks_list *n = core->sessions.next; n != &core->sessions; n = n->next) {
		struct ks_files *files = &KS_ENTRY(n, struct ks_session, node)->files;
		if (files->worker && files->count == 0 && now_us - files->used_us > KS_WORKER_IDLE_US)
			ks_worker_free(KS_TAKE_PTR(files->worker));
	}
}
