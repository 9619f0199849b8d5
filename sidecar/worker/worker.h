/* worker.h: the sidecar's side of kern-worker: starting one, giving it jobs, hearing of their results, ending it. A worker acts with
 * the ids it was given, on the directories it was given, and on nothing else (jobs/confine.h). Its answers are not trusted: amounts
 * are bounded here, and whoever unpacks one says so when it does not fit (ks_worker_distrust). */
#pragma once

#include <sys/types.h>
#include <uv.h>

#include "base/error.h"
#include "base/list.h"
#include "worker/job.h"

struct ks_worker;

struct ks_job {
	struct ks_list node;
	enum ks_job_kind kind;
	struct ks_buf request; /* packed; freed when sent */
	int fds[KS_JOB_FDS], fd_count; /* owned; closed when sent */
	/* All may be NULL but `done`, which is called once, last. A record or result that does not unpack: leave it, the worker sees
	 * to it. `result` is NULL on failure. The job's memory is the caller's again in `done`. */
	void (*record)(struct ks_job *job, struct ks_unpack *record);
	void (*progress)(struct ks_job *job, int64_t done, int64_t total);
	void (*done)(struct ks_job *job, struct ks_unpack *result, const struct ks_error *err);
};

struct ks_root {
	int fd; /* a directory or a regular file, O_PATH will do; the caller's */
	bool writable;
};

struct ks_worker_config {
	uv_loop_t *loop;
	const char *program; /* absolute path of kern-worker */
	bool become;	     /* take on uid and gid: root only */
	uid_t uid;
	gid_t gid;
	const struct ks_root *roots;
	size_t root_count; /* <= KS_ROOTS_MAX */
	/* It has ended by itself: its current job fails right after this, `unsent` are those it never saw. The worker is freed. */
	void (*ended)(void *arg, struct ks_list *unsent);
	void *arg;
};

int ks_worker_start(const struct ks_worker_config *config, struct ks_worker **ret, struct ks_error *err);
void ks_worker_push(struct ks_worker *worker, struct ks_job *job);
/* Takes back a job that was pushed and not sent yet: no `done` comes. False: it is under way, or was never here. */
bool ks_worker_take_back(struct ks_worker *worker, struct ks_job *job);
size_t ks_worker_pending(const struct ks_worker *worker); /* jobs that have no answer yet */
/* Kills it; its jobs get no `done`: ks_job_drop() them first if they hold something. NULL is fine. Not in `ended`. */
void ks_worker_free(struct ks_worker *worker);
/* What a job holds until it is sent. */
void ks_job_drop(struct ks_job *job);
