#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base.h"

#ifndef MFD_EXEC /* since Linux 6.3 */
#define MFD_EXEC 0x0010U
#endif
#define SEALS (F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL)
#define SEAL_TRIES 20
#define SEAL_PAUSE_US 5000

static char path[PATH_MAX];
static bool sealed;
static const char *failed_step = "is not asked for";
static int failed_errno;

static void fail(const char *step)
{
	failed_step = step;
	failed_errno = errno;
}

/* An older kernel does not know MFD_EXEC, a newer one may be told to want it (vm.memfd_noexec). */
static int make_memfd(void)
{
	int fd = memfd_create("kern-sidecar", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);

	return fd < 0 && errno == EINVAL ? memfd_create("kern-sidecar", MFD_CLOEXEC | MFD_ALLOW_SEALING) : fd;
}

static int copy(int from, int to)
{
	struct stat st;

	if (fstat(from, &st) < 0)
		return -1;
	for (off_t at = 0; at < st.st_size;) {
		ssize_t n = sendfile(to, from, &at, (size_t)(st.st_size - at));
		if (n <= 0) {
			errno = n < 0 ? errno : EIO; /* it was cut off meanwhile */
			return -1;
		}
	}
	/* EBUSY: the kernel still works with a page that was just written, and has waited for it already (mm/memfd.c) */
	for (int tries = 0; fcntl(to, F_ADD_SEALS, SEALS) < 0; tries++) {
		if (errno != EBUSY || tries == SEAL_TRIES)
			return -1;
		(void)usleep(SEAL_PAUSE_US);
	}
	return 0;
}

static void start_again(int file, char **argv)
{
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	path[n > 0 ? n : 0] = '\0';
	KS_AUTOCLOSE int memory = make_memfd();
	if (memory < 0) {
		fail("memfd_create");
		return;
	}
	if (copy(file, memory) < 0) {
		fail("copy");
		return;
	}
	char *given = argv[0];
	argv[0] = path;
	(void)fexecve(memory, argv, environ);
	fail("fexecve");
	argv[0] = given;
}

void ks_program_seal(char **argv)
{
	KS_AUTOCLOSE int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	if (file < 0) {
		fail("/proc/self/exe");
		return;
	}
	int seals = fcntl(file, F_GET_SEALS); /* EINVAL for a file of a disk */
	if (seals < 0 || (seals & SEALS) != SEALS) {
		start_again(file, argv);
		return;
	}
	(void)stpncpy(path, argv[0], sizeof(path) - 1);
	(void)prctl(PR_SET_NAME, "kern-sidecar"); /* the kernel took the number of the descriptor */
	if (fchmod(file, 0) < 0) {
		fail("fchmod");
		return;
	}
	sealed = true;
}

int ks_program_sealed(struct ks_error *err)
{
	if (sealed)
		return 0;
	(void)ks_fail_errno(err, KS_E_HOST_UNSUPPORTED, failed_errno, "the program cannot run from a sealed copy in memory (%s)",
			    failed_step);
	return ks_error_hint(err, "set the sysctl vm.memfd_noexec to 0 or 1, and mount /proc");
}

const char *ks_program_path(void)
{
	if (!path[0]) {
		ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
		path[n > 0 ? n : 0] = '\0';
	}
	return path;
}
