#include "quota.h"

#include <errno.h>
#include <linux/dqblk_xfs.h>
#include <linux/fs.h>
#include <linux/quota.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FIRST_PROJECT UINT32_C(0x80000000)
#define KIB 1024 /* the unit of dqb_bhardlimit (QIF_DQBLKSIZE) */

/* quotactl_fd(2), Linux 5.14: no need to know the device. */
static int quota(int fd, unsigned command, uint32_t project, void *data)
{
	return (int)syscall(SYS_quotactl_fd, fd, QCMD(command, PRJQUOTA), project, data);
}

/* A file system may count without enforcing, and takes a limit then, too. */
static int check_enforced(int fd, struct ks_error *err)
{
	struct fs_quota_statv state = { .qs_version = FS_QSTATV_VERSION1 };

	if (quota(fd, Q_XGETQSTATV, 0, &state) < 0)
		return ks_fail_errno(err, KS_E_HOST_UNSUPPORTED, errno, "its file system has none");
	if (!(state.qs_flags & FS_QUOTA_PDQ_ENFD))
		return ks_fail(err, KS_E_HOST_UNSUPPORTED, "its file system is not mounted with prjquota");
	return 0;
}

static int read_usage(int fd, uint32_t project, struct if_dqblk *ret, struct ks_error *err)
{
	*ret = (struct if_dqblk){ 0 };
	if (quota(fd, Q_GETQUOTA, project, ret) == 0 || errno == ENOENT) /* xfs: nobody has ever used it */
		return 0;
	return ks_fail_errno(err, KS_E_HOST_UNSUPPORTED, errno, "cannot read the project quota");
}

static int join(int dir_fd, uint32_t project, struct ks_error *err)
{
	struct fsxattr attr;

	if (ioctl(dir_fd, FS_IOC_FSGETXATTR, &attr) < 0)
		return ks_fail_errno(err, KS_E_HOST_UNSUPPORTED, errno, "cannot read the directory's project");
	attr.fsx_projid = project;
	attr.fsx_xflags |= FS_XFLAG_PROJINHERIT;
	if (ioctl(dir_fd, FS_IOC_FSSETXATTR, &attr) < 0)
		return ks_fail_errno(err, KS_E_HOST_UNSUPPORTED, errno, "cannot give the directory a project");
	return 0;
}

int ks_quota_hold(int dir_fd, uint64_t bytes, uint64_t names, uint32_t *ret_project, struct ks_error *err)
{
	struct if_dqblk have, want = { .dqb_valid = QIF_LIMITS };
	struct stat st;

	if (check_enforced(dir_fd, err) < 0)
		return -1;
	if (fstat(dir_fd, &st) < 0 || (uint64_t)st.st_ino >= UINT32_MAX - FIRST_PROJECT) /* 2^32 - 1 is no id */
		return ks_fail(err, KS_E_HOST_UNSUPPORTED, "the directory's inode number does not fit a project id");
	const uint32_t project = FIRST_PROJECT + (uint32_t)st.st_ino;
	if (read_usage(dir_fd, project, &have, err) < 0)
		return -1;
	if (have.dqb_curinodes > 0 || have.dqb_curspace > 0)
		return ks_fail(err, KS_E_HOST_UNSUPPORTED, "project %u has files already", project);
	if (join(dir_fd, project, err) < 0 || read_usage(dir_fd, project, &have, err) < 0)
		return -1;
	want.dqb_bhardlimit = (have.dqb_curspace + bytes + KIB - 1) / KIB;
	want.dqb_ihardlimit = have.dqb_curinodes + names;
	if (quota(dir_fd, Q_SETQUOTA, project, &want) < 0)
		return ks_fail_errno(err, KS_E_HOST_UNSUPPORTED, errno, "cannot set the project quota");
	if (read_usage(dir_fd, project, &have, err) < 0)
		return -1;
	if (have.dqb_bhardlimit != want.dqb_bhardlimit || have.dqb_ihardlimit != want.dqb_ihardlimit)
		return ks_fail(err, KS_E_HOST_UNSUPPORTED, "the project quota that was set is not the one that is there");
	*ret_project = project;
	return 0;
}

void ks_quota_release(int fd, uint32_t project)
{
	struct if_dqblk none = { .dqb_valid = QIF_LIMITS };

	(void)quota(fd, Q_SETQUOTA, project, &none);
}
