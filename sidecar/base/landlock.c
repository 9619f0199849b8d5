#include "landlock.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The header of the build machine may be older than the kernel that this runs on: the numbers are the kernel's ABI. */
struct ruleset_attr {
	uint64_t handled_access_fs, handled_access_net, scoped;
};

struct path_beneath_attr {
	uint64_t allowed_access;
	int32_t parent_fd;
} __attribute__((__packed__));

#define CREATE_RULESET 444
#define ADD_RULE 445
#define RESTRICT_SELF 446
#define CREATE_RULESET_VERSION 1u
#define RULE_PATH_BENEATH 1
#define FS_TRUNCATE (UINT64_C(1) << 14) /* ABI 3 */
#define FS_OF_FILES (UINT64_C(1) << 0 | UINT64_C(1) << 1 | UINT64_C(1) << 2 | FS_TRUNCATE) /* the others are of directories: EINVAL */
#define SCOPES 3u /* abstract sockets and signals, ABI 6 */

int ks_landlock_abi(void)
{
	static long abi = -1;

	if (abi < 0)
		abi = syscall(CREATE_RULESET, NULL, 0, CREATE_RULESET_VERSION);
	return abi >= 2 ? (int)abi : 0;
}

static uint64_t known(uint64_t access)
{
	return ks_landlock_abi() >= 3 ? access : access & ~FS_TRUNCATE;
}

int ks_landlock_new(uint64_t access, bool scoped)
{
	int abi = ks_landlock_abi();
	struct ruleset_attr attr = { .handled_access_fs = known(access), .scoped = scoped && abi >= 6 ? SCOPES : 0 };
	/* older kernels refuse a longer struct, even when its end is zero only if they know no such field: give what they know */
	size_t size = abi >= 6 ? sizeof(attr) : abi >= 4 ? 16 : 8;
	int ruleset = (int)syscall(CREATE_RULESET, &attr, size, 0);

	return ruleset < 0 ? -errno : ruleset;
}

int ks_landlock_allow(int ruleset, int fd, uint64_t access)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		access &= FS_OF_FILES;
	struct path_beneath_attr rule = { .allowed_access = known(access), .parent_fd = fd };
	return syscall(ADD_RULE, ruleset, RULE_PATH_BENEATH, &rule, 0) < 0 ? -errno : 0;
}

int ks_landlock_enforce(int ruleset)
{
	return syscall(RESTRICT_SELF, ruleset, 0) < 0 ? -errno : 0;
}
