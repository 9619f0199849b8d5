#include "join.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/join.h"
#include "landlock.h"
#include "sys.h"

_Static_assert(KS_JOIN_SLOTS <= KS_JOIN_FDS_MAX, "what there is to enter must fit its message");
_Static_assert(KS_FILTER_MAX <= KS_JOIN_FILTER_MAX, "a filter must fit its message");

static int refuse(struct ks_error *err, int sys_errno, const char *what)
{
	(void)ks_fail_errno(err, KS_E_START_FAILED, sys_errno, "no process of a zygote came into the box (%s)", what);
	return ks_error_step(err, "join");
}

/* ---- what there is to enter ---- */

struct offer {
	struct ks_join head;
	struct sock_filter filter[KS_FILTER_MAX];
	int fds[KS_JOIN_SLOTS], nfds;
};

static void add(struct offer *offer, enum ks_join_slot slot, int fd)
{
	offer->head.present |= 1u << slot;
	offer->fds[offer->nfds++] = fd;
}

/* Init may look at itself although it is not dumpable: a thread group may do so always (__ptrace_may_access, kernel/ptrace.c). */
static int add_namespaces(const struct ks_box_setup *setup, struct offer *offer)
{
	static const char *const names[] = { "pid", "mnt", "ipc", "uts", "cgroup", "net", "user" };
	KS_AUTOCLOSE int dir = open("/proc/self/ns", O_PATH | O_DIRECTORY | O_CLOEXEC);

	for (enum ks_join_slot slot = KS_JOIN_PID; slot <= KS_JOIN_USER; slot++) {
		if ((slot == KS_JOIN_NET && setup->plan->head->shares_network) ||
		    (slot == KS_JOIN_USER && !(setup->flags & KS_BOX_OWN_USER_NS)))
			continue;
		int fd = openat(dir, names[slot], O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return -errno;
		add(offer, slot, fd);
	}
	return 0;
}

static int make_offer(const struct ks_join_spec *spec, struct offer *offer)
{
	const struct ks_filter *escape = &spec->setup->config->escape;
	int rc = add_namespaces(spec->setup, offer);

	if (rc < 0)
		return rc;
	if (spec->setup->landlock >= 0)
		add(offer, KS_JOIN_LANDLOCK, spec->setup->landlock);
	add(offer, KS_JOIN_CWD, spec->cwd);
	for (int i = 0; i < 3; i++)
		add(offer, KS_JOIN_STDIN + (enum ks_join_slot)i, spec->stdio[i]);
	add(offer, KS_JOIN_RESULT, spec->result_fd);
	memcpy(offer->filter, escape->code, escape->count * sizeof(escape->code[0]));
	offer->head.filter_count = escape->count;
	return 0;
}

/* ---- who came ---- */

struct answer {
	struct ks_joined word;
	struct ucred who;
	int listener;
};

static ssize_t read_answer(int sock, struct answer *ret)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { &ret->word, sizeof(ret->word) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof(control.room) };
	ssize_t n;

	do
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	for (struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL; c; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS)
			memcpy(&ret->who, CMSG_DATA(c), sizeof(ret->who));
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
			memcpy(&ret->listener, CMSG_DATA(c), sizeof(int));
	}
	return n < 0 ? -errno : n;
}

static ssize_t read_status(const char *path, char *text, size_t size)
{
	KS_AUTOCLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	text[n > 0 ? n : 0] = '\0';
	return n;
}

static long filters(const char *status)
{
	static const char key[] = "\nSeccomp_filters:\t";
	const char *at = strstr(status, key);

	return at ? strtol(at + sizeof(key) - 1, NULL, 10) : -1;
}

long ks_join_filters(void)
{
	char status[4096];

	return read_status("/proc/self/status", status, sizeof(status)) > 0 ? filters(status) : -1;
}

/* The kernel's word (proc_pid_status(5)): a child of ours without any power, under the filters of the template, of the zygote and of the
 * box. A name cannot forge a line: its line feeds are escaped. */
static const char *what_is_wrong_with(int pid, long template_filters)
{
	static const char *const lines[] = { "\nPPid:\t1\n",	"\nThreads:\t1\n", "\nNoNewPrivs:\t1\n", "\nSeccomp:\t2\n",
					     "\nCapInh:\t0000000000000000\n", "\nCapPrm:\t0000000000000000\n",
					     "\nCapEff:\t0000000000000000\n", "\nCapBnd:\t0000000000000000\n",
					     "\nCapAmb:\t0000000000000000\n" };
	char path[40], status[4096];

	(void)snprintf(path, sizeof(path), "/proc/%d/status", pid);
	if (read_status(path, status, sizeof(status)) <= 0)
		return "its status cannot be read";
	for (size_t i = 0; i < KS_COUNT(lines); i++)
		if (!strstr(status, lines[i]))
			return lines[i] + 1;
	return template_filters > 0 && filters(status) == template_filters + 2 ? NULL : "Seccomp_filters";
}

/* No notification has the number 0 (seccomp_unotify(2)). */
static bool is_listener(int fd)
{
	uint64_t none = 0;

	return fd >= 0 && ioctl(fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &none) < 0 && errno == ENOENT;
}

/* ---- both ---- */

static pid_t admit(const struct ks_join_spec *spec, struct answer *answer, int *ret_pidfd, struct ks_error *err)
{
	ssize_t n = read_answer(spec->sock, answer);

	if (n != (ssize_t)sizeof(answer->word))
		return refuse(err, n < 0 ? (int)-n : EPIPE, "the zygote ended");
	answer->word.step[sizeof(answer->word.step) - 1] = '\0';
	for (char *at = answer->word.step; *at; at++)
		if (*at < ' ' || *at > '~')
			*at = '?'; /* whose word it is, is not known yet */
	if (answer->word.error != 0)
		return refuse(err, answer->word.error, answer->word.step);
	if (answer->who.pid <= 1)
		return refuse(err, ESRCH, "it is not in the box");
	if (!is_listener(answer->listener))
		return refuse(err, EBADF, "it has no listener");
	*ret_pidfd = ks_pidfd_open(answer->who.pid);
	if (*ret_pidfd < 0)
		return refuse(err, errno, "pidfd");
	const char *wrong = what_is_wrong_with(answer->who.pid, spec->setup->filters);
	return wrong ? refuse(err, EPERM, wrong) : answer->who.pid;
}

pid_t ks_join_admit(const struct ks_join_spec *spec, int *ret_pidfd, int *ret_listener, struct ks_error *err)
{
	static struct offer offer; /* a box does this once */
	struct answer answer = { .listener = -1 };
	const int on = 1;

	int rc = setsockopt(spec->sock, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0 ? -errno : make_offer(spec, &offer);
	if (rc < 0)
		return refuse(err, -rc, "namespaces");
	const size_t len = sizeof(offer.head) + offer.head.filter_count * sizeof(offer.filter[0]);
	_Static_assert(offsetof(struct offer, filter) == sizeof(struct ks_join), "one message");
	rc = ks_send(spec->sock, &offer, len, offer.fds, offer.nfds, 0);
	ks_close_all(offer.fds, offer.nfds); /* the caller's with them: a second holder would hide their end */
	if (rc < 0)
		return refuse(err, -rc, "the zygote ended");
	pid_t pid = admit(spec, &answer, ret_pidfd, err);
	*ret_listener = answer.listener;
	return pid;
}
