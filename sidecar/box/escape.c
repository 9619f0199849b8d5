#include "escape.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/base.h"
#include "filter.h"
#include "status.h"
#include "sys.h"

/* The pids of a notification are of our pid namespace (seccomp_unotify(2)). In a container /proc may be of another
 * one, where the number is somebody else's. */
static bool proc_is_ours(void)
{
	char self[24];
	ssize_t n = readlink("/proc/self", self, sizeof(self) - 1);

	self[n < 0 ? 0 : n] = '\0';
	return atoi(self) == getpid();
}

static int read_process(uint32_t tid, struct ks_status *ret)
{
	char path[40], text[16384]; /* the list of groups in it may be long */

	(void)snprintf(path, sizeof(path), "/proc/%u/status", tid);
	KS_AUTOCLOSE int fd = proc_is_ours() ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return -1;
	text[n] = '\0';
	return ks_status_parse(text, ret);
}

/* SIGSYS where it kills, so that the status tells the story; else SIGKILL. */
static void end_process(int pidfd, const struct ks_status *process)
{
	bool certain = (process->deaf & (UINT64_C(1) << (SIGSYS - 1))) == 0 && process->inner_pid != 1;

	(void)ks_pidfd_kill(pidfd, certain ? SIGSYS : SIGKILL);
}

void ks_escape_insist(struct ks_escape *escape, int64_t now_us)
{
	if (escape->doomed < 0 || now_us < escape->doomed_until_us)
		return;
	(void)ks_pidfd_kill(escape->doomed, SIGKILL);
	(void)close(escape->doomed);
	escape->doomed = -1;
}

static void record(struct ks_escape *escape, int nr, const char *process)
{
	const char *call = ks_filter_call_name(nr);

	escape->nr = nr;
	(void)snprintf(escape->call, sizeof(escape->call), "%s", call ? call : "unknown");
	(void)snprintf(escape->process, sizeof(escape->process), "%s", process);
}

/* A signal of ours may interrupt the kernel's lock. */
static int ask(int listener, unsigned long request, void *argument)
{
	int rc;

	do
		rc = ioctl(listener, request, argument);
	while (rc < 0 && errno == EINTR);
	return rc;
}

bool ks_escape_answer(int listener, struct ks_escape *escape, int64_t now_us)
{
	struct seccomp_notif notif = { 0 }; /* must be zeroed, else EINVAL */
	struct seccomp_notif_resp answer = { .error = -EPERM };
	struct ks_status process = { .name = "" };

	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &notif) < 0)
		return errno == EINTR || errno == ENOENT; /* it died meanwhile */
	/* notif.pid is a thread id, pidfd_open wants the group's. ID_VALID comes last: a notification that still
	 * stands holds its thread in the call, so all that was looked up by number since it came is of that thread
	 * and of nobody who has its number now. Otherwise the call is counted, but there is nobody to name and
	 * nobody to end. */
	int known = read_process(notif.pid, &process);
	KS_AUTOCLOSE int pidfd = known < 0 ? -1 : ks_pidfd_open(process.tgid);
	bool valid = ask(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &notif.id) == 0;
	if (escape->count++ == 0)
		record(escape, notif.data.nr, valid && process.name[0] ? process.name : "?");
	if (pidfd >= 0 && valid)
		end_process(pidfd, &process);
	/* With WAIT_KILLABLE_RECV only SIGKILL ends the wait for an answer, and SIGSYS, which dumps core, is not as
	 * good. So a lone thread gets its answer, behind the signal, and dies on its way out before another
	 * instruction runs. One of several gets none: the signal goes to any of them, and until that has ended all,
	 * this one would run on. */
	answer.id = notif.id;
	bool wants_answer = process.threads == 1 || pidfd < 0 || !valid;
	if (wants_answer && ask(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer) < 0 && errno != ENOENT)
		return false;
	if (pidfd < 0 || !valid)
		return !valid; /* it lives, and we cannot end it alone: the caller ends the box */
	/* Another thread may have begun to ignore SIGSYS between our look and the signal, or whom it went to sleeps
	 * too deep. */
	ks_escape_insist(escape, INT64_MAX);
	escape->doomed = KS_TAKE_FD(pidfd);
	escape->doomed_until_us = now_us + 100000;
	return true;
}
