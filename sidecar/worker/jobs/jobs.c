#include "jobs.h"

ks_job_fn *const ks_job_table[KS_JOB_KINDS] = {
	[KS_JOB_STAT] = ks_job_stat,
	[KS_JOB_IMAGE] = ks_job_image,
	[KS_JOB_SNAPSHOT] = ks_job_snapshot,
	[KS_JOB_RESTORE] = ks_job_restore,
	[KS_JOB_SWAP] = ks_job_swap,
	[KS_JOB_SWEEP] = ks_job_sweep,
};
