#include "escape.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/base.h"
#include "sys.h"

struct process {
	char name[20];
	int tgid, inner_pid;
	uint64_t deaf; /* signals blocked, ignored or caught */
};

static const char *field(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? at + strlen(key) : "";
}

static int read_process(uint32_t tid, struct process *ret)
{
	char path[40], text[4096];

	(void)snprintf(path, sizeof(path), "/proc/%u/status", tid);
	KS_AUTOCLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return -1;
	text[n] = '\0';
	(void)sscanf(field(text, "Name:\t"), "%16[^\n]", ret->name);
	ret->tgid = atoi(field(text, "\nTgid:"));
	const char *pids = field(text, "\nNSpid:"); /* the last number is the one in its own namespace */
	const char *last = memrchr(pids, '\t', strcspn(pids, "\n"));
	ret->inner_pid = last ? atoi(last) : 0;
	ret->deaf = strtoull(field(text, "\nSigBlk:"), NULL, 16) | strtoull(field(text, "\nSigIgn:"), NULL, 16) |
		    strtoull(field(text, "\nSigCgt:"), NULL, 16);
	return 0;
}

/* SIGSYS where it kills, so that the status tells the story; else SIGKILL. Sent before the
 * answer: with WAIT_KILLABLE_RECV the thread stays in the call (SIGSYS dumps core, so it does
 * not count as fatal there) and dies on its way out, before another instruction runs. */
static void end_process(int pidfd, const struct process *process)
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

static void record(struct ks_escape *escape, const struct seccomp_notif *notif, const struct process *process)
{
	KS_AUTOFREE char *call = seccomp_syscall_resolve_num_arch(notif->data.arch, notif->data.nr);

	escape->nr = notif->data.nr;
	(void)snprintf(escape->call, sizeof(escape->call), "%s", call ? call : "unknown");
	(void)snprintf(escape->process, sizeof(escape->process), "%s", process->name);
}

bool ks_escape_answer(int listener, struct ks_escape *escape, int64_t now_us)
{
	struct seccomp_notif notif = { 0 }; /* must be zeroed, else EINVAL */
	struct seccomp_notif_resp answer = { .error = -EPERM };
	struct process process = { .name = "?" };

	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &notif) < 0)
		return errno == EINTR || errno == ENOENT; /* it died meanwhile */
	int known = read_process(notif.pid, &process);
	if (escape->count++ == 0)
		record(escape, &notif, &process);
	/* notif.pid is a thread id, pidfd_open wants the group's. ID_VALID after the open: while the
	 * notification stands, the thread is in the call, so the pid was not reused. */
	KS_AUTOCLOSE int pidfd = known < 0 ? -1 : ks_pidfd_open(process.tgid);
	bool valid = ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &notif.id) == 0;
	if (pidfd >= 0 && valid)
		end_process(pidfd, &process);
	answer.id = notif.id;
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer) < 0 && errno != ENOENT)
		return false;
	if (pidfd < 0 || !valid)
		return !valid;
	/* Another thread may have begun to ignore SIGSYS between our look and the signal. */
	ks_escape_insist(escape, INT64_MAX);
	escape->doomed = KS_TAKE_FD(pidfd);
	escape->doomed_until_us = now_us + 100000;
	return true;
}
