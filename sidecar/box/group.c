/* keeper: makes the namespaces, then its two CLONE_PARENT children, and ends. session init: pid 1 of the group's pid namespace.
 * template: its pid 2, because CLONE_PARENT from a pid namespace's init is EINVAL. */
#include "group.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "base/caps.h"
#include "init.h"
#include "join.h"
#include "sys.h"
#include "tree.h"

static struct group_self {
	const struct ks_launcher_config *config;
	const struct ks_plan_view *plan;
	int sock;
	int trees[KS_MSG_FDS], ntrees;
	long filters; /* that the template is under */
} self;

_Noreturn static void fail(const struct ks_error *err)
{
	struct ks_msg msg = { .op = KS_OP_GROUP_FAILED, .u.error = *err };

	(void)ks_send(self.sock, &msg, sizeof(msg), NULL, 0, 0);
	_exit(1);
}

/* Runs one named step; `ok` is false when it failed with errno. */
static void step(const char *name, bool ok)
{
	struct ks_error err;

	if (ok)
		return;
	(void)ks_fail_errno(&err, KS_E_START_FAILED, errno, "cannot prepare a session (%s)", name);
	(void)ks_error_step(&err, name);
	fail(&err);
}

#define STEP(name, condition) step(name, ks_plan_fails(self.plan, name) ? (errno = EIO, false) : (condition))

_Noreturn static void session_init(void)
{
	(void)signal(SIGCHLD, SIG_IGN); /* orphans reap themselves */
	(void)close_range(0, ~0U, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		(void)pause();
}

/* ---- the template ---- */

static void make_box(const struct ks_msg *request, int *fds, int nfds)
{
	struct ks_box_setup setup = { .config = self.config, .plan = self.plan, .sock = fds[0], .flags = request->flags,
				      .landlock = -1, .filters = self.filters };
	struct ks_msg reply = { .op = KS_OP_BOX_MADE, .box = request->box };
	/* a zygote stays in the session's pid namespace: only from above can one be entered (setns(2)) */
	const uint64_t flags = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_PARENT |
			       (request->flags & KS_BOX_ZYGOTE ? 0 : CLONE_NEWPID) | (self.plan->head->shares_network ? 0 : CLONE_NEWNET);
	int pidfd = -1, cgroup = -1;
	pid_t pid = -1;

	for (int i = 1; i < nfds; i++)
		setup.cgroup_procs[setup.cgroup_count++] = fds[i];
	if (request->flags & KS_BOX_INTO_CGROUP)
		cgroup = setup.cgroup_procs[--setup.cgroup_count];
	if (ks_plan_fails(self.plan, "box namespaces"))
		errno = EIO;
	else
		pid = ks_clone3(flags, 0, cgroup, &pidfd);
	/* Not every kernel lets a mapped process be born in a cgroup whose ancestor it may not write; init enters it then. */
	if (pid < 0 && cgroup >= 0)
		pid = ks_clone3(flags, 0, -1, &pidfd);
	else if (cgroup >= 0)
		setup.cgroup_count = 0;
	if (pid == 0)
		ks_init_main(&setup);
	if (pid < 0) {
		(void)ks_fail_errno(&reply.u.error, KS_E_START_FAILED, errno, "cannot make the namespaces of a box");
		(void)ks_error_step(&reply.u.error, "box namespaces");
		(void)ks_error_hint(&reply.u.error, "the limits in /proc/sys/user (max_*_namespaces) may be too low");
	}
	(void)ks_send(self.sock, &reply, sizeof(reply), &pidfd, pid < 0 ? 0 : 1, 0);
	if (pid > 0)
		(void)close(pidfd);
}

/* To a further template of the session, which waits at the other end: it sees an end when there is nothing to send. */
static void send_memory(int sock)
{
	const char *target = ks_plan_memory_target(self.plan);
	KS_AUTOCLOSE int tree = target ? open_tree(AT_FDCWD, target, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC) : -1;
	struct ks_msg msg = { .op = KS_OP_SEND_MEMORY };

	if (tree >= 0)
		(void)ks_send(sock, &msg, sizeof(msg), &tree, 1, MSG_DONTWAIT);
}

static void say_ready(void)
{
	const char *target = ks_plan_memory_target(self.plan);
	KS_AUTOCLOSE int memory = target ? open(target, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
	struct ks_msg msg = { .op = KS_OP_GROUP_READY };

	if (target)
		STEP("memory workspace", memory >= 0);
	(void)ks_send(self.sock, &msg, sizeof(msg), &memory, memory >= 0 ? 1 : 0, 0);
}

_Noreturn static void template_serve(void)
{
	struct ks_msg msg;
	int fds[KS_MSG_FDS], nfds;

	say_ready();
	for (;;) {
		if (ks_recv(self.sock, &msg, sizeof(msg), fds, &nfds, 0) != (ssize_t)sizeof(msg))
			_exit(0);
		if (msg.op == KS_OP_BOX_MAKE && nfds >= 1 && nfds <= 2 + KS_BOX_CGROUPS)
			make_box(&msg, fds, nfds);
		else if (msg.op == KS_OP_SEND_MEMORY && nfds == 1)
			send_memory(fds[0]);
		ks_close_all(fds, nfds);
	}
}

/* Things that the kernel counts for the host's user as well: without a limit of the session's own a box could use them all up, and the
 * caller's editor could watch no file any more (namespaces(7), /proc/sys/user). Nested user namespaces are no business of code. */
static bool limit_user_counts(void)
{
	const struct {
		const char *file, *value;
	} limits[] = {
		{ "/proc/sys/user/max_inotify_instances", "16" },
		{ "/proc/sys/user/max_inotify_watches", "16384" },
		{ "/proc/sys/user/max_fanotify_groups", "0" },
		{ "/proc/sys/user/max_user_namespaces", self.plan->head->box_user_ns ? "4096" : "0" },
	};

	for (size_t i = 0; i < KS_COUNT(limits); i++) {
		KS_AUTOCLOSE int fd = open(limits[i].file, O_WRONLY | O_CLOEXEC);
		if (fd < 0 && errno == ENOENT)
			continue; /* this kernel counts no such thing */
		if (fd < 0 || write(fd, limits[i].value, strlen(limits[i].value)) < 0)
			return false;
	}
	return true;
}

_Noreturn static void template_main(void)
{
	struct ks_error err;
	int rc;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	const int network = self.plan->head->shares_network ? 0 : CLONE_NEWNET;

	STEP("template namespaces", unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | network) == 0);
	if (ks_tree_build(self.plan, self.trees, self.ntrees, &err) < 0)
		fail(&err);
	if (ks_keep_fds(&self.sock, 1) < 0) /* the trees are mounted now */
		_exit(1);
	STEP("user limits", limit_user_counts());
	STEP("no_new_privs", prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	/* of two errnos the younger filter's counts: a call that is not allowed at all is ENOSYS, whatever its arguments */
	for (int i = 1; i >= 0; i--) {
		const struct ks_filter filter = ks_plan_filter(self.plan, i);
		rc = ks_filter_load(&filter);
		errno = -rc;
		STEP(i == 0 ? "allowlist filter" : "arguments filter", rc == 0);
	}
	self.filters = ks_join_filters();
	rc = ks_lend_capabilities(KS_ZYGOTE_CAPS);
	rc = rc < 0 ? rc : ks_drop_bounding_set(self.plan->head->keep_caps);
	errno = -rc;
	STEP("bounding set", rc == 0);
	template_serve();
}

/* ---- the keeper ---- */

/* Root's own id is not in the map: until we become id 0 of the namespace, files we make would belong to nobody. A caller that is
 * not root already is 1000 with every capability. */
static bool take_inner_ids(void)
{
	if (!self.config->is_root)
		return true;
	return setresgid(0, 0, 0) == 0 && setgroups(0, NULL) == 0 && setresuid(0, 0, 0) == 0;
}

_Noreturn void ks_group_main(const struct ks_launcher_config *config, const struct ks_plan_view *plan, int sock,
			     const int *trees, int ntrees)
{
	struct ks_msg msg = { .op = KS_OP_GROUP_MADE };
	int keep[1 + KS_MSG_FDS], pidfds[2] = { -1, -1 };

	keep[0] = sock;
	memcpy(keep + 1, trees, (size_t)ntrees * sizeof(int));
	if (ks_keep_fds(keep, 1 + ntrees) < 0)
		_exit(1);
	self = (struct group_self){ .config = config, .plan = plan, .sock = keep[0], .ntrees = ntrees };
	memcpy(self.trees, keep + 1, (size_t)ntrees * sizeof(int));

	struct ks_msg gate;
	if (ks_recv(self.sock, &gate, sizeof(gate), NULL, NULL, 0) != (ssize_t)sizeof(gate))
		_exit(1);
	STEP("group ids", take_inner_ids());
	STEP("session pid namespace", unshare(CLONE_NEWPID) == 0);
	pid_t init = ks_clone3(CLONE_PARENT, 0, -1, &pidfds[0]);
	if (init == 0)
		session_init();
	STEP("session init", init > 0);
	pid_t template = ks_clone3(CLONE_PARENT, 0, -1, &pidfds[1]);
	if (template == 0)
		template_main();
	(void)ks_send(self.sock, &msg, sizeof(msg), pidfds, template > 0 ? 2 : 1, 0);
	step("template", template > 0);
	_exit(0);
}
