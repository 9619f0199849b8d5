/* jobs.h: the jobs. Each is described where it is: what its request, its records and its result hold. */
#pragma once

#include "run.h"

ks_job_fn ks_job_read, ks_job_write, ks_job_stat, ks_job_list, ks_job_mkdir, ks_job_move, ks_job_remove, ks_job_edit;
ks_job_fn ks_job_image;
ks_job_fn ks_job_snapshot; /* snapshot.c */
ks_job_fn ks_job_restore;  /* restore.c */
ks_job_fn ks_job_swap, ks_job_sweep; /* swap.c */
ks_job_fn ks_job_deps_stage, ks_job_deps_swap, ks_job_deps_clear, ks_job_deps_store;
ks_job_fn ks_job_glob;
ks_job_fn ks_job_search;
