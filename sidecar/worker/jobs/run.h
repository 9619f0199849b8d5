/* run.h: what a job of kern-worker has: the roots it works in, and the way its answers go. */
#pragma once

#include "base/error.h"
#include "worker/job.h"

struct ks_roots {
	int fds[KS_ROOTS_MAX];
	bool writable[KS_ROOTS_MAX];
	size_t count;
};

struct ks_run {
	int sock;
	const struct ks_roots *roots;
	int fds[KS_JOB_FDS], fd_count; /* what came with the job; closed behind it, unless taken */
	struct ks_buf records;	       /* written when there are many, and at the end */
	size_t record_at;	       /* where the one that is being packed begins */
	int64_t told_us;	       /* when progress was told last */
};

/* One job: 0 with what goes into the answer, or -1 with err. The request has been read whole when ks_unpack_end() says so; a damaged one
 * is the end of the worker (ks_run_damaged). */
typedef int ks_job_fn(struct ks_run *run, struct ks_unpack *in, struct ks_buf *ret_result, struct ks_error *err);

extern ks_job_fn *const ks_job_table[KS_JOB_KINDS]; /* NULL: not a job */

/* Sends a record: begin, pack into the buffer that it returns, end. */
struct ks_buf *ks_run_record(struct ks_run *run);
void ks_run_record_end(struct ks_run *run);
/* At most ten times a second, unless `last`. total -1: not known. */
void ks_run_progress(struct ks_run *run, int64_t done, int64_t total, bool last);
/* The root of that number as a descriptor. `to_write` fails with read_only where it may not be written. */
int ks_run_root(const struct ks_run *run, int64_t number, bool to_write, struct ks_error *err);
_Noreturn void ks_run_damaged(void);
