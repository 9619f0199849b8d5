#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "claim.h"
#include "cwd.h"
#include "join.h"
#include "plan.h"
#include "poll_memory.h"
#include "sys.h"

const char *const ks_command_steps[KS_COMMAND_STEPS] = { "code files", "stdio", "limits", "working directory", "apparmor",
							"exec" };
enum command_step { STEP_FILES, STEP_STDIO, STEP_LIMITS, STEP_CWD, STEP_APPARMOR, STEP_EXEC };

static struct command {
	struct ks_claim head;
	const char *body;
	struct ks_claim_view claim;
	int fds[KS_CLAIM_FDS]; /* stdin, stdout, stderr, result */
	int nfds;
	int join; /* to the zygote that forks it; -1: it is executed */
	/* written by the child, which shares our memory until it has exec'd */
	volatile int failed_step, failed_errno;
	int fail_step; /* test hook */
	const struct ks_box_setup *setup;
	const char *apparmor; /* profile, or "" */
} command = { .failed_step = -1, .fail_step = -1, .join = -1 };

void ks_command_set_up(const struct ks_box_setup *setup)
{
	command.setup = setup;
	command.apparmor = ks_plan_string(setup->plan, setup->plan->head->apparmor);
	for (unsigned i = 0; i < KS_COMMAND_STEPS; i++)
		if (ks_plan_fails(setup->plan, ks_command_steps[i]))
			command.fail_step = (int)i;
}

static int bad_claim(struct ks_error *err, const char *what)
{
	(void)ks_fail(err, KS_E_INTERNAL, "the claim of the box is damaged (%s)", what);
	return ks_error_step(err, "claim");
}

/* ---- the claim ---- */

static int take_fd(void)
{
	int fd = command.fds[0];

	command.nfds--;
	memmove(command.fds, command.fds + 1, (size_t)command.nfds * sizeof(int));
	return fd;
}

static int map_body(struct ks_error *err)
{
	KS_AUTOCLOSE int fd = take_fd();
	struct stat st;

	if (fstat(fd, &st) < 0 || st.st_size != (off_t)command.head.length)
		return bad_claim(err, "size");
	void *map = mmap(NULL, command.head.length, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return bad_claim(err, "map");
	command.body = map;
	return 0;
}

static int step_failed(struct ks_error *err, enum command_step step, int sys_errno, const char *what)
{
	(void)ks_fail_errno(err, KS_E_START_FAILED, sys_errno, "cannot prepare the command (%s)", what);
	if (step == STEP_APPARMOR && sys_errno == ENOENT) /* aa_change_profile of the kernel knows no such name */
		(void)ks_error_hint(err, "the profile must be loaded: sudo apparmor_parser -r FILE; sudo aa-status lists those that are");
	return ks_error_step(err, ks_command_steps[step]);
}

static int write_file(const struct ks_command_file *file)
{
	char path[PATH_MAX];
	const char *data = file->data;

	(void)snprintf(path, sizeof(path), KS_CODE_DIR "/%s", file->name);
	KS_AUTOCLOSE int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, file->mode & 0777);
	if (fd < 0)
		return -errno;
	for (size_t done = 0; done < file->len;) {
		ssize_t n = write(fd, data + done, file->len - done);
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		done += (size_t)n;
	}
	return 0;
}

/* Into a directory of the box's own: no other call and no other box sees them. */
static int write_files(struct ks_error *err)
{
	struct ks_command_file file;

	if (command.fail_step == STEP_FILES)
		return step_failed(err, STEP_FILES, EIO, "test");
	while (ks_claim_next_file(&command.claim, &file)) {
		int rc = write_file(&file);
		if (rc < 0)
			return step_failed(err, STEP_FILES, -rc, file.name);
	}
	return 0;
}

int ks_command_claim(int sock, struct ks_error *err)
{
	static char buffer[sizeof(struct ks_claim) + KS_CLAIM_INLINE];
	int fds[KS_MSG_FDS];
	ssize_t n = ks_recv(sock, buffer, sizeof(buffer), fds, &command.nfds, 0);

	if (n <= 0)
		return 1;
	memcpy(&command.head, buffer, sizeof(command.head));
	const unsigned flags = command.head.flags;
	const unsigned wanted =
		3u + (flags & KS_CLAIM_MEMFD ? 1 : 0) + (flags & KS_CLAIM_JOIN ? 1 : 0) + (flags & KS_CLAIM_RESULT ? 1 : 0);
	if (n < (ssize_t)sizeof(struct ks_claim) || command.nfds != (int)wanted)
		return bad_claim(err, "descriptors");
	memcpy(command.fds, fds, wanted * sizeof(int));
	if (flags & KS_CLAIM_JOIN)
		command.join = take_fd();
	if (flags & KS_CLAIM_MEMFD) {
		if (map_body(err) < 0)
			return -1;
	} else {
		command.body = buffer + sizeof(command.head);
		if ((size_t)n != sizeof(command.head) + command.head.length || command.head.length == 0)
			return bad_claim(err, "length");
	}
	const char *damage = ks_claim_read(&command.head, command.body, &command.claim);
	return damage ? bad_claim(err, damage) : write_files(err);
}

/* ---- the command ---- */

/* `pid` 0: the caller, as in prlimit(2). `rc` is that of the limits before: of several failures the first counts. */
static int set_limit(pid_t pid, __rlimit_resource_t what, rlim_t value, int rc)
{
	struct rlimit now, want = { value, value };

	if (prlimit(pid, what, NULL, &now) == 0 && now.rlim_max < value)
		want.rlim_cur = want.rlim_max = now.rlim_max;
	const int failed = prlimit(pid, what, &want, NULL) < 0 ? -errno : 0;
	return rc < 0 ? rc : failed;
}

/* So that nproc and os.cpu_count() tell the truth under a cap of whole cpus: the first that we may use. */
static void set_affinity(pid_t pid)
{
	cpu_set_t may, want;

	CPU_ZERO(&want);
	if (sched_getaffinity(0, sizeof(may), &may) < 0)
		return;
	for (size_t cpu = 0, left = command.head.cpus; cpu < CPU_SETSIZE && left > 0; cpu++)
		if (CPU_ISSET(cpu, &may)) {
			CPU_SET(cpu, &want);
			left--;
		}
	(void)sched_setaffinity(pid, sizeof(want), &want);
}

static int set_limits(pid_t pid)
{
	int rc = set_limit(pid, RLIMIT_CORE, 1, 0); /* 0 would still feed a core_pattern pipe (core(5)) */

	rc = set_limit(pid, RLIMIT_NOFILE, command.head.nofile, rc);
	/* counted for the host's user as well, whose own programs must not run out of them (getrlimit(2)) */
	rc = set_limit(pid, RLIMIT_MSGQUEUE, 65536, rc);
	rc = set_limit(pid, RLIMIT_SIGPENDING, 1024, rc);
	rc = set_limit(pid, RLIMIT_MEMLOCK, 1 << 20, rc);
	if (command.head.nproc)
		rc = set_limit(pid, RLIMIT_NPROC, command.head.nproc, rc);
	if (command.head.file_bytes)
		rc = set_limit(pid, RLIMIT_FSIZE, command.head.file_bytes, rc);
	if (command.head.flags & KS_CLAIM_POLL_MEMORY) /* bounds what can be taken between two looks */
		rc = set_limit(pid, RLIMIT_DATA, 2 * command.head.memory_bytes + ((rlim_t)512 << 20), rc);
	if (command.head.cpus)
		set_affinity(pid);
	return rc;
}

static int enter_cwd(int *ret_fd)
{
	KS_AUTOCLOSE int fd = ks_open_cwd(command.claim.cwd);
	char path[PATH_MAX];

	if (fd < 0 || fchdir(fd) < 0)
		return fd < 0 ? fd : -errno;
	if (ret_fd)
		*ret_fd = KS_TAKE_FD(fd);
	/* a directory outside the root has no name: the kernel says "(unreachable)" (getcwd(2)) */
	return syscall(SYS_getcwd, path, sizeof(path)) < 0 ? -errno : path[0] != '/' ? -ENOENT : 0;
}

/* The next exec takes the profile on (apparmor(7); the first path is of kernels that stack security modules). */
static int enter_apparmor(void)
{
	char text[300];
	int len = snprintf(text, sizeof(text), "exec %s", command.apparmor);
	int fd = open("/proc/self/attr/apparmor/exec", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		fd = open("/proc/self/attr/exec", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ssize_t n = write(fd, text, (size_t)len);
	int rc = n == len ? 0 : n < 0 ? -errno : -EIO;
	(void)close(fd);
	return rc;
}

static void give_up(enum command_step step, int sys_errno)
{
	command.failed_errno = sys_errno;
	command.failed_step = (int)step;
	_exit(127);
}

static int place_stdio(void)
{
	int high[4];

	/* Two steps: a descriptor may sit where another has to go. */
	for (int i = 0; i < command.nfds; i++) {
		high[i] = fcntl(command.fds[i], F_DUPFD_CLOEXEC, 16);
		if (high[i] < 0)
			return -errno;
	}
	for (int i = 0; i < command.nfds; i++)
		if (dup2(high[i], i) < 0)
			return -errno;
	return close_range((unsigned)command.nfds, ~0U, 0) < 0 ? -errno : 0;
}

/* Runs on its own stack in init's memory (CLONE_VM|CLONE_VFORK, as posix_spawn does): init sleeps until the exec, and no page table
 * is copied. */
static int command_main(void *unused)
{
	sigset_t none;
	int rc;

	(void)unused;
	for (int s = 1; s < NSIG; s++) /* ignored ones and the mask survive exec */
		(void)signal(s, SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)setsid();
	if (command.setup->flags & KS_BOX_ZYGOTE) /* no pid namespace of its own ends with init */
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	rc = command.fail_step == STEP_STDIO ? -EIO : place_stdio();
	if (rc < 0)
		give_up(STEP_STDIO, -rc);
	rc = command.fail_step == STEP_LIMITS ? -EIO : set_limits(0);
	if (rc < 0)
		give_up(STEP_LIMITS, -rc);
	rc = command.fail_step == STEP_CWD ? -EIO : enter_cwd(NULL);
	if (rc < 0)
		give_up(STEP_CWD, -rc);
	rc = command.fail_step == STEP_APPARMOR ? -EIO : command.apparmor[0] ? enter_apparmor() : 0;
	if (rc < 0)
		give_up(STEP_APPARMOR, -rc);
	if (command.fail_step == STEP_EXEC)
		give_up(STEP_EXEC, EIO);
	environ = (char **)(uintptr_t)(command.claim.words + command.head.argc + 1);
	(void)execvp(command.claim.words[0], (char *const *)(uintptr_t)command.claim.words);
	give_up(STEP_EXEC, errno);
	return 0;
}

static pid_t start_command(int *ret_pidfd)
{
	static _Alignas(16) char stack[256 * 1024];

	pid_t pid = clone(command_main, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, NULL,
			  ret_pidfd);
	int saved = errno;
	ks_close_all(command.fds, command.nfds);
	(void)close_range(0, 2, 0);
	errno = saved;
	return pid;
}

/* The limits are set from here: the process is init's child, of the same user. */
static pid_t let_in(int *ret_pidfd, int *ret_listener, struct ks_error *err)
{
	struct ks_join_spec spec = { .setup = command.setup, .sock = command.join, .result_fd = command.fds[3] };

	memcpy(spec.stdio, command.fds, sizeof(spec.stdio));
	int rc = enter_cwd(&spec.cwd);
	if (rc < 0)
		return step_failed(err, STEP_CWD, -rc, "working directory");
	pid_t pid = ks_join_admit(&spec, ret_pidfd, ret_listener, err);
	ks_close(&command.join);
	(void)close_range(0, 2, 0);
	rc = pid > 0 ? set_limits(pid) : 0;
	return rc < 0 ? step_failed(err, STEP_LIMITS, -rc, "limits") : pid;
}

/* What went wrong before the program's first instruction. */
static int explain_start(struct ks_msg *ret_msg, struct ks_error *err)
{
	int step = command.failed_step, sys_errno = command.failed_errno;

	if (step == STEP_EXEC && command.fail_step != STEP_EXEC) {
		*ret_msg = (struct ks_msg){ .op = KS_OP_EXEC_FAILED, .u.exit.error_number = sys_errno };
		return 0;
	}
	if (step == STEP_CWD && command.fail_step != STEP_CWD) {
		(void)ks_fail_errno(err, KS_E_INVALID_VALUE, sys_errno, "the working directory %.200s cannot be entered in the box",
				    command.claim.cwd);
		(void)ks_error_at(err, "/cwd");
		(void)ks_error_hint(err, "name a directory that exists in the box, not a link into /proc");
		return ks_error_step(err, ks_command_steps[step]);
	}
	return step_failed(err, (enum command_step)step, sys_errno, ks_command_steps[step]);
}

static int64_t in_us(struct timeval t)
{
	return (int64_t)t.tv_sec * 1000000 + t.tv_usec;
}

static void fill_report(struct ks_msg *msg, int status, int64_t begin)
{
	struct rusage usage;
	struct ks_exit_report *exit = &msg->u.exit;

	*msg = (struct ks_msg){ .op = KS_OP_EXITED };
	exit->wait_status = status;
	exit->wall_us = ks_now_us() - begin;
	(void)getrusage(RUSAGE_CHILDREN, &usage);
	exit->user_us = in_us(usage.ru_utime);
	exit->system_us = in_us(usage.ru_stime);
	exit->max_rss_bytes = (int64_t)usage.ru_maxrss * 1024;
	exit->alone = waitpid(-1, NULL, WNOHANG | __WALL) < 0 && errno == ECHILD;
}

/* Is it above its cap? */
static bool look_at_memory(struct timespec *ret_pause)
{
	static long cpus; /* to ask costs as much as the look */
	const uint64_t max = command.head.memory_bytes, bytes = ks_box_memory(max);

	if (cpus == 0)
		cpus = sysconf(_SC_NPROCESSORS_ONLN);
	ret_pause->tv_nsec = 1000000L * (long)ks_box_memory_pause_ms(bytes, max, cpus > 0 ? (unsigned)cpus : 1);
	return bytes > max;
}

/* With a memory cgroup we only wait; without one, look again and again. */
static int wait_for_main(pid_t pid, bool *ret_oom)
{
	const bool poll_memory = command.head.flags & KS_CLAIM_POLL_MEMORY;
	struct timespec pause = { .tv_nsec = 10000000 };
	int status = 0;
	sigset_t child;

	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	if (poll_memory)
		(void)sigprocmask(SIG_BLOCK, &child, NULL);
	for (;;) {
		pid_t got = waitpid(-1, &status, __WALL | (poll_memory ? WNOHANG : 0));
		if (got == pid)
			return status;
		if (got > 0)
			continue;
		if (got < 0 && errno != EINTR)
			return status; /* cannot be: the main process is our child */
		if (poll_memory && sigtimedwait(&child, NULL, &pause) < 0 && errno == EAGAIN && look_at_memory(&pause)) {
			*ret_oom = true;
			/* everything in this pid namespace but us; a landlock domain of its own is out of our reach, and ends with us */
			if (kill(-1, SIGKILL) < 0)
				return SIGKILL;
		}
	}
}

int ks_command_run(int sock, struct ks_msg *ret_msg, struct ks_error *err)
{
	struct ks_msg started = { .op = KS_OP_STARTED };
	bool oom = false;
	int fds[2] = { -1, -1 }; /* pidfd, listener */
	const bool joins = command.join >= 0;
	int64_t begin = ks_now_us();
	pid_t pid = joins ? let_in(&fds[0], &fds[1], err) : start_command(&fds[0]);

	if (pid < 0)
		return joins ? -1 : step_failed(err, STEP_EXEC, errno, "clone");
	if (command.failed_step >= 0)
		return explain_start(ret_msg, err);
	(void)ks_send(sock, &started, sizeof(started), fds, joins ? 2 : 1, 0);
	ks_close_all(fds, 2);
	int status = wait_for_main(pid, &oom);
	fill_report(ret_msg, status, begin);
	ret_msg->u.exit.polled_oom = oom;
	return 0;
}
