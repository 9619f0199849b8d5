/* move.c: file/move. Request: name, followLinks, the new name, followLinks again, replace. No result. */
#include "jobs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "names.h"

static int fail_rename(const struct ks_name *from, const struct ks_name *to, int error, bool replace, struct ks_error *err)
{
	const size_t len = strlen(from->path);

	if (error == EINVAL && strncmp(to->path, from->path, len) == 0 && to->path[len] == '/')
		return ks_fail_at(err, KS_E_INVALID_PATH, to->pointer, "a directory cannot be moved into itself");
	if (error == EINVAL && !replace) {
		(void)ks_fail_errno(err, KS_E_IO, error, "this file system cannot move without replacing");
		return ks_error_hint(err, "say replace: true when nothing can be lost there");
	}
	if (error == EXDEV) {
		(void)ks_fail_errno(err, KS_E_INVALID_PATH, error, "that is another file system");
		(void)ks_error_hint(err, "read it, write it there, and remove it");
		return ks_error_at(err, to->pointer);
	}
	(void)ks_name_fail(error == ENOENT || error == EACCES ? from : to, error, err);
	return error == EEXIST ? ks_error_hint(err, "say replace: true if what is there may go") : -1;
}

static int move(struct ks_name *from, struct ks_name *to, bool replace, struct ks_error *err)
{
	const char *last, *new_last;

	if (from->root != to->root)
		return fail_rename(from, to, EXDEV, replace, err);
	if (ks_name_follow(from, true, err) < 0 || ks_name_follow(to, true, err) < 0)
		return -1;
	KS_AUTOCLOSE int dir = ks_name_open_parent(from, &last, err);
	if (dir < 0)
		return -1;
	KS_AUTOCLOSE int new_dir = ks_name_open_parent(to, &new_last, err);
	if (new_dir < 0)
		return -1;
	if (strcmp(last, ".") == 0 || strcmp(new_last, ".") == 0)
		return ks_fail_at(err, KS_E_INVALID_PATH, strcmp(last, ".") == 0 ? from->pointer : to->pointer,
				  "the workspace itself, or a mount, cannot be moved or replaced");
	if (renameat2(dir, last, new_dir, new_last, replace ? 0 : RENAME_NOREPLACE) < 0)
		return fail_rename(from, to, errno, replace, err);
	return 0;
}

int ks_job_move(struct ks_run *run, struct ks_unpack *in, struct ks_buf *ret_result, struct ks_error *err)
{
	KS_AUTONAME struct ks_name from = { 0 };
	KS_AUTONAME struct ks_name to = { 0 };

	(void)ret_result;
	if (ks_name_unpack(run, in, "/path", true, true, &from, err) < 0 ||
	    ks_name_unpack(run, in, "/to", true, true, &to, err) < 0)
		return -1;
	const bool replace = ks_unpack_int(in) != 0;
	if (!ks_unpack_end(in))
		ks_run_damaged();
	return move(&from, &to, replace, err);
}
