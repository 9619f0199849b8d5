/* doctor_cgroups.c: why the kernel does not enforce a limit here, and what to do about it. The facts about limits are
 * the box layer's (box/cgroup.h); this looks for what is behind them. */
#include <stdio.h>
#include <string.h>

#include "session/doctor_checks.h"

struct hierarchies {
	bool v1, v2, writable;
	char v2_point[256];
};

static bool look_at_cgroups(void *arg, const struct ks_facts_mount *mount)
{
	struct hierarchies *found = arg;
	bool v2 = strcmp(mount->type, "cgroup2") == 0;

	if ((!v2 && strcmp(mount->type, "cgroup") != 0) || !ks_facts_is_below(mount->point, "/sys/fs/cgroup"))
		return true;
	found->v1 |= !v2;
	found->v2 |= v2;
	found->writable |= !ks_facts_has_option(mount->options, "ro");
	if (v2)
		(void)snprintf(found->v2_point, sizeof(found->v2_point), "%s", mount->point);
	return true;
}

static bool all_by_kernel(const struct ks_doctor_facts *facts)
{
	for (int kind = 0; kind < KS_LIMIT_KINDS; kind++)
		if (!facts->limits || facts->limits->enforced[kind] != KS_ENFORCED_KERNEL)
			return false;
	return true;
}

static bool by_systemd(const struct ks_doctor_facts *facts)
{
	return ks_facts_exists(facts, "/run/systemd/system"); /* sd_booted(3) */
}

/* The bus of a user manager, where systemd's own library looks for it. */
static bool has_user_bus(const struct ks_doctor_facts *facts)
{
	char path[300];

	if (facts->runtime_dir)
		(void)snprintf(path, sizeof(path), "%.280s/bus", facts->runtime_dir);
	else
		(void)snprintf(path, sizeof(path), "/run/user/%u/bus", (unsigned)facts->uid);
	return ks_facts_exists(facts, path);
}

#define CONTAINER_CGROUP_CURE                                                                                          \
	"docker run --cgroupns=private --security-opt writable-cgroups=true (Docker 28 or later), podman run "         \
	"--cgroupns=private "                                                                                          \
	"--security-opt unmask=/sys/fs/cgroup; on older ones: --cgroupns=private -v /sys/fs/cgroup:/sys/fs/cgroup:rw"
/* No process may be left in a cgroup that hands out controllers (cgroup-v2.rst, "No Internal Process Constraint"). */
#define LEAF_CURE                                                                                                      \
	"give the sidecar a cgroup of its own, as root: cd /sys/fs/cgroup && mkdir -p init kern && xargs -rn1 "        \
	"<cgroup.procs "                                                                                               \
	">init/cgroup.procs; echo +memory +pids +cpu >cgroup.subtree_control && echo $$ >kern/cgroup.procs && exec "   \
	"kern-sidecar --stdio"
#define V2_CURE                                                                                                        \
	"switch to cgroup v2, which can be delegated: boot with systemd.unified_cgroup_hierarchy=1 cgroup_no_v1=all"

static void check_cgroup_mount(const struct ks_doctor_facts *facts, struct ks_checks *checks)
{
	struct ks_check *check = ks_check_new(checks, "cgroup_mount");
	struct hierarchies found = { .v1 = false };
	bool container = ks_facts_container(facts) != NULL;
	char release[96];

	(void)ks_facts_text(facts, "/proc/sys/kernel/osrelease", release, sizeof(release));
	(void)ks_facts_mounts(facts, look_at_cgroups, &found);
	ks_check_wanted(check, "cgroups mounted writable at /sys/fs/cgroup");
	if (!found.v1 && !found.v2) {
		ks_check_fix(check, "%s",
			     container ? CONTAINER_CGROUP_CURE
			     : strcasestr(release, "microsoft")
				     ? "in /etc/wsl.conf: [boot] systemd=true; then wsl --shutdown"
				     : "sudo mount -t cgroup2 cgroup2 /sys/fs/cgroup");
		ks_check_found(check, KS_CHECK_WARN, "no cgroups are mounted at /sys/fs/cgroup");
		return;
	}
	if (!found.writable) {
		ks_check_fix(check, "%s",
			     container ? CONTAINER_CGROUP_CURE : "sudo mount -o remount,rw /sys/fs/cgroup");
		ks_check_found(check, all_by_kernel(facts) ? KS_CHECK_OK : KS_CHECK_WARN,
			       "/sys/fs/cgroup is read-only");
		return;
	}
	ks_check_found(check, KS_CHECK_OK, "%s", found.v1 && found.v2 ? "v1 and v2" : found.v1 ? "v1" : "v2");
}

/* Over ssh, su or sudo there may be no manager of ours to ask for a cgroup. */
static void check_user_manager(const struct ks_doctor_facts *facts, struct ks_checks *checks)
{
	struct ks_check *check = ks_check_new(checks, "user_manager");

	ks_check_wanted(check, "a systemd user manager that can be asked for a cgroup");
	ks_check_fix(check, "sudo loginctl enable-linger $USER, then log in again as that user (ssh, or machinectl "
			    "shell USER@, not su), and: "
			    "export XDG_RUNTIME_DIR=/run/user/$(id -u)");
	if (facts->uid == 0 || !by_systemd(facts))
		ks_check_found(check, KS_CHECK_OK,
			       facts->uid == 0 ? "root: not needed" : "systemd does not manage this machine");
	else if (has_user_bus(facts))
		ks_check_found(check, KS_CHECK_OK, "running");
	else
		ks_check_found(check, all_by_kernel(facts) ? KS_CHECK_OK : KS_CHECK_WARN,
			       "%s, and there is no bus of a user manager",
			       facts->runtime_dir ? "XDG_RUNTIME_DIR is set" : "XDG_RUNTIME_DIR is not set");
}

static const char *limit_cure(const struct ks_doctor_facts *facts, enum ks_limit_kind kind)
{
	const char *reason = facts->limits->reason[kind];
	struct hierarchies found = { .v1 = false };

	(void)ks_facts_mounts(facts, look_at_cgroups, &found);
	if ((!found.v1 && !found.v2) || !found.writable)
		return "see cgroup_mount";
	if (!by_systemd(facts) && (strstr(reason, "processes besides") || strstr(reason, "Device or resource busy")))
		return LEAF_CURE;
	if (facts->uid != 0 && found.v1 && !strstr(reason, "systemd:"))
		return V2_CURE "; or run the sidecar as root";
	if (facts->uid != 0 && by_systemd(facts) && !has_user_bus(facts))
		return "see user_manager";
	if (facts->uid != 0 && strstr(reason, "controller is not available"))
		return "let systemd delegate it: sudo mkdir -p /etc/systemd/system/user@.service.d && printf "
		       "'[Service]\\nDelegate=cpu cpuset io "
		       "memory pids\\n' | sudo tee /etc/systemd/system/user@.service.d/delegate.conf && sudo systemctl "
		       "daemon-reload, then "
		       "log in again";
	if (by_systemd(facts))
		return facts->uid == 0 ? "systemd-run --scope -p Delegate=yes kern-sidecar --stdio"
				       : "systemd-run --user --scope -p Delegate=yes kern-sidecar --stdio";
	if (ks_facts_container(facts))
		return CONTAINER_CGROUP_CURE;
	return facts->uid == 0 ? LEAF_CURE
			       : "let root make a cgroup and give it to this user: echo +memory +pids +cpu | sudo tee "
				 "/sys/fs/cgroup/cgroup.subtree_control && sudo mkdir -p /sys/fs/cgroup/kern && sudo "
				 "chown -R $USER "
				 "/sys/fs/cgroup/kern && echo $$ | sudo tee /sys/fs/cgroup/kern/cgroup.procs";
}

static void check_limit(const struct ks_doctor_facts *facts, struct ks_checks *checks, const char *id,
			enum ks_limit_kind kind)
{
	struct ks_check *check = ks_check_new(checks, id);

	ks_check_wanted(check, "kernel");
	if (!facts->limits) {
		ks_check_fix(check, "mend what the first check names, then ask again");
		ks_check_found(check, KS_CHECK_WARN, "not known: no box can be made");
		return;
	}
	const char *reason = facts->limits->reason[kind];
	bool kernel = facts->limits->enforced[kind] == KS_ENFORCED_KERNEL;
	if (!kernel)
		ks_check_fix(check, "%s", limit_cure(facts, kind));
	ks_check_found(check, kernel ? KS_CHECK_OK : KS_CHECK_WARN, "%s (cgroup %s)%s%s",
		       ks_enforced_name(facts->limits->enforced[kind]), facts->limits->backend, reason[0] ? ": " : "",
		       reason);
}

void ks_checks_cgroups(const struct ks_doctor_facts *facts, struct ks_checks *checks)
{
	check_cgroup_mount(facts, checks);
	check_user_manager(facts, checks);
	check_limit(facts, checks, "limit_memory", KS_LIMIT_MEMORY);
	check_limit(facts, checks, "limit_pids", KS_LIMIT_PIDS);
	check_limit(facts, checks, "limit_cpu", KS_LIMIT_CPU);
}
