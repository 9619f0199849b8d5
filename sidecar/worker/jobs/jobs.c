#include "jobs.h"

ks_job_fn *const ks_job_table[KS_JOB_KINDS] = {
	[KS_JOB_READ] = ks_job_read,	 [KS_JOB_WRITE] = ks_job_write, [KS_JOB_STAT] = ks_job_stat,
	[KS_JOB_LIST] = ks_job_list,	 [KS_JOB_MKDIR] = ks_job_mkdir, [KS_JOB_MOVE] = ks_job_move,
	[KS_JOB_REMOVE] = ks_job_remove, [KS_JOB_EDIT] = ks_job_edit,
	[KS_JOB_IMAGE] = ks_job_image,
	[KS_JOB_SNAPSHOT] = ks_job_snapshot,
	[KS_JOB_RESTORE] = ks_job_restore,
	[KS_JOB_SWAP] = ks_job_swap,
	[KS_JOB_SWEEP] = ks_job_sweep,
	[KS_JOB_DEPS_STAGE] = ks_job_deps_stage,
	[KS_JOB_DEPS_SWAP] = ks_job_deps_swap,
	[KS_JOB_DEPS_CLEAR] = ks_job_deps_clear,
	[KS_JOB_DEPS_STORE] = ks_job_deps_store,
	[KS_JOB_GLOB] = ks_job_glob,
	[KS_JOB_SEARCH] = ks_job_search,
};
