/* doctor_confinement.c: what a sandbox or a container around the sidecar forbids: seccomp, AppArmor, SELinux, covered
 * /proc, mounts. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "session/doctor_checks.h"

static bool probe_failed_at(const struct ks_doctor_facts *facts, const char *step)
{
	return facts->probe && strcmp(facts->probe->step, step) == 0;
}

static bool was_refused(const struct ks_doctor_facts *facts)
{
	return facts->probe && (facts->probe->sys_errno == EPERM || facts->probe->sys_errno == EACCES);
}

/* Mode 2 (proc_pid_status(5)) is a filter that somebody put around us; what it refuses only a failing step tells. */
static void check_seccomp_profile(const struct ks_doctor_facts *facts, struct ks_checks *checks)
{
	struct ks_check *check = ks_check_new(checks, "seccomp_profile");
	char mode[16];

	check->blocks = true;
	ks_check_wanted(check,
			"a seccomp profile that allows clone, unshare, mount, pivot_root, mount_setattr and seccomp");
	ks_check_fix(check, "docker run or podman run: --security-opt seccomp=unconfined; Kubernetes: "
			    "securityContext.seccompProfile.type: "
			    "Unconfined; a systemd unit: no RestrictNamespaces=, no SystemCallFilter= without @mount");
	check->suspect =
		ks_facts_field(facts, "/proc/self/status", "Seccomp:", mode, sizeof(mode)) && strcmp(mode, "2") == 0;
	ks_check_found(check, check->suspect ? KS_CHECK_WARN : KS_CHECK_OK, "%s",
		       check->suspect ? "a seccomp filter lies around the sidecar"
				      : "no seccomp filter around the sidecar");
}

static void check_apparmor_profile(const struct ks_doctor_facts *facts, struct ks_checks *checks)
{
	struct ks_check *check = ks_check_new(checks, "apparmor_profile");
	char label[160];

	check->blocks = true;
	ks_check_wanted(check, "no AppArmor profile that refuses mounts");
	ks_check_fix(check, "docker run or podman run: --security-opt apparmor=unconfined; Kubernetes: "
			    "securityContext.appArmorProfile.type: "
			    "Unconfined; see what was refused: sudo dmesg | grep apparmor=");
	/* the newer name does not mix with SELinux's */
	if (ks_facts_text(facts, "/proc/self/attr/apparmor/current", label, sizeof(label)) < 0)
		(void)ks_facts_text(facts, "/proc/self/attr/current", label, sizeof(label));
	check->suspect = strstr(label, "(enforce)") != NULL;
	ks_check_found(check, check->suspect ? KS_CHECK_WARN : KS_CHECK_OK, "%s",
		       check->suspect ? label : "unconfined");
}

static void check_selinux(const struct ks_doctor_facts *facts, struct ks_checks *checks)
{
	struct ks_check *check = ks_check_new(checks, "selinux");
	int64_t value = 0;

	check->blocks = true;
	ks_check_wanted(check, "a policy that lets the sidecar make namespaces and mount");
	ks_check_fix(
		check,
		"see what was refused: sudo ausearch -m avc -ts recent; in a container: --security-opt label=disable");
	check->suspect = ks_facts_number(facts, "/sys/fs/selinux/enforce", &value) && value == 1;
	ks_check_found(check, check->suspect ? KS_CHECK_WARN : KS_CHECK_OK, "%s",
		       check->suspect ? "enforcing" : "not enforcing");
}

struct covers {
	bool whole;
	int count;
	char first[256], type[32];
};

/* What the kernel ignores, because it was made to be a mount point and is empty (mnt_already_visible in
 * fs/namespace.c). */
static bool is_meant_for_mounts(const char *point)
{
	static const char *const points[] = { "/proc/sys/fs/binfmt_misc", "/proc/fs/nfsd", "/proc/openprom" };

	for (size_t i = 0; i < KS_COUNT(points); i++)
		if (strcmp(point, points[i]) == 0)
			return true;
	return false;
}

static bool look_at_proc(void *arg, const struct ks_facts_mount *mount)
{
	struct covers *covers = arg;

	if (strcmp(mount->point, "/proc") == 0)
		covers->whole = strcmp(mount->type, "proc") == 0 && strcmp(mount->root, "/") == 0;
	else if (ks_facts_is_below(mount->point, "/proc") && !is_meant_for_mounts(mount->point) &&
		 covers->count++ == 0) {
		(void)snprintf(covers->first, sizeof(covers->first), "%s", mount->point);
		(void)snprintf(covers->type, sizeof(covers->type), "%s", mount->type);
	}
	return true;
}

/* "mount too revealing": a user namespace may mount a proc of its own only while it sees one that nothing is mounted
 * over. */
static void check_proc_masked(const struct ks_doctor_facts *facts, struct ks_checks *checks)
{
	struct ks_check *check = ks_check_new(checks, "proc_masked");
	struct covers covers = { .whole = false };

	check->blocks = true;
	ks_check_wanted(check, "a whole /proc with nothing mounted over its files");
	ks_check_fix(
		check,
		"docker run: --security-opt systempaths=unconfined; podman run: --security-opt unmask=ALL; Kubernetes: "
		"securityContext.procMount: Unmasked with hostUsers: false; LXC: without lxcfs over /proc");
	if (!ks_facts_mounts(facts, look_at_proc, &covers))
		ks_check_found(check, KS_CHECK_FAIL, "/proc/self/mountinfo cannot be read: is /proc mounted?");
	else if (!covers.whole)
		ks_check_found(check, KS_CHECK_FAIL, "/proc is no proc file system, or a part of one");
	else if (covers.count)
		ks_check_found(check, KS_CHECK_FAIL, "%d mount%s over files of /proc, the first is %s (%s)",
			       covers.count, covers.count == 1 ? "" : "s", covers.first, covers.type);
	else
		ks_check_found(check, KS_CHECK_OK, "nothing is mounted over /proc");
}

static void check_mount_propagation(const struct ks_doctor_facts *facts, struct ks_checks *checks)
{
	struct ks_check *check = ks_check_new(checks, "mount_propagation");
	bool denied = probe_failed_at(facts, "propagation") && was_refused(facts);

	check->blocks = true;
	ks_check_wanted(check, "to be allowed to make / private in a mount namespace of one's own");
	ks_check_fix(check,
		     "the container's security module refuses mount(2): docker run or podman run with --security-opt "
		     "apparmor=unconfined --security-opt label=disable; Kubernetes: "
		     "securityContext.appArmorProfile.type: Unconfined");
	ks_check_found(check, denied ? KS_CHECK_FAIL : KS_CHECK_OK, "%s",
		       denied ? "mount_propagation_denied: / could not be made private" : "not refused");
}

struct top {
	bool seen;
	char type[32];
};

static bool look_at_top(void *arg, const struct ks_facts_mount *mount)
{
	struct top *top = arg;

	if (strcmp(mount->point, "/") == 0) {
		top->seen = true;
		(void)snprintf(top->type, sizeof(top->type), "%s", mount->type);
	}
	return true;
}

/* unshare(2): in a chroot no user namespace can be made (EPERM). pivot_root(2): the first ramfs cannot be left
 * (EINVAL). */
static void check_root_mount(const struct ks_doctor_facts *facts, struct ks_checks *checks)
{
	struct ks_check *check = ks_check_new(checks, "root_mount");
	struct top top = { .seen = false };

	check->blocks = true;
	ks_check_wanted(check, "a root directory that is a mount, and not the kernel's first ramfs");
	ks_check_fix(
		check,
		"in a chroot no user namespace can be made: enter the tree with systemd-nspawn -D DIR or pivot_root "
		"instead of chroot; from an initramfs: switch_root to a tmpfs first");
	if (!ks_facts_mounts(facts, look_at_top, &top))
		ks_check_found(check, KS_CHECK_WARN, "/proc/self/mountinfo cannot be read");
	else if (!top.seen)
		ks_check_found(check, KS_CHECK_FAIL, "/ is no mount point: this is a chroot");
	else if (strcmp(top.type, "rootfs") == 0)
		ks_check_found(check, KS_CHECK_FAIL, "/ is the kernel's first ramfs");
	else
		ks_check_found(check, KS_CHECK_OK, "%s", top.type);
}

/* Nothing is wrong with lo itself: raising it is the first thing a box does with the powers of its user namespace. */
static void check_loopback(const struct ks_doctor_facts *facts, struct ks_checks *checks)
{
	struct ks_check *check = ks_check_new(checks, "loopback");
	bool failed = probe_failed_at(facts, "network") && was_refused(facts);

	check->blocks = true;
	ks_check_wanted(check, "lo can be raised in a network namespace of one's own");
	ks_check_fix(
		check,
		"the user namespace has no power over its network: lift the restriction of user namespaces as under "
		"apparmor_userns, seccomp_profile and selinux; " KS_CONTAINER_CURE);
	ks_check_found(check, failed ? KS_CHECK_FAIL : KS_CHECK_OK, "%s",
		       failed ? "lo could not be raised: user namespaces are restricted here" : "not refused");
}

void ks_checks_confinement(const struct ks_doctor_facts *facts, struct ks_checks *checks)
{
	check_seccomp_profile(facts, checks);
	check_apparmor_profile(facts, checks);
	check_selinux(facts, checks);
	check_proc_masked(facts, checks);
	check_mount_propagation(facts, checks);
	check_root_mount(facts, checks);
	check_loopback(facts, checks);
}
