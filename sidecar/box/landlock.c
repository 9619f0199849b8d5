#include "landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

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
#define FS_WRITE_FILE (1u << 1)
#define FS_CHANGE_DIR 0x1ff0u /* remove and make, of every kind: bits 4 to 12 */
#define FS_REFER (1u << 13)
#define FS_TRUNCATE (1u << 14) /* ABI 3 */
#define SCOPES 3u /* abstract sockets and signals, ABI 6 */

int ks_landlock_abi(void)
{
	long abi = syscall(CREATE_RULESET, NULL, 0, CREATE_RULESET_VERSION);

	return abi >= 2 ? (int)abi : 0;
}

static int allow(int ruleset, const char *path, uint64_t access)
{
	KS_AUTOCLOSE int fd = open(path, O_PATH | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		access &= FS_WRITE_FILE | FS_TRUNCATE; /* the others are of directories: EINVAL */
	struct path_beneath_attr rule = { .allowed_access = access, .parent_fd = fd };
	return syscall(ADD_RULE, ruleset, RULE_PATH_BENEATH, &rule, 0) < 0 ? -errno : 0;
}

static bool is_writable(const struct ks_step *step)
{
	return (step->kind == KS_STEP_BIND && !(step->flags & (KS_STEP_RDONLY | KS_STEP_DEVICE))) || step->kind == KS_STEP_TMPFS;
}

int ks_landlock_restrict(const struct ks_plan_view *plan)
{
	static const char *const always[] = { "/dev", "/proc" };
	int abi = ks_landlock_abi(), rc = 0;

	if (abi == 0)
		return 0;
	uint64_t access = FS_WRITE_FILE | FS_CHANGE_DIR | FS_REFER | (abi >= 3 ? FS_TRUNCATE : 0);
	struct ruleset_attr attr = { .handled_access_fs = access, .scoped = abi >= 6 ? SCOPES : 0 };
	/* older kernels refuse a longer struct, even when its end is zero only if they know no such field: give what they know */
	size_t size = abi >= 6 ? sizeof(attr) : abi >= 4 ? 16 : 8;
	KS_AUTOCLOSE int ruleset = (int)syscall(CREATE_RULESET, &attr, size, 0);
	if (ruleset < 0)
		return -errno;
	for (size_t i = 0; rc == 0 && i < KS_COUNT(always); i++)
		rc = allow(ruleset, always[i], access);
	for (uint32_t i = 0; rc == 0 && i < plan->head->step_count; i++)
		if (is_writable(&plan->steps[i]))
			rc = allow(ruleset, ks_plan_string(plan, plan->steps[i].target), access);
	if (rc == 0 && syscall(RESTRICT_SELF, ruleset, 0) < 0)
		rc = -errno;
	return rc;
}
