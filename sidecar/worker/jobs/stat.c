/* stat.c: file/stat. Request: name, followLinks. Result: type (index in ks_file_type_words), size, mtime in ms, permission bits, etag and
 * mime ("" when it has none). */
#include "jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "etag.h"
#include "names.h"
#include "workspace/mime.h"

static void pack(const struct stat *st, const char *etag, const char *mime, struct ks_buf *ret_result)
{
	ks_pack_int(ret_result, ks_file_type(st->st_mode));
	ks_pack_int(ret_result, st->st_size);
	ks_pack_int(ret_result, st->st_mtim.tv_sec * 1000LL + st->st_mtim.tv_nsec / 1000000);
	ks_pack_int(ret_result, st->st_mode & 07777);
	ks_pack_string(ret_result, etag);
	ks_pack_string(ret_result, mime);
}

static int look(struct ks_name *name, struct stat *ret_st, struct ks_error *err)
{
	const char *last;

	if (ks_name_is_mounted_file(name, ret_st))
		return 0;
	KS_AUTOCLOSE int dir = ks_name_open_parent(name, &last, err);
	if (dir < 0)
		return -1;
	return fstatat(dir, last, ret_st, AT_SYMLINK_NOFOLLOW) < 0 ? ks_name_fail(name, errno, err) : 0;
}

int ks_job_stat(struct ks_run *run, struct ks_unpack *in, struct ks_buf *ret_result, struct ks_error *err)
{
	KS_AUTONAME struct ks_name name = { 0 };
	unsigned char head[KS_MIME_PEEK];
	char etag[KS_ETAG_TEXT] = "";
	struct ks_error ignored;
	struct stat st;

	if (ks_name_unpack(run, in, "/path", true, false, &name, err) < 0)
		return -1;
	if (!ks_unpack_end(in))
		ks_run_damaged();
	if (ks_name_follow(&name, false, err) < 0 || look(&name, &st, err) < 0)
		return -1;
	/* what the box's user may not read, or has just gone, has no etag */
	KS_AUTOCLOSE int fd = S_ISREG(st.st_mode) ? ks_name_open_regular(&name, &st, &ignored) : -1;
	ssize_t n = fd < 0 ? 0 : pread(fd, head, sizeof(head), 0);
	if (fd >= 0 && ks_etag_of_file(fd, etag) < 0)
		etag[0] = '\0';
	pack(&st, etag, S_ISREG(st.st_mode) ? ks_mime_of(name.path, head, n < 0 ? 0 : (size_t)n) : NULL, ret_result);
	return 0;
}
