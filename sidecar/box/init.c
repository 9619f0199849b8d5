#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/caps.h"
#include "command.h"
#include "landlock.h"
#include "sys.h"
#include "tree.h"

/* ---- set-up, a list of named steps: a failure names its step and no code has run ---- */

struct init {
	struct ks_box_setup *setup;
	int listener;
	struct ks_error err; /* filled by a step that has more to say than an errno */
};

static bool is_zygote(const struct init *init)
{
	return init->setup->flags & KS_BOX_ZYGOTE;
}

static int step_network(struct init *init)
{
	struct ifreq request = { .ifr_flags = IFF_UP };

	if (init->setup->plan->head->shares_network)
		return 0;
	KS_AUTOCLOSE int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	memcpy(request.ifr_name, "lo", 3);
	return sock < 0 || ioctl(sock, SIOCSIFFLAGS, &request) < 0 ? -errno : 0;
}

/* "0" is the writer, and the right to move it is checked against the opener, the sidecar (cgroup-v2.rst; CVE-2021-4197), so no pid
 * has to be translated between namespaces. The namespace comes after the attach: made before, the box would see paths above itself. */
static int step_cgroup(struct init *init)
{
	for (int i = 0; i < init->setup->cgroup_count; i++)
		if (write(init->setup->cgroup_procs[i], "0", 1) != 1)
			return -errno;
	return unshare(CLONE_NEWCGROUP) < 0 ? -errno : 0;
}

static int step_hostname(struct init *init)
{
	const char *name = ks_plan_string(init->setup->plan, init->setup->plan->head->hostname);

	return sethostname(name, strlen(name)) < 0 ? -errno : 0;
}

static int step_mounts(struct init *init)
{
	return ks_tree_box_mounts(init->setup->plan, &init->err) < 0 ? -EIO : 0;
}

/* Ids first. What is kept must outlive the change (prctl(2), PR_SET_KEEPCAPS). */
static int step_identity(struct init *init)
{
	const struct ks_plan_head *head = init->setup->plan->head;
	const uid_t uid = head->box_uid;
	const gid_t gid = head->box_gid;

	if ((head->keep_caps || is_zygote(init)) && prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
		return -errno;
	if (!init->setup->config->is_root)
		return 0; /* the map has one id, and we are it */
	return setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0 ? -errno : 0;
}

/* A file system of the box's own is mounted there; made with the box user's id, so that it owns it. */
static int step_home(struct init *init)
{
	(void)init;
	return mkdir(KS_HOME_DIR, 0755) < 0 && errno != EEXIST ? -errno : 0;
}

/* Code has init's uid. Not dumpable: /proc/1/mem, fd, environ are closed to it (ptrace(2)). PDEATHSIG comes after set*id, which clears
 * it; it is a second line only, the launcher's pid namespace is the first. */
static int step_protect(struct init *init)
{
	(void)init;
	return prctl(PR_SET_DUMPABLE, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ? -errno : 0;
}

/* In init, not in pid 2: both are covered. */
static int step_filter(struct init *init)
{
	if (is_zygote(init))
		return ks_filter_load(&init->setup->config->zygote);
	init->listener = ks_filter_load_listener(&init->setup->config->escape);
	return init->listener < 0 ? init->listener : 0;
}

static int write_file(const char *path, const char *text)
{
	KS_AUTOCLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd < 0 || write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

/* As the box's user already, so that it may map its own id and no other (user_namespaces(7)), and with what power there is still: id 0
 * may be mapped only by who had CAP_SETFCAP at this moment. The power that comes with the namespace is over nothing: every other
 * namespace of the box belongs to the session's. */
static int step_user_namespace(struct init *init)
{
	const struct ks_plan_head *head = init->setup->plan->head;
	char uids[40], gids[40];

	if (!(init->setup->flags & KS_BOX_OWN_USER_NS))
		return 0;
	/* setresuid made us undumpable, and /proc/self not ours to write: until `protect init` that does not matter, no code is here yet */
	if (unshare(CLONE_NEWUSER) < 0 || prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		return -errno;
	(void)snprintf(uids, sizeof(uids), "%u %u 1", head->box_uid, head->box_uid);
	(void)snprintf(gids, sizeof(gids), "%u %u 1", head->box_gid, head->box_gid);
	int rc = write_file("/proc/self/setgroups", "deny");
	rc = rc < 0 ? rc : write_file("/proc/self/uid_map", uids);
	rc = rc < 0 ? rc : write_file("/proc/self/gid_map", gids);
	rc = rc < 0 ? rc : write_file("/proc/sys/user/max_user_namespaces", "0");
	return rc < 0 ? rc : ks_drop_bounding_set(head->keep_caps);
}

/* The last credential change. pid 2 inherits it, so nothing with power exists beside code; the bounding set and no_new_privs came
 * with the template. */
static int step_capabilities(struct init *init)
{
	return is_zygote(init) ? ks_pass_capabilities(KS_ZYGOTE_CAPS) : ks_drop_capabilities(init->setup->plan->head->keep_caps);
}

/* Of a zygote it would confine what that brings into boxes, whose places are others: they get their own there (join.c). */
static int step_landlock(struct init *init)
{
	int ruleset = is_zygote(init) ? -ENOSYS : ks_landlock_ruleset(init->setup->plan);

	if (ruleset < 0)
		return ruleset == -ENOSYS ? 0 : ruleset;
	init->setup->landlock = ruleset; /* for who may come in */
	return ks_landlock_enforce(ruleset);
}

static const struct {
	const char *name;
	int (*run)(struct init *init);
} steps[] = {
	{ "network", step_network },   { "cgroup", step_cgroup }, { "hostname", step_hostname },
	{ "box mounts", step_mounts }, { "identity", step_identity },
	{ "box user namespace", step_user_namespace }, { "capabilities", step_capabilities }, { "home", step_home },
	{ "landlock", step_landlock },
	{ "protect init", step_protect }, { "escape filter", step_filter },
};

_Noreturn static void report_failure(int sock, const struct ks_error *err)
{
	struct ks_msg msg = { .op = KS_OP_FAILED, .u.error = *err };

	(void)ks_send(sock, &msg, sizeof(msg), NULL, 0, 0);
	_exit(1);
}

static void set_up(struct init *init)
{
	struct ks_msg ready = { .op = KS_OP_READY };

	for (size_t i = 0; i < KS_COUNT(steps); i++) {
		int rc = ks_plan_fails(init->setup->plan, steps[i].name) ? -EIO : steps[i].run(init);
		if (rc == 0)
			continue;
		if (init->err.reason == KS_E_NONE) {
			(void)ks_fail_errno(&init->err, KS_E_START_FAILED, -rc, "cannot set up the box (%s)", steps[i].name);
			(void)ks_error_step(&init->err, steps[i].name);
		}
		report_failure(init->setup->sock, &init->err);
	}
	(void)ks_send(init->setup->sock, &ready, sizeof(ready), &init->listener, is_zygote(init) ? 0 : 1, 0);
	/* Everything else goes, above all the listener: a second holder would keep a lost one looking alive. */
	int keep[] = { init->setup->sock, init->setup->landlock };
	if (ks_keep_fds(keep, keep[1] < 0 ? 1 : 2) < 0)
		_exit(1);
	init->setup->sock = keep[0];
	init->setup->landlock = keep[1];
}

_Noreturn void ks_init_main(struct ks_box_setup *setup)
{
	struct init init = { .setup = setup, .listener = -1 };
	struct ks_error err = { 0 };
	struct ks_msg msg;

	(void)signal(SIGCHLD, SIG_DFL);
	set_up(&init);
	ks_command_set_up(setup);
	int rc = ks_command_claim(setup->sock, &err);
	if (rc > 0)
		_exit(0); /* the socket ended: nobody wants this box */
	if (rc < 0)
		report_failure(setup->sock, &err);
	rc = ks_command_run(setup->sock, &msg, &err);
	if (rc < 0)
		report_failure(setup->sock, &err);
	(void)ks_send(setup->sock, &msg, sizeof(msg), NULL, 0, 0);
	_exit(0); /* the kernel kills whatever is left in this pid namespace */
}

void ks_init_print_steps(const struct ks_plan *plan, struct ks_buf *out)
{
	for (size_t i = 0; i < KS_COUNT(steps); i++) {
		ks_buf_printf(out, "box      %s\n", steps[i].name);
		if (steps[i].run == step_mounts)
			ks_plan_print(plan, KS_PLAN_BOX, out);
	}
	for (size_t i = 0; i < KS_COMMAND_STEPS; i++)
		ks_buf_printf(out, "command  %s\n", ks_command_steps[i]);
}
