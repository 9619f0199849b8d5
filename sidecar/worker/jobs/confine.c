#include "confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/caps.h"
#include "base/landlock.h"

#define MEMORY_MAX ((rlim_t)2 << 30) /* address space: a job that wants more is wrong, or is being attacked */
#define DESCRIPTORS_MAX 1024

_Noreturn static void fail(const char *step, int error)
{
	(void)fprintf(stderr, "kern-worker: cannot give up power (%s): %s\n", step, strerror(error));
	_exit(4);
}

static void must(const char *step, int rc)
{
	if (rc < 0)
		fail(step, errno);
}

static void limit(int what, rlim_t most)
{
	struct rlimit now;

	must("getrlimit", getrlimit((__rlimit_resource_t)what, &now));
	if (now.rlim_max > most)
		now.rlim_max = most;
	now.rlim_cur = now.rlim_max;
	must("setrlimit", setrlimit((__rlimit_resource_t)what, &now));
}

static void change_ids(const struct ks_identity *who)
{
	if (who->become) {
		must("setgroups", setgroups(0, NULL));
		must("setresgid", setresgid(who->gid, who->gid, who->gid));
		must("setresuid", setresuid(who->uid, who->uid, who->uid));
	}
	int rc = ks_drop_capabilities(0);
	if (rc < 0)
		fail("capabilities", -rc);
}

/* A root that is a file cannot be opened below itself, and later nothing else can be: it is opened now, with the rights of the box's user.
 * What that may not read stays O_PATH. A process reaches its own descriptors here whatever it is dumpable for: proc(5). */
static void open_mounted_files(struct ks_roots *roots)
{
	for (size_t i = 0; i < roots->count; i++) {
		char link[40];
		struct stat st;
		must("fstat", fstat(roots->fds[i], &st));
		if (!S_ISREG(st.st_mode))
			continue;
		(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", roots->fds[i]);
		int fd = open(link, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		if (fd < 0)
			continue;
		(void)close(roots->fds[i]);
		roots->fds[i] = fd;
	}
}

static void restrict_files(const struct ks_roots *roots)
{
	int rc = 0;

	if (ks_landlock_abi() == 0)
		return;
	KS_AUTOCLOSE int ruleset = ks_landlock_new(KS_LANDLOCK_EXECUTE | KS_LANDLOCK_READ | KS_LANDLOCK_WRITE, true);
	if (ruleset < 0)
		fail("landlock", -ruleset);
	for (size_t i = 0; rc == 0 && i < roots->count; i++)
		rc = ks_landlock_allow(ruleset, roots->fds[i], KS_LANDLOCK_READ | (roots->writable[i] ? KS_LANDLOCK_WRITE : 0));
	if (rc == 0)
		rc = ks_landlock_enforce(ruleset);
	if (rc < 0)
		fail("landlock", -rc);
}

#define FCHMODAT2 452 /* Linux 6.6, newer than the library's names; the number is the same everywhere but on alpha */

static const int allowed_calls[] = {
#if defined(__SANITIZE_ADDRESS__)
	SCMP_SYS(readlink), SCMP_SYS(open), SCMP_SYS(ioctl), SCMP_SYS(prlimit64), /* what a report needs */
#endif
	/* the socket, and files by descriptor */
	SCMP_SYS(read), SCMP_SYS(readv), SCMP_SYS(pread64), SCMP_SYS(write), SCMP_SYS(writev), SCMP_SYS(pwrite64), SCMP_SYS(lseek),
	SCMP_SYS(recvmsg), SCMP_SYS(recvfrom), SCMP_SYS(sendmsg), SCMP_SYS(sendto), SCMP_SYS(close), SCMP_SYS(fcntl), SCMP_SYS(dup),
	SCMP_SYS(poll), SCMP_SYS(ppoll), SCMP_SYS(fstat), SCMP_SYS(fstatfs), SCMP_SYS(ftruncate), SCMP_SYS(fallocate), SCMP_SYS(fchmod),
	SCMP_SYS(fsync), SCMP_SYS(fdatasync), SCMP_SYS(getdents64), SCMP_SYS(copy_file_range), SCMP_SYS(fadvise64),
	/* names below a descriptor */
	SCMP_SYS(openat), SCMP_SYS(openat2), SCMP_SYS(newfstatat), SCMP_SYS(statx), SCMP_SYS(mkdirat), SCMP_SYS(unlinkat),
	SCMP_SYS(renameat), SCMP_SYS(renameat2), SCMP_SYS(linkat), SCMP_SYS(symlinkat), SCMP_SYS(readlinkat), SCMP_SYS(fchmodat), FCHMODAT2,
	SCMP_SYS(utimensat), SCMP_SYS(faccessat), SCMP_SYS(faccessat2),
	/* memory, time, the end */
	SCMP_SYS(mmap), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(mprotect), SCMP_SYS(madvise), SCMP_SYS(brk), SCMP_SYS(futex),
	SCMP_SYS(sysinfo), /* qsort of a glibc before 2.37 asks how much memory there is */
	SCMP_SYS(clock_gettime), SCMP_SYS(getrandom), SCMP_SYS(getpid), SCMP_SYS(gettid), SCMP_SYS(getuid), SCMP_SYS(geteuid),
	SCMP_SYS(sched_yield), SCMP_SYS(rt_sigreturn), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigaction), SCMP_SYS(sigaltstack),
	SCMP_SYS(tgkill), SCMP_SYS(restart_syscall), SCMP_SYS(exit), SCMP_SYS(exit_group),
};

/* Where libseccomp does not know a number the library is older than the list; then that call is not made either. */
static void restrict_calls(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
	int rc = filter ? 0 : -ENOMEM;

	for (size_t i = 0; rc == 0 && i < KS_COUNT(allowed_calls); i++)
		rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed_calls[i], 0);
	/* the way of older kernels to the same end is by path: refused, but no crime (workspace/remove.c) */
	if (rc == 0)
		rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(chmod), 0);
	if (rc == 0)
		rc = seccomp_load(filter);
	if (rc < 0)
		fail("seccomp", -rc);
	seccomp_release(filter);
}

void ks_confine(const struct ks_identity *who, struct ks_roots *roots)
{
	(void)umask(022);
	must("chdir", chdir("/"));
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_NOFILE, DESCRIPTORS_MAX);
#if !defined(__SANITIZE_ADDRESS__)
	limit(RLIMIT_AS, MEMORY_MAX);
#endif
	change_ids(who);
	open_mounted_files(roots);
	must("PR_SET_DUMPABLE", prctl(PR_SET_DUMPABLE, 0));
	/* a change of ids clears it (prctl(2)); a parent that died before that is not ours any more */
	must("PR_SET_PDEATHSIG", prctl(PR_SET_PDEATHSIG, SIGKILL));
	if (getppid() != who->parent)
		_exit(0);
	must("PR_SET_NO_NEW_PRIVS", prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	restrict_files(roots);
	restrict_calls();
}
