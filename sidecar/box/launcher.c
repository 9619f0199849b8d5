#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/list.h"
#include "group.h"
#include "idmap.h"
#include "sys.h"

#define STRAYS_MS 10 /* a group that is being closed has not ended: look for what nobody told us of */

/* ---- the launcher process ---- */

struct group {
	struct ks_list node;
	uint32_t id;
	int sock; /* to the template, -1 when it is gone */
	int members; /* processes of the group that have not been reaped: init, template, boxes */
	int init;    /* pidfd, to end the group with; owned by the watch */
	bool made, closing;
};

enum source { FROM_CONTROL, FROM_TEMPLATE, FROM_MEMBER };

/* What an epoll event points to; freed when its descriptor is closed. */
struct watch {
	enum source source;
	int fd;
	struct group *group;
	uint32_t box; /* 0: init or template of the group */
	bool is_init;
};

static struct launcher {
	const struct ks_launcher_config *config;
	int control, epoll;
	struct ks_list groups;
} launcher;

static struct watch *watch(enum source source, int fd, struct group *group, uint32_t box)
{
	struct watch *w = calloc(1, sizeof(*w));
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = w };

	if (!w)
		_exit(1);
	*w = (struct watch){ source, fd, group, box, false };
	if (epoll_ctl(launcher.epoll, EPOLL_CTL_ADD, fd, &event) < 0)
		_exit(1);
	return w;
}

/* The sidecar may hold the same open file: closing our number would not end the watch, EPOLL_CTL_DEL must. */
static void unwatch(struct watch *w)
{
	(void)epoll_ctl(launcher.epoll, EPOLL_CTL_DEL, w->fd, NULL);
	(void)close(w->fd);
	free(w);
}

static void tell(uint32_t op, uint32_t group, uint32_t box, const struct ks_error *err)
{
	struct ks_msg msg = { .op = op, .group = group, .box = box };

	if (err)
		msg.u.error = *err;
	if (ks_send(launcher.control, &msg, sizeof(msg), NULL, 0, 0) < 0)
		_exit(0); /* the sidecar is gone, and so is everything below us */
}

static void forget_if_empty(struct group *group)
{
	if (group->members > 0 || group->sock >= 0)
		return;
	tell(KS_OP_GROUP_ENDED, group->id, 0, NULL);
	ks_list_remove(&group->node);
	free(group);
}

static void end_group(struct group *group)
{
	group->closing = true;
	if (group->init >= 0)
		(void)ks_pidfd_kill(group->init, SIGKILL); /* pid 1: the kernel kills template and boxes with it */
}

static void reap(struct watch *w)
{
	struct group *group = w->group;
	siginfo_t info = { 0 };

	/* ECHILD: reap_strays() has met it first */
	if (waitid(P_PIDFD, (id_t)w->fd, &info, WEXITED | WNOHANG | __WALL) < 0 ? errno != ECHILD : info.si_pid == 0)
		return;
	group->members--;
	if (w->box)
		tell(KS_OP_BOX_ENDED, group->id, w->box, NULL);
	else if (w->is_init)
		group->init = -1;
	else
		end_group(group); /* a group without its template is of no use */
	unwatch(w);
	forget_if_empty(group);
}

/* A template that is killed between the clone of a box and the word about it leaves us a child that we do not know. The pid namespace of
 * the session cannot end while that is unreaped (zap_pid_ns_processes, kernel/pid_namespace.c). */
static void reap_strays(void)
{
	siginfo_t info;

	do
		info.si_pid = 0;
	while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | __WALL) == 0 && info.si_pid != 0);
}

static bool any_closing(void)
{
	for (struct ks_list *n = launcher.groups.next; n != &launcher.groups; n = n->next)
		if (KS_ENTRY(n, struct group, node)->closing)
			return true;
	return false;
}

static struct group *find_group(uint32_t id)
{
	for (struct ks_list *n = launcher.groups.next; n != &launcher.groups; n = n->next)
		if (KS_ENTRY(n, struct group, node)->id == id)
			return KS_ENTRY(n, struct group, node);
	return NULL;
}

/* What the template (and before it the keeper) says. */
static void from_template(struct watch *w)
{
	struct group *group = w->group;
	struct ks_msg msg;
	int fds[KS_MSG_FDS], nfds;

	if (ks_recv(w->fd, &msg, sizeof(msg), fds, &nfds, 0) != (ssize_t)sizeof(msg)) {
		group->sock = -1;
		unwatch(w);
		end_group(group);
		forget_if_empty(group);
		return;
	}
	msg.group = group->id; /* a template speaks for its own group only */
	if (msg.op == KS_OP_GROUP_MADE && nfds >= 1 && !group->made) {
		group->made = true;
		group->members += nfds;
		group->init = fds[0];
		watch(FROM_MEMBER, fds[0], group, 0)->is_init = true;
		for (int i = 1; i < nfds; i++)
			watch(FROM_MEMBER, fds[i], group, 0);
		if (group->closing)
			end_group(group);
		return;
	}
	if (ks_send(launcher.control, &msg, sizeof(msg), fds, nfds, 0) < 0)
		_exit(0);
	if (msg.op == KS_OP_BOX_MADE && nfds == 1 && msg.box != 0) {
		group->members++;
		watch(FROM_MEMBER, fds[0], group, msg.box);
		return;
	}
	ks_close_all(fds, nfds);
}

static int start_group(struct group *group, const int *fds, int nfds, struct ks_error *err)
{
	struct ks_plan_view plan;
	int pair[2], pidfd = -1, status;
	struct ks_msg gate = { 0 };

	if (nfds < 1 || ks_plan_open(fds[0], &plan, err) < 0)
		return ks_fail(err, KS_E_INTERNAL, "a group needs a plan");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return ks_fail_errno(err, KS_E_START_FAILED, errno, "cannot make the group's socket");
	/* Exit signal 0: CLONE_PARENT children inherit it, so nothing but __WALL reaps them. */
	pid_t keeper = ks_plan_fails(&plan, "user namespace") ? (errno = EIO, -1) : ks_clone3(CLONE_NEWUSER, 0, -1, &pidfd);
	if (keeper < 0) {
		int saved = errno;
		ks_close_all(pair, 2);
		(void)ks_fail_errno(err, KS_E_HOST_UNSUPPORTED, saved, "cannot make a user namespace");
		return ks_error_step(err, "user namespace");
	}
	if (keeper == 0)
		ks_group_main(launcher.config, &plan, pair[1], fds + 1, nfds - 1);
	(void)close(pair[1]);
	group->sock = pair[0];
	int rc = ks_plan_fails(&plan, "id map") ?
			 (ks_fail(err, KS_E_START_FAILED, "test: id map"), ks_error_step(err, "id map")) :
			 ks_write_id_maps(pidfd, plan.head->uid_map, plan.head->gid_map, plan.head->map_count,
					  !launcher.config->is_root, err);
	if (rc == 0)
		(void)ks_send(pair[0], &gate, sizeof(gate), NULL, 0, 0);
	else
		(void)shutdown(pair[0], SHUT_RDWR); /* the keeper reads an end and goes */
	(void)close(pidfd);
	while (waitpid(keeper, &status, __WALL) < 0 && errno == EINTR)
		;
	ks_plan_close(&plan);
	return rc;
}

static void open_group(uint32_t id, const int *fds, int nfds)
{
	struct group *group = calloc(1, sizeof(*group));
	struct ks_error err;

	if (!group)
		_exit(1);
	*group = (struct group){ .id = id, .sock = -1, .init = -1 };
	ks_list_append(&launcher.groups, &group->node);
	if (start_group(group, fds, nfds, &err) < 0) {
		tell(KS_OP_GROUP_FAILED, id, 0, &err);
		ks_close(&group->sock);
		forget_if_empty(group);
		return;
	}
	watch(FROM_TEMPLATE, group->sock, group, 0);
}

static void from_control(void)
{
	struct ks_msg msg;
	struct ks_error err;
	int fds[KS_MSG_FDS], nfds;

	if (ks_recv(launcher.control, &msg, sizeof(msg), fds, &nfds, 0) != (ssize_t)sizeof(msg))
		_exit(0);
	struct group *group = find_group(msg.group);
	if (msg.op == KS_OP_GROUP_OPEN) {
		open_group(msg.group, fds, nfds);
	} else if (msg.op == KS_OP_GROUP_CLOSE && group) {
		end_group(group);
	} else if (msg.op == KS_OP_SEND_MEMORY && group && group->sock >= 0) {
		(void)ks_send(group->sock, &msg, sizeof(msg), fds, nfds, 0);
	} else if (msg.op == KS_OP_BOX_MAKE) {
		if (!group || group->sock < 0 || group->closing ||
		    ks_send(group->sock, &msg, sizeof(msg), fds, nfds, 0) < 0) {
			(void)ks_fail(&err, KS_E_START_FAILED, "the session's template is gone");
			tell(KS_OP_BOX_MADE, msg.group, msg.box, &err);
		}
	}
	ks_close_all(fds, nfds);
}

_Noreturn static void serve(void)
{
	struct epoll_event events[1]; /* one at a time: handling one may free what another points to */

	for (;;) {
		int n = epoll_wait(launcher.epoll, events, 1, any_closing() ? STRAYS_MS : -1);
		if (n == 0)
			reap_strays();
		if (n < 1)
			continue;
		struct watch *w = events[0].data.ptr;
		if (w->source == FROM_CONTROL)
			from_control();
		else if (w->source == FROM_TEMPLATE)
			from_template(w);
		else
			reap(w);
	}
}

/* The sidecar's loop may ignore or block signals; ignored ones and the mask survive exec. */
static void reset_signals(void)
{
	sigset_t none;

	for (int s = 1; s < NSIG; s++)
		(void)signal(s, SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* /proc/1/cmdline of a box is a copy of ours, and readable whatever the dumpable bit says. */
static void hide_arguments(const struct ks_launcher_config *config)
{
	static const char name[] = "kern-box";

	memset(config->arguments, 0, config->arguments_len);
	memcpy(config->arguments, name, sizeof(name) < config->arguments_len ? sizeof(name) : 0);
	(void)prctl(PR_SET_NAME, name);
}

_Noreturn static void launcher_main(const struct ks_launcher_config *config, int control)
{
	struct ks_msg msg;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	launcher.config = config;
	launcher.control = control;
	launcher.epoll = epoll_create1(EPOLL_CLOEXEC);
	ks_list_init(&launcher.groups);
	hide_arguments(config);
	reset_signals();
	(void)setsid();
	(void)umask(022);
	if (chdir("/") < 0)
		_exit(1);
	for (int i = 0; i < 3; i++)
		(void)dup2(null, i);
	(void)close(null);
	/* the gate: our ids are mapped now; PDEATHSIG after it, because a change of ids clears it */
	if (ks_recv(control, &msg, sizeof(msg), NULL, NULL, 0) != (ssize_t)sizeof(msg))
		_exit(1);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	tell(KS_OP_GROUP_READY, 0, 0, NULL);
	watch(FROM_CONTROL, control, NULL, 0);
	serve();
}

static int explain_clone(struct ks_error *err, int sys_errno)
{
	(void)ks_fail_errno(err, KS_E_HOST_UNSUPPORTED, sys_errno, "cannot make the namespaces of the launcher");
	(void)ks_error_step(err, "launcher namespaces");
	if (sys_errno == ENOSPC || sys_errno == EUSERS) /* namespaces(7): a limit of /proc/sys/user was hit */
		return ks_error_hint(err, "raise user.max_user_namespaces and user.max_pid_namespaces (sysctl)");
	if (sys_errno == EPERM)
		return ks_error_hint(err, "unprivileged user namespaces are switched off here: set kernel.unprivileged_userns_clone=1 "
					  "(Debian), kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu), or relax the "
					  "container's seccomp profile");
	return -1;
}

int ks_launcher_start(const struct ks_launcher_config *config, int *ret_control, pid_t *ret_pid, struct ks_error *err)
{
	struct ks_id_range uids = { KS_BOX_UID, config->uid, 1 }, gids = { KS_BOX_UID, config->gid, 1 };
	struct ks_msg msg = { 0 };
	int pair[2], pidfd = -1;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return ks_fail_errno(err, KS_E_INTERNAL, errno, "socketpair");
	bool fails = KS_TEST_HOOKS && strcmp(config->fail_step, "launcher namespaces") == 0;
	pid_t pid = fails ? (errno = EIO, -1) :
			    ks_clone3(CLONE_NEWPID | (config->is_root ? 0 : CLONE_NEWUSER), SIGCHLD, -1, &pidfd);
	if (pid < 0) {
		int saved = errno;
		ks_close_all(pair, 2);
		return explain_clone(err, saved);
	}
	if (pid == 0) {
		(void)close_range(3, (unsigned)pair[1] - 1, 0); /* nothing of the sidecar's, above all its end */
		(void)close_range((unsigned)pair[1] + 1, ~0U, 0);
		launcher_main(config, pair[1]);
	}
	(void)close(pair[1]);
	int rc = config->is_root ? 0 : ks_write_id_maps(pidfd, &uids, &gids, 1, true, err);
	(void)close(pidfd);
	if (rc == 0 && (ks_send(pair[0], &msg, sizeof(msg), NULL, 0, 0) < 0 ||
			ks_recv(pair[0], &msg, sizeof(msg), NULL, NULL, 0) != (ssize_t)sizeof(msg)))
		rc = ks_fail(err, KS_E_INTERNAL, "the launcher ended while it started");
	if (rc < 0) {
		(void)close(pair[0]);
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
		return -1;
	}
	*ret_control = pair[0];
	*ret_pid = pid;
	return 0;
}
