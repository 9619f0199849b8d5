/* mkdir.c: file/mkdir. Request: name, followLinks, parents. No result. */
#include "jobs.h"

#include <errno.h>

#include "names.h"

static int make(struct ks_name *name, bool parents, struct ks_error *err)
{
	const char *last;
	size_t made;

	if (ks_name_follow(name, !parents, err) < 0)
		return -1;
	if (parents)
		return ks_name_make_dirs(name, name->path, &made, err);
	KS_AUTOCLOSE int dir = ks_name_open_parent(name, &last, err);
	if (dir < 0)
		return err->reason == KS_E_NOT_FOUND ? ks_error_hint(err, "say parents: true to make the directories above it, too") : -1;
	return mkdirat(dir, last, 0777) < 0 ? ks_name_fail(name, errno, err) : 0; /* the umask is 022 */
}

int ks_job_mkdir(struct ks_run *run, struct ks_unpack *in, struct ks_buf *ret_result, struct ks_error *err)
{
	KS_AUTONAME struct ks_name name = { 0 };

	(void)ret_result;
	if (ks_name_unpack(run, in, "/path", true, true, &name, err) < 0)
		return -1;
	const bool parents = ks_unpack_int(in) != 0;
	if (!ks_unpack_end(in))
		ks_run_damaged();
	return make(&name, parents, err);
}
