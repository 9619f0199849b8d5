#include "session/doctor_checks.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "box/plan.h"

/* ---- making a check ---- */

struct ks_check *ks_check_new(struct ks_checks *checks, const char *id)
{
	struct ks_check *check = &checks->items[checks->count < KS_CHECKS_MAX ? checks->count++ : KS_CHECKS_MAX - 1];

	*check = (struct ks_check){ .status = KS_CHECK_OK };
	(void)snprintf(check->id, sizeof(check->id), "%s", id);
	return check;
}

void ks_check_found(struct ks_check *check, enum ks_check_status status, const char *fmt, ...)
{
	va_list ap;

	check->status = status;
	va_start(ap, fmt);
	(void)vsnprintf(check->found, sizeof(check->found), fmt, ap);
	va_end(ap);
}

void ks_check_wanted(struct ks_check *check, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(check->wanted, sizeof(check->wanted), fmt, ap);
	va_end(ap);
}

void ks_check_fix(struct ks_check *check, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(check->fix, sizeof(check->fix), fmt, ap);
	va_end(ap);
}

static struct ks_check *new_blocker(struct ks_checks *checks, const char *id)
{
	struct ks_check *check = ks_check_new(checks, id);

	check->blocks = true;
	return check;
}

/* ---- the kernel ---- */

/* The versions are those of the manual pages: open_tree(2), clone3 in clone(2), openat2(2), close_range(2),
 * mount_setattr(2), SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV in seccomp(2). */
static const struct {
	int major, minor;
	const char *what;
} needs[] = {
	{ 5, 2, "open_tree and move_mount" },
	{ 5, 3, "clone3" },
	{ 5, 6, "openat2" },
	{ 5, 9, "close_range" },
	{ 5, 12, "mount_setattr" },
	{ 5, 19, "seccomp WAIT_KILLABLE_RECV" },
};

static void check_kernel(const struct ks_doctor_facts *facts, struct ks_checks *checks)
{
	struct ks_check *check = new_blocker(checks, "kernel");
	char release[96], lacks[300] = "";
	int major = 0, minor = 0;
	size_t at = 0;

	ks_check_wanted(check, "Linux 5.19 or later");
	ks_check_fix(
		check,
		"boot a kernel of 5.19 or later (Debian 12, Ubuntu 24.04 and Fedora 37 bring one): sudo apt install "
		"linux-image-amd64, then reboot");
	if (ks_facts_text(facts, "/proc/sys/kernel/osrelease", release, sizeof(release)) < 0 ||
	    sscanf(release, "%d.%d", &major, &minor) != 2) {
		ks_check_found(check, KS_CHECK_WARN, "the version cannot be read from /proc/sys/kernel/osrelease");
		return;
	}
	for (size_t i = 0; i < KS_COUNT(needs); i++)
		if (major < needs[i].major || (major == needs[i].major && minor < needs[i].minor))
			at += (size_t)snprintf(lacks + at, sizeof(lacks) - at, "%s%s (%d.%d)", at ? ", " : "",
					       needs[i].what, needs[i].major, needs[i].minor);
	if (at)
		ks_check_found(check, KS_CHECK_FAIL, "%s lacks %s", release, lacks);
	else
		ks_check_found(check, KS_CHECK_OK, "%s", release);
}

static void check_seccomp_notify(const struct ks_doctor_facts *facts, struct ks_checks *checks)
{
	static const char path[] = "/proc/sys/kernel/seccomp/actions_avail"; /* seccomp(2) */
	struct ks_check *check = new_blocker(checks, "seccomp_notify");
	char text[256];

	ks_check_wanted(check, "user_notif among the seccomp actions");
	ks_check_fix(check, "boot a kernel built with CONFIG_SECCOMP=y and CONFIG_SECCOMP_FILTER=y; a sandbox that "
			    "imitates a kernel "
			    "(gVisor) has none to offer: run outside of it");
	if (ks_facts_text(facts, path, text, sizeof(text)) < 0)
		ks_check_found(check, KS_CHECK_FAIL, "%s cannot be read: no seccomp filters in this kernel", path);
	else if (!strstr(text, "user_notif"))
		ks_check_found(check, KS_CHECK_FAIL, "actions: %s", text);
	else
		ks_check_found(check, KS_CHECK_OK, "user_notif");
}

/* seccomp(2), EBUSY: only one filter of a chain may have a listener. */
static void check_seccomp_listener(const struct ks_doctor_facts *facts, struct ks_checks *checks)
{
	struct ks_check *check = new_blocker(checks, "seccomp_listener");
	bool busy =
		facts->probe && facts->probe->sys_errno == EBUSY && strcmp(facts->probe->step, "escape filter") == 0;

	ks_check_wanted(check, "no other seccomp supervisor above the sidecar");
	ks_check_fix(
		check,
		"the kernel allows one seccomp listener in a chain, and a sandbox around this one has it (LXD: lxc "
		"config unset "
		"CONTAINER security.syscalls.intercept.mount, and the other security.syscalls.intercept keys; another "
		"kern-sidecar: start this one outside of it)");
	ks_check_found(check, busy ? KS_CHECK_FAIL : KS_CHECK_OK, busy ? "taken by a sandbox around this one" : "free");
}

void ks_checks_kernel(const struct ks_doctor_facts *facts, struct ks_checks *checks)
{
	check_kernel(facts, checks);
	check_seccomp_notify(facts, checks);
	check_seccomp_listener(facts, checks);
}

/* ---- what kind of machine ---- */

/* Microsoft's kernels name themselves: "4.4.0-19041-Microsoft" is WSL1, "5.15.90.1-microsoft-standard-WSL2" is WSL2. */
static void check_wsl(const struct ks_doctor_facts *facts, struct ks_checks *checks)
{
	struct ks_check *check = ks_check_new(checks, "wsl");
	struct ks_facts_mount mount;
	char release[96];

	(void)ks_facts_text(facts, "/proc/sys/kernel/osrelease", release, sizeof(release));
	if (!strcasestr(release, "microsoft") && !strcasestr(release, "WSL2")) {
		ks_check_found(check, KS_CHECK_OK, "no");
		return;
	}
	if (!strstr(release, "microsoft-standard") && !strcasestr(release, "WSL2")) {
		check->blocks = true;
		ks_check_wanted(check, "WSL2");
		ks_check_fix(check, "WSL1 is no Linux kernel and has no namespaces; in PowerShell: wsl --set-version "
				    "DISTRIBUTION 2");
		ks_check_found(check, KS_CHECK_FAIL, "WSL1 (%s)", release);
		return;
	}
	if (ks_facts_mount_of(facts, facts->cwd, &mount) &&
	    (strcmp(mount.type, "9p") == 0 || strcmp(mount.type, "drvfs") == 0)) {
		ks_check_wanted(check, "projects in the Linux file system");
		ks_check_fix(check,
			     "drives of Windows are slow and know no owners: cp -r the project to ~/ and work there");
		ks_check_found(check, KS_CHECK_WARN, "WSL2, and %.200s lies on a drive of Windows (%s)", facts->cwd,
			       mount.type);
		return;
	}
	ks_check_found(check, KS_CHECK_OK, "WSL2");
}

/* What gVisor answers for /proc/version: a name of its own lately, and always the build date of its first table. */
static void check_gvisor(const struct ks_doctor_facts *facts, struct ks_checks *checks)
{
	struct ks_check *check = new_blocker(checks, "gvisor");
	char version[256];

	(void)ks_facts_text(facts, "/proc/version", version, sizeof(version));
	check->suspect = strcasestr(version, "gvisor") || strstr(version, "Sun Jan 10 15:06:54 PST 2016");
	ks_check_wanted(check, "a Linux kernel");
	ks_check_fix(check, "gVisor imitates a kernel and has no seccomp notification: choose another runtime for this "
			    "container (docker run "
			    "--runtime=runc, or a RuntimeClass of runc or Kata in Kubernetes)");
	ks_check_found(check, check->suspect ? KS_CHECK_WARN : KS_CHECK_OK, "%s", check->suspect ? version : "no");
}

const char *ks_facts_container(const struct ks_doctor_facts *facts)
{
	static const struct {
		const char *path, *name;
	} signs[] = {
		{ "/var/run/secrets/kubernetes.io", "kubernetes" },
		{ "/run/.containerenv", "podman" },
		{ "/.dockerenv", "docker" },
	};
	/* /proc/1/cgroup where the container has no cgroup namespace of its own */
	static const char *const words[] = { "docker", "kubepods", "libpod", "lxc", "containerd", "machine.slice" };
	char text[2048];

	for (size_t i = 0; i < KS_COUNT(signs); i++)
		if (ks_facts_exists(facts, signs[i].path))
			return signs[i].name;
	/* written by systemd and by container managers that keep to its container interface */
	if (ks_facts_text(facts, "/run/systemd/container", text, sizeof(text)) == 0 && text[0])
		return strcmp(text, "lxc") == 0		     ? "lxc"
		       : strcmp(text, "systemd-nspawn") == 0 ? "systemd-nspawn"
							     : "container";
	(void)ks_facts_text(facts, "/proc/1/cgroup", text, sizeof(text));
	for (size_t i = 0; i < KS_COUNT(words); i++)
		if (strstr(text, words[i]))
			return words[i];
	return NULL;
}

/* Not wrong by itself: what a container forbids is found by other checks. */
static void check_container(const struct ks_doctor_facts *facts, struct ks_checks *checks)
{
	const char *name = ks_facts_container(facts);

	ks_check_found(ks_check_new(checks, "container"), KS_CHECK_OK, "%s", name ? name : "no sign of one");
}

void ks_checks_around(const struct ks_doctor_facts *facts, struct ks_checks *checks)
{
	check_wsl(facts, checks);
	check_gvisor(facts, checks);
	check_container(facts, checks);
}

/* ---- namespaces ---- */

static const struct {
	const char *name, *sysctl, *config;
} kinds[] = {
	{ "user", "max_user_namespaces", "USER_NS" },
	{ "pid", "max_pid_namespaces", "PID_NS" },
	{ "mnt", "max_mnt_namespaces", NULL },
	{ "net", "max_net_namespaces", "NET_NS" },
	{ "ipc", "max_ipc_namespaces", "IPC_NS" },
	{ "uts", "max_uts_namespaces", "UTS_NS" },
	{ "cgroup", "max_cgroup_namespaces", "CGROUPS" },
};

/* namespaces(7): a kernel has the kinds that /proc/self/ns lists. */
static void check_kinds(const struct ks_doctor_facts *facts, struct ks_checks *checks)
{
	struct ks_check *check = new_blocker(checks, "namespaces");
	char path[64], lacks[64] = "", config[160] = "";
	size_t at = 0, end = 0;

	for (size_t i = 0; i < KS_COUNT(kinds); i++) {
		(void)snprintf(path, sizeof(path), "/proc/self/ns/%s", kinds[i].name);
		if (ks_facts_exists(facts, path))
			continue;
		at += (size_t)snprintf(lacks + at, sizeof(lacks) - at, " %s", kinds[i].name);
		if (kinds[i].config)
			end += (size_t)snprintf(config + end, sizeof(config) - end, " CONFIG_%s=y", kinds[i].config);
	}
	ks_check_wanted(check, "user pid mnt net ipc uts cgroup");
	ks_check_fix(check, "boot a kernel built with%s", config[0] ? config : " all kinds of namespaces");
	if (at)
		ks_check_found(check, KS_CHECK_FAIL, "this kernel lacks:%s", lacks);
	else
		ks_check_found(check, KS_CHECK_OK, "user pid mnt net ipc uts cgroup");
}

/* Debian's switch. Root does not need what it forbids. */
static void check_userns_clone(const struct ks_doctor_facts *facts, struct ks_checks *checks)
{
	struct ks_check *check = new_blocker(checks, "userns_clone");
	int64_t value;

	ks_check_wanted(check, "kernel.unprivileged_userns_clone = 1");
	ks_check_fix(check, "echo kernel.unprivileged_userns_clone=1 | sudo tee /etc/sysctl.d/90-kern-sidecar.conf && "
			    "sudo sysctl --system");
	if (!ks_facts_number(facts, "/proc/sys/kernel/unprivileged_userns_clone", &value))
		ks_check_found(check, KS_CHECK_OK, "this kernel has no such switch");
	else if (value == 0 && facts->uid != 0)
		ks_check_found(check, KS_CHECK_FAIL, "kernel.unprivileged_userns_clone = 0");
	else
		ks_check_found(check, KS_CHECK_OK, "kernel.unprivileged_userns_clone = %lld%s", (long long)value,
			       value == 0 ? ", which does not bind root" : "");
}

/* A profile is text that a person pastes into a shell and a parser: no quoting, so no odd characters. */
static bool is_plain_path(const char *path)
{
	return path && path[0] == '/' &&
	       strspn(path, "/ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._+-") == strlen(path) &&
	       strlen(path) < 200;
}

/* Ubuntu from 24.04 (and 23.10): a user namespace of a program without a profile that says "userns," has no
 * capabilities in it, or is refused; what fails then is the map, a mount or lo, rarely the clone itself. */
static void check_apparmor_userns(const struct ks_doctor_facts *facts, struct ks_checks *checks)
{
	static const char name[] = "kernel.apparmor_restrict_unprivileged_userns";
	struct ks_check *check = new_blocker(checks, "apparmor_userns");
	int64_t value;

	ks_check_wanted(check, "an AppArmor profile with \"userns,\" for kern-sidecar, or %s = 0", name);
	ks_check_fix(check,
		     "printf 'abi <abi/4.0>,\\ninclude <tunables/global>\\nprofile kern-sidecar %s flags=(unconfined) "
		     "{\\n  userns,\\n}\\n' | "
		     "sudo tee /etc/apparmor.d/kern-sidecar && sudo apparmor_parser -r /etc/apparmor.d/kern-sidecar; "
		     "or, for every program "
		     "of this machine: sudo sysctl -w %s=0",
		     is_plain_path(facts->program) ? facts->program : "/usr/bin/kern-sidecar", name);
	if (!ks_facts_number(facts, "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", &value)) {
		ks_check_found(check, KS_CHECK_OK, "this kernel has no such switch");
		return;
	}
	check->suspect = value != 0 && facts->uid != 0;
	ks_check_found(check, check->suspect ? KS_CHECK_WARN : KS_CHECK_OK, "%s = %lld%s", name, (long long)value,
		       value != 0 && facts->uid == 0 ? ", which does not bind root" : "");
}

/* namespaces(7): the limits of /proc/sys/user bind every user, root too. A run has one of each kind, a session a user
 * and a pid namespace besides, and the kernel frees them some time after their end. */
static void check_max_namespaces(const struct ks_doctor_facts *facts, struct ks_checks *checks)
{
	const int64_t wanted = 4 * facts->runs;
	char path[64];
	int64_t value;

	for (size_t i = 0; i < KS_COUNT(kinds); i++) {
		struct ks_check *check = new_blocker(checks, kinds[i].sysctl);
		(void)snprintf(path, sizeof(path), "/proc/sys/user/%s", kinds[i].sysctl);
		ks_check_wanted(check, "user.%s of %lld or more", kinds[i].sysctl, (long long)wanted);
		ks_check_fix(
			check,
			"echo user.%s=%lld | sudo tee -a /etc/sysctl.d/90-kern-sidecar.conf && sudo sysctl --system",
			kinds[i].sysctl, (long long)(wanted > 15000 ? wanted : 15000));
		if (!ks_facts_number(facts, path, &value)) {
			ks_check_found(check, KS_CHECK_OK, "this kernel has no such limit");
			continue;
		}
		check->blocks = value == 0; /* a low one lets the probe pass and the hundredth box not */
		ks_check_found(check,
			       value == 0	? KS_CHECK_FAIL
			       : value < wanted ? KS_CHECK_WARN
						: KS_CHECK_OK,
			       "user.%s = %lld", kinds[i].sysctl, (long long)value);
	}
}

/* capabilities(7): a container's root has few of root's powers, and without a user namespace of its own it needs these.
 */
static void check_root_capabilities(const struct ks_doctor_facts *facts, struct ks_checks *checks)
{
	static const struct {
		int number;
		const char *name;
	} wanted[] = { { CAP_SETGID, "SETGID" },
		       { CAP_SETUID, "SETUID" },
		       { CAP_CHOWN, "CHOWN" },
		       { CAP_KILL, "KILL" },
		       { CAP_SYS_ADMIN, "SYS_ADMIN" } };
	struct ks_check *check = new_blocker(checks, "root_capabilities");
	char text[32], lacks[64] = "";
	size_t at = 0;

	ks_check_wanted(check, "CHOWN KILL SETGID SETUID SYS_ADMIN, or an ordinary user");
	ks_check_fix(check, "run it as an ordinary user, who needs no capability (docker run --user 1000:1000, su -s "
			    "/bin/sh USER); or give "
			    "the container's root what it lacks: docker run --cap-add SYS_ADMIN");
	if (facts->uid != 0) {
		ks_check_found(check, KS_CHECK_OK, "not root: none needed");
		return;
	}
	if (!ks_facts_field(facts, "/proc/self/status", "CapEff:", text, sizeof(text))) {
		ks_check_found(check, KS_CHECK_WARN, "/proc/self/status cannot be read");
		return;
	}
	unsigned long long have = strtoull(text, NULL, 16);
	for (size_t i = 0; i < KS_COUNT(wanted); i++)
		if (!(have >> wanted[i].number & 1))
			at += (size_t)snprintf(lacks + at, sizeof(lacks) - at, " %s", wanted[i].name);
	if (at)
		ks_check_found(check, KS_CHECK_FAIL, "root without:%s", lacks);
	else
		ks_check_found(check, KS_CHECK_OK, "root with CapEff %s", text);
}

/* user_namespaces(7): "inside outside count" a line. */
static bool maps_range(const struct ks_doctor_facts *facts, const char *path)
{
	char text[4096], *save = NULL;

	if (ks_facts_text(facts, path, text, sizeof(text)) < 0)
		return true; /* no user namespaces in this kernel: every id exists */
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		unsigned long long first, outside, count;
		if (sscanf(line, "%llu %llu %llu", &first, &outside, &count) == 3 && first <= KS_RANGE_START &&
		    first + count >= (unsigned long long)KS_RANGE_START + KS_RANGE_COUNT)
			return true;
	}
	return false;
}

/* Rootless containers: their root is an ordinary user outside, and only a few ids exist. */
static void check_id_range(const struct ks_doctor_facts *facts, struct ks_checks *checks)
{
	struct ks_check *check = new_blocker(checks, "id_range");

	ks_check_wanted(check, "ids from %u on, or an ordinary user", KS_RANGE_START);
	ks_check_fix(check, "this root lives in a user namespace (a rootless container) where the ids of boxes do not "
			    "exist: run the sidecar "
			    "as an ordinary user of it (docker or podman run --user 1000:1000, su -s /bin/sh USER)");
	if (facts->uid != 0)
		ks_check_found(check, KS_CHECK_OK, "not root: one's own id is enough");
	else if (maps_range(facts, "/proc/self/uid_map") && maps_range(facts, "/proc/self/gid_map"))
		ks_check_found(check, KS_CHECK_OK, "ids from %u on exist", KS_RANGE_START);
	else
		ks_check_found(check, KS_CHECK_FAIL, "ids from %u on do not exist in this user namespace",
			       KS_RANGE_START);
}

void ks_checks_namespaces(const struct ks_doctor_facts *facts, struct ks_checks *checks)
{
	check_kinds(facts, checks);
	check_userns_clone(facts, checks);
	check_apparmor_userns(facts, checks);
	check_max_namespaces(facts, checks);
	check_root_capabilities(facts, checks);
	check_id_range(facts, checks);
}
