/* job.h: what sidecar and kern-worker agree on. A stream socket; one frame asks for a job, frames answer: any number of records and
 * progress, then one of done and failed. One job at a time; the next begins when the one before has ended. */
#pragma once

#include <stdint.h>

#include "worker/pack.h"

enum ks_job_kind {
	KS_JOB_SETUP = 1, /* the first frame, not answered. fds: the roots. ids, then for each root: may it be written */
	KS_JOB_READ,
	KS_JOB_WRITE,
	KS_JOB_STAT,
	KS_JOB_LIST,
	KS_JOB_MKDIR,
	KS_JOB_MOVE,
	KS_JOB_REMOVE,
	KS_JOB_EDIT,
	KS_JOB_GLOB,
	KS_JOB_SEARCH,
	KS_JOB_SNAPSHOT,
	KS_JOB_RESTORE,
	KS_JOB_IMAGE,
	KS_JOB_SWAP,
	KS_JOB_SWEEP,
	KS_JOB_DEPS_STAGE,
	KS_JOB_DEPS_SWAP,
	KS_JOB_DEPS_CLEAR,
	KS_JOB_DEPS_STORE,
	KS_JOB_KINDS
};

enum ks_answer {
	KS_ANSWER_RECORD = 1000, /* what a record holds is the job's */
	KS_ANSWER_PROGRESS,	 /* done, total (-1: not known) */
	KS_ANSWER_DONE,		 /* what the result holds is the job's */
	KS_ANSWER_FAILED,	 /* struct ks_error */
};

struct ks_frame {
	uint32_t kind; /* of the enums above */
	uint32_t len;  /* bytes that follow */
};

#define KS_CONTENT_MAX ((size_t)64 << 20)	       /* of a file, in one job */
#define KS_FRAME_MAX (KS_CONTENT_MAX + ((size_t)1 << 20)) /* a larger frame is the end of the connection */
#define KS_ROOTS_MAX 60				       /* the workspace and the mounts: they travel beside one message */
#define KS_JOB_FDS 2				       /* beside a job: an archive to read or write */

#define KS_WORKER_SOCKET 3 /* the worker's end */
