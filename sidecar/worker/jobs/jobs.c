#include "jobs.h"

ks_job_fn *const ks_job_table[KS_JOB_KINDS] = {
	[KS_JOB_STAT] = ks_job_stat,
	[KS_JOB_IMAGE] = ks_job_image,
};
