/* fork.c: what python cannot say of a zygote's work: forks this interpreter into a box (base/join.h has the words, box/join.c the
 * other end).
 *
 * The process that comes in must be a child of the box's init, so that its end is init's to tell. So it is a grandchild: the child
 * in between enters the box, gives up all power, loads the box's filter, forks, and ends; whom it leaves behind is adopted by the
 * init of the pid namespace (pid_namespaces(7)). It borrows this process's memory until then (vfork(2)), so that only one page table
 * is copied.
 *
 * Of libc only functions that every one has, unversioned, and no library is linked: with python's limited API (PEP 384) one object
 * serves glibc and musl, and every python since 3.8. */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03080000
#include <Python.h>

#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sidecar/base/join.h"

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5) /* 5.19 */
#endif
#define LANDLOCK_RESTRICT_SELF 446 /* as a header of before 5.13 does not know it; all architectures have this number */
#define FRAME_HEADER 24
#define FRAME_TYPE 5 /* where in the header */
#define FRAME_CALL 8

int setns(int fd, int flags);
int capset(struct __user_cap_header_struct *head, const struct __user_cap_data_struct *data);

struct offer {
	struct ks_join head;
	struct sock_filter filter[KS_JOIN_FILTER_MAX];
};

/* All of one fork. Static: it is large, and both processes of a vfork see the same. */
static struct {
	int sock;	   /* to the init of the box */
	int cgroups[KS_JOIN_FDS_MAX], cgroup_count;
	int slots[KS_JOIN_SLOTS]; /* -1: the box has none */
	struct offer offer;
	int listener;
	PyOS_sighandler_t at_child; /* what a child that ends did before serve() */
} work;

/* How many bytes; descriptors that came beside them. 0 when the other end is gone. */
static long receive(int sock, void *ret, size_t size, int fds[KS_JOIN_FDS_MAX], int *ret_count)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(KS_JOIN_FDS_MAX * sizeof(int))];
	} control;
	struct iovec iov = { ret, size };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof(control.room) };
	long n;

	do
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	*ret_count = 0;
	if (n > 0 && msg.msg_controllen >= CMSG_LEN(0) && control.align.cmsg_type == SCM_RIGHTS)
		*ret_count = (int)((control.align.cmsg_len - CMSG_LEN(0)) / sizeof(int));
	for (int i = 0; i < *ret_count; i++)
		fds[i] = ((int *)CMSG_DATA(&control.align))[i];
	return n < 0 ? 0 : n;
}

static void answer(int error, const char *step, int listener)
{
	struct ks_joined word = { .error = error };
	struct iovec iov = { &word, sizeof(word) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .align = { .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };

	for (unsigned i = 0; step[i] && i < sizeof(word.step) - 1; i++)
		word.step[i] = step[i];
	if (listener >= 0) {
		*(int *)CMSG_DATA(&control.align) = listener;
		msg.msg_control = control.room;
		msg.msg_controllen = sizeof(control.room);
	}
	(void)sendmsg(work.sock, &msg, MSG_NOSIGNAL);
}

/* ---- the child in between ---- */

/* Ends it, with a word to the box, unless this went well. */
static void must(long rc, const char *step)
{
	if (rc >= 0)
		return;
	answer(errno, step, -1);
	_exit(1);
}

static void enter(void)
{
	static const int kinds[] = { 0, CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUTS, CLONE_NEWCGROUP, CLONE_NEWNET, CLONE_NEWUSER };

	/* "0" is the writer; before the fork, so that the page tables of what is forked are the box's already */
	for (int i = 0; i < work.cgroup_count; i++)
		must(write(work.cgroups[i], "0", 1), "cgroup");
	for (int slot = KS_JOIN_MNT; slot <= KS_JOIN_USER; slot++)
		if (work.slots[slot] >= 0)
			must(setns(work.slots[slot], kinds[slot]), "setns");
	must(fchdir(work.slots[KS_JOIN_CWD]), "working directory");
}

static void lock_down(void)
{
	static const struct __user_cap_data_struct none[2];
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct sock_fprog filter = { (unsigned short)work.offer.head.filter_count, work.offer.filter };

	/* a user namespace comes with a full bounding set; the number behind the last capability is EINVAL */
	for (int c = 0; work.slots[KS_JOIN_USER] >= 0 && prctl(PR_CAPBSET_DROP, c, 0, 0, 0) == 0; c++)
		;
	if (work.slots[KS_JOIN_LANDLOCK] >= 0)
		must(syscall(LANDLOCK_RESTRICT_SELF, work.slots[KS_JOIN_LANDLOCK], 0), "landlock");
	must(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0), "capabilities");
	must(capset(&head, none), "capabilities");
	work.listener = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
				     SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &filter);
	must(work.listener, "filter");
}

/* ---- the one that stays in the box ---- */

static void close_work(void)
{
	for (int i = 0; i < work.cgroup_count; i++)
		(void)close(work.cgroups[i]);
	for (int slot = 0; slot < KS_JOIN_SLOTS; slot++)
		if (work.slots[slot] >= 0)
			(void)close(work.slots[slot]);
	(void)close(work.sock);
}

/* father: as the box numbers it. It must be gone before anything of the call runs: its number is the box's until then. */
static void settle(pid_t father)
{
	(void)setsid();
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* entering a user namespace took it: /proc/self would be root's */
	for (int i = 0; i < 4; i++)
		must(dup2(work.slots[KS_JOIN_STDIN + i], i), "stdio");
	while (kill(father, 0) == 0 || errno != ESRCH)
		(void)syscall(SYS_sched_yield);
	answer(0, "", work.listener);
	(void)close(work.listener);
	close_work();
}

/* In the new process only. It must not be a function that returns before the vfork's child has ended: that runs on our stack. */
static void become(void)
{
	pid_t self = getpid();

	(void)PyOS_setsig(SIGCHLD, work.at_child);
	enter();
	lock_down();
	pid_t pid = fork(); /* libc's: its locks, and what libraries have to do at a fork */
	must(pid, "fork");
	if (pid > 0)
		_exit(0);
	settle(self);
}

/* ---- the zygote ---- */

static int take_offer(void)
{
	int fds[KS_JOIN_FDS_MAX], count, next = 0;
	long n = receive(work.sock, &work.offer, sizeof(work.offer), fds, &count);
	const struct ks_join *join = &work.offer.head;

	for (int slot = 0; slot < KS_JOIN_SLOTS; slot++)
		work.slots[slot] = n >= (long)sizeof(*join) && join->present >> slot & 1 && next < count ? fds[next++] : -1;
	return n >= (long)sizeof(*join) && join->filter_count <= KS_JOIN_FILTER_MAX &&
	       n == (long)(sizeof(*join) + join->filter_count * sizeof(work.offer.filter[0]));
}

/* 1 in the process that is in a box now, 0 in the zygote. */
static int fork_once(void)
{
	PyOS_BeforeFork();
	pid_t pid = vfork();
	if (pid == 0) {
		become();
		PyOS_AfterFork_Child();
		return 1;
	}
	if (pid < 0)
		answer(errno, "vfork", -1);
	else
		(void)waitpid(pid, NULL, 0); /* ECHILD as soon as it is gone */
	PyOS_AfterFork_Parent();
	return 0;
}

static PyObject *serve(PyObject *self, PyObject *args)
{
	unsigned char frame[FRAME_HEADER];
	int channel, fds[KS_JOIN_FDS_MAX], count, forked = 0;

	(void)self;
	if (!PyArg_ParseTuple(args, "i", &channel))
		return NULL;
	/* children that end are gone at once (signal(7)), not when this process gets to wait for them */
	work.at_child = PyOS_setsig(SIGCHLD, SIG_IGN);
	while (!forked) {
		if (receive(channel, frame, sizeof(frame), fds, &count) < FRAME_HEADER)
			_exit(0); /* nobody wants it any more */
		if (frame[FRAME_TYPE] != KS_JOIN_FORK || count < 1)
			continue;
		work.sock = fds[0];
		work.cgroup_count = count - 1;
		for (int i = 1; i < count; i++)
			work.cgroups[i - 1] = fds[i];
		if (!take_offer())
			answer(EPROTO, "offer", -1);
		else if (setns(work.slots[KS_JOIN_PID], CLONE_NEWPID) < 0)
			answer(errno, "pid namespace", -1);
		else
			forked = fork_once();
		if (!forked)
			close_work();
	}
	return PyBool_FromLong(frame[FRAME_CALL]);
}

static PyMethodDef methods[] = {
	{ "serve", serve, METH_VARARGS,
	  "serve(channel) -> bool\n\nForks whenever a message FORK asks for it. Returns in each process that is forked, in its box, and\n"
	  "never in this one, which ends with the channel. True: a call waits already." },
	{ NULL, NULL, 0, NULL },
};

static struct PyModuleDef module = { PyModuleDef_HEAD_INIT, "_kern_fork", NULL, 0, methods, NULL, NULL, NULL, NULL };

PyMODINIT_FUNC PyInit__kern_fork(void)
{
	return PyModule_Create(&module);
}
