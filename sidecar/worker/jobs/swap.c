/* swap.c: KS_JOB_SWAP: what KS_JOB_RESTORE extracted takes the place of what is in root 0; short, never cut off. KS_JOB_SWEEP: undoes or
 * finishes a restore that was cut off, and removes what is left of it. Neither has a request; the sweep's result is an enum ks_sweep. */
#include "jobs.h"

#include "staging.h"

static int root_of(const struct ks_run *run, const struct ks_unpack *in)
{
	if (!ks_unpack_end(in) || run->roots->count < 1)
		ks_run_damaged();
	return run->roots->fds[0];
}

int ks_job_swap(struct ks_run *run, struct ks_unpack *in, struct ks_buf *ret_result, struct ks_error *err)
{
	(void)ret_result;
	return ks_staging_swap(root_of(run, in), err);
}

int ks_job_sweep(struct ks_run *run, struct ks_unpack *in, struct ks_buf *ret_result, struct ks_error *err)
{
	enum ks_sweep what;

	if (ks_staging_sweep(root_of(run, in), &what, err) < 0)
		return -1;
	ks_pack_int(ret_result, what);
	return 0;
}
