/* doctor_cause.c: puts the checks together, and finds which of them explains a probe that failed. A table maps step and
 * errno to checks, most likely first; the files of the host decide between them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "proto/write.h"
#include "session/doctor_checks.h"

/* Which findings a rule believes. */
enum evidence {
	FOUND,	/* the check has failed, warns, or is under suspicion */
	ALWAYS, /* step and errno say enough */
};

enum errnos { ANY, REFUSED, USED_UP, NO_ROOM_FOR_TASKS, NO_DESCRIPTORS, IS_BUSY, UNKNOWN_CALL, IS_MISSING };

static const struct rule {
	const char *step; /* "" any; else how the step's name begins */
	enum errnos errnos;
	const char *check;
	enum evidence evidence;
} rules[] = {
	/* no kernel, or too old a one: every step may fail, in any way */
	{ "", ANY, "wsl", FOUND },
	{ "", ANY, "gvisor", FOUND },
	/* things that are not there, or may not be run */
	{ "", ANY, "state_directory", FOUND },
	{ "bind /dev/", ANY, "devices", FOUND },
	{ "", IS_MISSING, "devices", FOUND },
	{ "exec", ANY, "usr", FOUND },
	/* namespaces(7): a limit of /proc/sys/user answers ENOSPC, and EUSERS before 4.9 */
	{ "", USED_UP, "max_user_namespaces", FOUND },
	{ "", USED_UP, "max_pid_namespaces", FOUND },
	{ "", USED_UP, "max_mnt_namespaces", FOUND },
	{ "", USED_UP, "max_net_namespaces", FOUND },
	{ "", USED_UP, "max_ipc_namespaces", FOUND },
	{ "", USED_UP, "max_uts_namespaces", FOUND },
	{ "", USED_UP, "max_cgroup_namespaces", FOUND },
	/* the limit may be an outer user namespace's, which cannot be read from here */
	{ "launcher namespaces", USED_UP, "max_user_namespaces", ALWAYS },
	{ "user namespace", USED_UP, "max_user_namespaces", ALWAYS },
	{ "session pid namespace", USED_UP, "max_pid_namespaces", ALWAYS },
	{ "box user namespace", USED_UP, "max_user_namespaces", ALWAYS },
	{ "cgroup", USED_UP, "max_cgroup_namespaces", ALWAYS },
	{ "template namespaces", USED_UP, "max_net_namespaces", ALWAYS },
	{ "box namespaces", USED_UP, "max_net_namespaces", ALWAYS },
	{ "", NO_ROOM_FOR_TASKS, "process_limit", ALWAYS },
	{ "", NO_DESCRIPTORS, "open_files", ALWAYS },
	{ "escape filter", IS_BUSY, "seccomp_listener", ALWAYS },
	{ "escape filter", ANY, "seccomp_notify", FOUND },
	{ "", UNKNOWN_CALL, "kernel", FOUND },
	{ "", UNKNOWN_CALL, "namespaces", FOUND },
	{ "pivot_root", UNKNOWN_CALL, "root_mount", FOUND },
	/* refused: who may make namespaces at all */
	{ "launcher namespaces", REFUSED, "root_capabilities", FOUND },
	{ "launcher namespaces", REFUSED, "userns_clone", FOUND },
	{ "id map", REFUSED, "id_range", FOUND },
	{ "group ids", ANY, "id_range", FOUND },
	{ "launcher namespaces", REFUSED, "root_mount", FOUND },
	{ "user namespace", REFUSED, "root_mount", FOUND },
	/* the kernel's own rule, whoever confines us */
	{ "session proc", REFUSED, "proc_masked", FOUND },
	{ "proc ", REFUSED, "proc_masked", FOUND },
	/* a user namespace without powers: any step that needs one may be the first to fail */
	{ "", REFUSED, "apparmor_userns", FOUND },
	{ "propagation", REFUSED, "mount_propagation", ALWAYS },
	{ "", REFUSED, "seccomp_profile", FOUND },
	{ "", UNKNOWN_CALL, "seccomp_profile", FOUND }, /* some profiles answer ENOSYS */
	{ "", REFUSED, "apparmor_profile", FOUND },
	{ "", REFUSED, "selinux", FOUND },
	{ "network", REFUSED, "loopback", ALWAYS },
	/* clone(2): what is left is a chroot, which cannot be seen when its root is a mount */
	{ "launcher namespaces", REFUSED, "root_mount", ALWAYS },
	{ "user namespace", REFUSED, "root_mount", ALWAYS },
};

static bool has_errno(enum errnos errnos, int number)
{
	switch (errnos) {
	case ANY:
		return true;
	case REFUSED:
		return number == EPERM || number == EACCES;
	case USED_UP:
		return number == ENOSPC || number == EUSERS;
	case NO_ROOM_FOR_TASKS:
		return number == EAGAIN;
	case NO_DESCRIPTORS:
		return number == EMFILE || number == ENFILE;
	case IS_BUSY:
		return number == EBUSY;
	case UNKNOWN_CALL:
		return number == ENOSYS || number == EINVAL;
	case IS_MISSING:
		return number == ENOENT || number == ENODEV || number == ENXIO;
	}
	return false;
}

static struct ks_check *find(struct ks_checks *checks, const char *id)
{
	for (size_t i = 0; i < checks->count; i++)
		if (strcmp(checks->items[i].id, id) == 0)
			return &checks->items[i];
	return NULL;
}

/* NULL: nothing that is known explains it. */
static struct ks_check *find_cause(const struct ks_error *probe, struct ks_checks *checks)
{
	for (size_t i = 0; i < KS_COUNT(rules); i++) {
		const struct rule *rule = &rules[i];
		struct ks_check *check = find(checks, rule->check);
		bool found = check && (check->suspect || check->status == KS_CHECK_FAIL ||
				       (check->status == KS_CHECK_WARN && !check->blocks && rule->errnos != ANY));
		if (check && strncmp(probe->step, rule->step, strlen(rule->step)) == 0 &&
		    has_errno(rule->errnos, probe->sys_errno) && (rule->evidence == ALWAYS || found))
			return check;
	}
	for (size_t i = 0; i < checks->count; i++) /* no rule: what would stop every box explains this one, too */
		if (checks->items[i].blocks && checks->items[i].status == KS_CHECK_FAIL)
			return &checks->items[i];
	return NULL;
}

/* A busy sidecar says nothing about its host. */
static bool was_not_tried(const struct ks_error *probe)
{
	return probe->sys_errno == 0 && (probe->reason == KS_E_OVERLOADED || probe->reason == KS_E_CANCELLED);
}

static void describe_probe(const struct ks_doctor_facts *facts, const struct ks_check *cause, struct ks_check *box)
{
	ks_check_wanted(box, "a box with every layer starts");
	if (!facts->probe) {
		ks_check_found(box, KS_CHECK_OK, "started in %lld us, with every layer", (long long)facts->start_us);
		return;
	}
	if (was_not_tried(facts->probe)) {
		ks_check_found(box, KS_CHECK_WARN, "not tried: %s", facts->probe->text);
		ks_check_fix(box, "ask again when fewer runs are going on");
		return;
	}
	ks_check_found(box, KS_CHECK_FAIL, "step '%s': %s%s%s",
		       facts->probe->step[0] ? facts->probe->step : "before the first", facts->probe->text,
		       cause ? "; most likely cause: " : "", cause ? cause->id : "");
	if (cause)
		ks_check_fix(box, "see %s", cause->id);
	else if (facts->probe->hint[0])
		ks_check_fix(box, "%s", facts->probe->hint);
	else if (has_errno(REFUSED, facts->probe->sys_errno) && ks_facts_container(facts))
		ks_check_fix(box,
			     "no check explains it, but this is a container, which may forbid it: " KS_CONTAINER_CURE);
	else
		ks_check_fix(
			box,
			"no check explains it; kern-sidecar run --plan lists the steps, and strace -f -o trace.txt "
			"kern-sidecar doctor shows the call that failed");
}

/* What looked right by itself is not, or the step would not have failed. */
static void blame(const struct ks_error *probe, struct ks_check *cause)
{
	size_t at = strlen(cause->found);

	if (cause->status == KS_CHECK_OK)
		(void)snprintf(cause->found + at, sizeof(cause->found) - at, "; but step '%s' failed", probe->step);
	cause->status = KS_CHECK_FAIL;
}

static void move_to_front(struct ks_checks *checks, struct ks_check *check)
{
	struct ks_check first = *check;

	memmove(checks->items + 1, checks->items, (size_t)(check - checks->items) * sizeof(first));
	checks->items[0] = first;
}

/* What should stop boxes but evidently does not is no trouble. */
static void overrule(struct ks_check *check)
{
	static const char note[] = "; boxes start all the same";
	size_t at = strlen(check->found);

	if (!check->blocks || check->status == KS_CHECK_OK)
		return;
	check->status = KS_CHECK_OK;
	(void)snprintf(check->found + at, sizeof(check->found) - at, "%s", note);
}

void ks_doctor_examine(const struct ks_doctor_facts *facts, struct ks_checks *ret)
{
	struct ks_check *cause = NULL;

	ret->count = 0;
	(void)ks_check_new(ret, "box");
	ks_checks_kernel(facts, ret);
	ks_checks_around(facts, ret);
	ks_checks_namespaces(facts, ret);
	ks_checks_confinement(facts, ret);
	ks_checks_files(facts, ret);
	ks_checks_amounts(facts, ret);
	ks_checks_cgroups(facts, ret);
	if (facts->probe && !was_not_tried(facts->probe))
		cause = find_cause(facts->probe, ret);
	describe_probe(facts, cause, &ret->items[0]);
	for (size_t i = 0; i < ret->count && !facts->probe; i++)
		overrule(&ret->items[i]);
	if (cause) {
		blame(facts->probe, cause);
		move_to_front(ret, cause);
	}
}

bool ks_checks_ok(const struct ks_checks *checks)
{
	for (size_t i = 0; i < checks->count; i++)
		if (checks->items[i].status == KS_CHECK_FAIL)
			return false;
	return true;
}

void ks_checks_write(const struct ks_checks *checks, struct ks_buf *json)
{
	static const char *const names[] = { "ok", "warn", "fail" };

	ks_write_open(json, '[');
	for (size_t i = 0; i < checks->count; i++) {
		const struct ks_check *check = &checks->items[i];
		bool fine = check->status == KS_CHECK_OK;
		ks_write_open(json, '{');
		ks_write_key_string(json, "id", check->id);
		ks_write_key_string(json, "status", names[check->status]);
		ks_write_key_string(json, "found", check->found);
		ks_write_key_string(json, "wanted", fine || !check->wanted[0] ? NULL : check->wanted);
		ks_write_key_string(json, "fix", fine || !check->fix[0] ? NULL : check->fix);
		ks_write_close(json, '}');
	}
	ks_write_close(json, ']');
}
