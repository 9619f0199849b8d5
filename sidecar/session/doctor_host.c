/* doctor_host.c: files that boxes get from the host, amounts of things, and why cgroup limits are not the kernel's. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "session/doctor_checks.h"

#define MIB ((int64_t)1 << 20)
#define ROOM_BYTES ((uint64_t)64 << 20) /* as workspace/private.h: less than that is no place for workspaces */
#define FDS_A_RUN 24			/* measured: 21 a run on cgroup v1 */
#define FDS_BESIDES 64
#define TASKS_A_RUN 8 /* init, command, and a few of its own */

/* ---- files ---- */

static void check_devices(const struct ks_doctor_facts *facts, struct ks_checks *checks)
{
	static const char *const names[] = { "null", "zero", "full", "random", "urandom", "tty" };
	struct ks_check *check = ks_check_new(checks, "devices");
	struct ks_facts_mount mount;
	char path[4096 + 32], lacks[64] = "";
	struct stat st;
	size_t at = 0;

	ks_check_wanted(check, "/dev with null zero full random urandom tty, not mounted nodev");
	ks_check_fix(check, "sudo mount -t devtmpfs dev /dev; in a container: one whose /dev has the usual nodes "
			    "(docker and podman make them)");
	for (size_t i = 0; i < KS_COUNT(names); i++) {
		(void)snprintf(path, sizeof(path), "%s/dev/%s", facts->root, names[i]);
		if (stat(path, &st) < 0 || !S_ISCHR(st.st_mode))
			at += (size_t)snprintf(lacks + at, sizeof(lacks) - at, " %s", names[i]);
	}
	check->blocks = at > 0;
	if (at)
		ks_check_found(check, KS_CHECK_FAIL, "no such devices in /dev:%s", lacks);
	else if (ks_facts_mount_of(facts, "/dev/null", &mount) && ks_facts_has_option(mount.options, "nodev"))
		ks_check_found(check, KS_CHECK_WARN, "%.200s is mounted nodev: code in a box cannot open /dev/null",
			       mount.point);
	else
		ks_check_found(check, KS_CHECK_OK, "/dev has them all");
}

static void check_usr(const struct ks_doctor_facts *facts, struct ks_checks *checks)
{
	struct ks_check *check = ks_check_new(checks, "usr");
	struct ks_facts_mount mount;

	check->blocks = true;
	ks_check_wanted(check, "programs under /usr that may be run");
	ks_check_fix(check,
		     "sudo mount -o remount,exec %s; or name another root file system: image \"dir:/path/to/rootfs\"",
		     "/usr");
	if (!ks_facts_exists(facts, "/usr/bin"))
		ks_check_found(check, KS_CHECK_FAIL, "there is no /usr/bin");
	else if (ks_facts_mount_of(facts, "/usr/bin", &mount) && ks_facts_has_option(mount.options, "noexec")) {
		ks_check_fix(check,
			     "sudo mount -o remount,exec %s; or name another root file system: image "
			     "\"dir:/path/to/rootfs\"",
			     mount.point);
		ks_check_found(check, KS_CHECK_FAIL, "%.200s is mounted noexec", mount.point);
	} else {
		ks_check_found(check, KS_CHECK_OK, "/usr/bin");
	}
}

static void check_state_directory(const struct ks_doctor_facts *facts, struct ks_checks *checks)
{
	struct ks_check *check = ks_check_new(checks, "state_directory");
	struct ks_facts_mount mount;

	ks_check_wanted(check, "a directory of one's own on a disk with 64 MiB free, not mounted noexec");
	ks_check_fix(check, "mkdir -p ~/.cache/kern && export KERN_STATE_DIR=~/.cache/kern before the sidecar starts");
	if (facts->state_error) {
		check->blocks = true;
		if (facts->state_error->hint[0])
			ks_check_fix(check,
				     "%s; for example: mkdir -p ~/.cache/kern && export KERN_STATE_DIR=~/.cache/kern",
				     facts->state_error->hint);
		ks_check_found(check, KS_CHECK_FAIL, "%s", facts->state_error->text);
	} else if (!facts->state_path) {
		ks_check_found(check, KS_CHECK_WARN, "not looked at");
	} else if (ks_facts_mount_of(facts, facts->state_path, &mount) &&
		   ks_facts_has_option(mount.options, "noexec")) {
		ks_check_found(check, KS_CHECK_WARN,
			       "%.200s: %.100s is mounted noexec, programs built in a workspace will not run",
			       facts->state_path, mount.point);
	} else if (facts->state_free < ROOM_BYTES) {
		ks_check_found(check, KS_CHECK_WARN, "%.200s: %llu MiB free", facts->state_path,
			       (unsigned long long)(facts->state_free >> 20));
	} else {
		ks_check_found(check, KS_CHECK_OK, "%.200s, %llu MiB free", facts->state_path,
			       (unsigned long long)(facts->state_free >> 20));
	}
}

/* mount_setattr(2) lists which file systems take id maps; these do not (overlayfs and fuse on few kernels). */
static void check_workspace_idmap(const struct ks_doctor_facts *facts, struct ks_checks *checks)
{
	static const char *const without[] = { "overlay", "aufs", "nfs",      "nfs4",	 "9p",
					       "cifs",	  "smb3", "ecryptfs", "virtiofs" };
	struct ks_check *check = ks_check_new(checks, "workspace_idmap");
	struct ks_facts_mount mount;

	ks_check_wanted(check, "a workspace on ext4, xfs, btrfs or tmpfs, or one that an ordinary user owns");
	ks_check_fix(check, "give the project to an ordinary user (chown -R 1000:1000 DIRECTORY), or put it on a "
			    "volume (docker run -v), or pass "
			    "mapOwner: true, which lets the code act as root on its files");
	if (facts->uid != 0 || !ks_facts_mount_of(facts, facts->cwd, &mount)) {
		ks_check_found(check, KS_CHECK_OK,
			       facts->uid != 0 ? "not root: not needed" : "the current directory's mount is not known");
		return;
	}
	bool bad = strncmp(mount.type, "fuse", 4) == 0;
	for (size_t i = 0; i < KS_COUNT(without); i++)
		bad |= strcmp(mount.type, without[i]) == 0;
	ks_check_found(check, bad ? KS_CHECK_WARN : KS_CHECK_OK, "%.200s is on %s%s", facts->cwd, mount.type,
		       bad ? ", which takes no id map: a workspace there that root owns is refused" : "");
}

/* A box on the host's image sees these two of the host's certificates. */
static void check_tls_roots(const struct ks_doctor_facts *facts, struct ks_checks *checks)
{
	static const char *const paths[] = { "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt" };
	struct ks_check *check = ks_check_new(checks, "tls_roots");

	ks_check_wanted(check, "certificates of authorities, for boxes with a network");
	ks_check_fix(check, "sudo apt-get install ca-certificates (dnf and apk call it the same)");
	for (size_t i = 0; i < KS_COUNT(paths); i++)
		if (ks_facts_exists(facts, paths[i])) {
			ks_check_found(check, KS_CHECK_OK, "%s", paths[i]);
			return;
		}
	ks_check_found(check, KS_CHECK_WARN, "none: TLS connections from a box will fail");
}

void ks_checks_files(const struct ks_doctor_facts *facts, struct ks_checks *checks)
{
	check_devices(facts, checks);
	check_usr(facts, checks);
	check_state_directory(facts, checks);
	check_workspace_idmap(facts, checks);
	check_tls_roots(facts, checks);
}

/* ---- amounts ---- */

/* The least of the machine's memory and the cap of the cgroup we are in, in MiB; -1 unknown. */
static int64_t memory_mb(const struct ks_doctor_facts *facts, const char **ret_where)
{
	static const char *const caps[] = { "/sys/fs/cgroup/memory.max",
					    "/sys/fs/cgroup/memory/memory.limit_in_bytes" };
	char text[64];
	int64_t least = -1, cap;

	*ret_where = "/proc/meminfo";
	if (ks_facts_field(facts, "/proc/meminfo", "MemTotal:", text, sizeof(text)))
		least = strtoll(text, NULL, 10) / 1024;
	for (size_t i = 0; i < KS_COUNT(caps); i++)
		if (ks_facts_number(facts, caps[i], &cap) && (least < 0 || cap / MIB < least)) {
			least = cap / MIB;
			*ret_where = caps[i];
		}
	return least;
}

static void check_memory(const struct ks_doctor_facts *facts, struct ks_checks *checks)
{
	struct ks_check *check = ks_check_new(checks, "memory");
	const char *where;
	int64_t mb = memory_mb(facts, &where);

	ks_check_wanted(check, "%lld MiB, a box's memory cap when none is named", (long long)facts->memory_mb);
	ks_check_fix(check, "ask for less (memoryMb: %lld), or give this machine or container more memory",
		     (long long)(mb > 8 ? mb / 2 : 4));
	if (mb < 0)
		ks_check_found(check, KS_CHECK_OK, "not known");
	else
		ks_check_found(check, mb < facts->memory_mb ? KS_CHECK_WARN : KS_CHECK_OK, "%lld MiB (%s)",
			       (long long)mb, where);
}

/* "Max open files            1024                 1048576              files": the soft limit, then the hard one
 * (proc_pid_limits(5)). */
static bool read_limit(const struct ks_doctor_facts *facts, const char *name, long long *ret_soft)
{
	char text[128];

	if (!ks_facts_field(facts, "/proc/self/limits", name, text, sizeof(text)))
		return false;
	if (strncmp(text, "unlimited", 9) == 0)
		*ret_soft = INT64_MAX;
	else if (sscanf(text, "%lld", ret_soft) != 1)
		return false;
	return true;
}

static void check_one_limit(const struct ks_doctor_facts *facts, struct ks_check *check, const char *name,
			    int64_t wanted)
{
	long long soft;

	ks_check_wanted(check, "%lld or more, for %lld runs at a time", (long long)wanted, (long long)facts->runs);
	if (!read_limit(facts, name, &soft))
		ks_check_found(check, KS_CHECK_OK, "not known");
	else if (soft == INT64_MAX)
		ks_check_found(check, KS_CHECK_OK, "unlimited");
	else
		ks_check_found(check, soft < wanted ? KS_CHECK_WARN : KS_CHECK_OK, "%lld", soft);
}

static void check_open_files(const struct ks_doctor_facts *facts, struct ks_checks *checks)
{
	struct ks_check *check = ks_check_new(checks, "open_files");
	const int64_t wanted = facts->runs * FDS_A_RUN + FDS_BESIDES;

	ks_check_fix(check,
		     "ulimit -n %lld before the sidecar starts (hard limit: /etc/security/limits.conf, LimitNOFILE= of "
		     "a unit, docker run "
		     "--ulimit nofile=65536), or initialize with limits.runs of %lld",
		     (long long)(wanted > 65536 ? wanted : 65536), 16LL);
	check_one_limit(facts, check, "Max open files", wanted);
}

/* setrlimit(2), RLIMIT_NPROC: counts all of a user's tasks, and does not bind root. */
static void check_process_limit(const struct ks_doctor_facts *facts, struct ks_checks *checks)
{
	struct ks_check *check = ks_check_new(checks, "process_limit");

	check->suspect = facts->uid != 0;
	ks_check_fix(check, "ulimit -u 16384 before the sidecar starts (hard limit: /etc/security/limits.conf, "
			    "LimitNPROC= of a unit); in a "
			    "container also: docker run --pids-limit -1");
	if (facts->uid == 0)
		ks_check_found(check, KS_CHECK_OK, "root: not bound");
	else
		check_one_limit(facts, check, "Max processes", facts->runs * TASKS_A_RUN);
}

/* cgroup v1 counts swap only with memory.memsw.*, which some kernels leave out unless swapaccount=1
 * (kernel-parameters.txt). */
static void check_swap(const struct ks_doctor_facts *facts, struct ks_checks *checks)
{
	struct ks_check *check = ks_check_new(checks, "swap");
	char text[1024];

	ks_check_wanted(check, "swap that counts towards a box's memory cap");
	ks_check_fix(check,
		     "boot with swapaccount=1 on the kernel's command line, or switch swap off: sudo swapoff -a");
	const char *first = ks_facts_text(facts, "/proc/swaps", text, sizeof(text)) == 0 ? strchr(text, '\n') : NULL;
	if (!first)
		ks_check_found(check, KS_CHECK_OK, "no swap");
	else if (ks_facts_exists(facts, "/sys/fs/cgroup/memory/memory.limit_in_bytes") &&
		 !ks_facts_exists(facts, "/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes"))
		ks_check_found(check, KS_CHECK_WARN,
			       "swap is in use, and cgroup v1 does not count it here: a box can use more than its cap");
	else
		ks_check_found(check, KS_CHECK_OK, "swap is in use, and counts");
}

void ks_checks_amounts(const struct ks_doctor_facts *facts, struct ks_checks *checks)
{
	check_memory(facts, checks);
	check_open_files(facts, checks);
	check_process_limit(facts, checks);
	check_swap(facts, checks);
}
