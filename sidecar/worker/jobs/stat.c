/* stat.c: file/stat. */
#include "jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "names.h"

int ks_job_stat(struct ks_run *run, struct ks_unpack *in, struct ks_buf *ret_result, struct ks_error *err)
{
	struct ks_name name;
	struct stat st;

	if (ks_name_unpack(run, in, "/path", true, false, &name, err) < 0)
		return -1;
	KS_AUTOCLOSE int fd = ks_name_open(&name, O_PATH, err);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) < 0)
		return ks_name_fail(&name, errno, err);
	ks_pack_int(ret_result, ks_file_type(st.st_mode));
	ks_pack_int(ret_result, st.st_size);
	ks_pack_int(ret_result, st.st_mtim.tv_sec * 1000LL + st.st_mtim.tv_nsec / 1000000);
	ks_pack_int(ret_result, st.st_mode & 07777);
	ks_pack_string(ret_result, "");
	ks_pack_string(ret_result, "");
	return 0;
}
