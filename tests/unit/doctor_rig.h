/* doctor_rig.h: a host made of files, for the doctor's checks: a good one, to be spoiled by a test. */
#pragma once

#include "scratch.h"

#include "session/doctor_checks.h"

static const char mountinfo[] = "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
				"23 22 0:21 / /proc rw,nosuid,nodev,noexec - proc proc rw\n"
				"24 23 0:30 / /proc/sys/fs/binfmt_misc rw - binfmt_misc binfmt_misc rw\n"
				"25 22 0:5 / /dev rw,nosuid - devtmpfs devtmpfs rw\n"
				"26 22 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec - cgroup2 cgroup2 rw\n";
static const char limits[] = "Limit                     Soft Limit           Hard Limit           Units     \n"
			     "Max processes             95966                95966                processes \n"
			     "Max open files            65536                1048576              files     \n";
static const char status[] = "Name:\tkern\nCapEff:\t000001ffffffffff\nSeccomp:\t0\n";

/* A Debian 12 of today, with systemd and a user manager for 1000. */
static const struct {
	const char *path, *text;
} good_host[] = {
	{ "/proc/sys/kernel/osrelease", "6.1.0-28-amd64\n" },
	{ "/proc/version", "Linux version 6.1.0-28-amd64 (debian-kernel@lists.debian.org)\n" },
	{ "/proc/sys/kernel/seccomp/actions_avail",
	  "kill_process kill_thread trap errno user_notif trace log allow\n" },
	{ "/proc/sys/kernel/unprivileged_userns_clone", "1\n" },
	{ "/proc/sys/user/max_user_namespaces", "63000\n" },
	{ "/proc/sys/user/max_pid_namespaces", "63000\n" },
	{ "/proc/sys/user/max_mnt_namespaces", "63000\n" },
	{ "/proc/sys/user/max_net_namespaces", "63000\n" },
	{ "/proc/sys/user/max_ipc_namespaces", "63000\n" },
	{ "/proc/sys/user/max_uts_namespaces", "63000\n" },
	{ "/proc/sys/user/max_cgroup_namespaces", "63000\n" },
	{ "/proc/self/ns/user", "" },
	{ "/proc/self/ns/pid", "" },
	{ "/proc/self/ns/mnt", "" },
	{ "/proc/self/ns/net", "" },
	{ "/proc/self/ns/ipc", "" },
	{ "/proc/self/ns/uts", "" },
	{ "/proc/self/ns/cgroup", "" },
	{ "/proc/self/status", status },
	{ "/proc/self/limits", limits },
	{ "/proc/self/uid_map", "         0          0 4294967295\n" },
	{ "/proc/self/gid_map", "         0          0 4294967295\n" },
	{ "/proc/self/mountinfo", mountinfo },
	{ "/proc/1/cgroup", "0::/init.scope\n" },
	{ "/proc/meminfo", "MemTotal:       16303228 kB\nMemFree:         5303228 kB\n" },
	{ "/proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n" },
	{ "/usr/bin/true", "" },
	{ "/etc/ssl/certs/ca-certificates.crt", "" },
	{ "/run/systemd/system/keep", "" },
	{ "/run/user/1000/bus", "" },
};

static const char *const device_names[] = { "null", "zero", "full", "random", "urandom", "tty" };

struct host {
	struct scratch scratch;
	struct ks_doctor_facts facts;
	struct ks_cgroup_status limits;
	struct ks_error probe;
	struct ks_checks checks;
};

static void write_at(struct host *host, const char *path, const char *text)
{
	char at[256];

	(void)snprintf(at, sizeof(at), "%s", path + 1);
	for (char *slash = strchr(at, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)mkdirat(host->scratch.fd, at, 0755);
		*slash = '/';
	}
	put(host->scratch.fd, at, text);
}

static void remove_at(struct host *host, const char *path)
{
	assert_int_equal(unlinkat(host->scratch.fd, path + 1, 0), 0);
}

static int set_up(void **state)
{
	struct host *host = calloc(1, sizeof(*host));
	char at[64], to[64];

	assert_non_null(host);
	scratch_open(&host->scratch);
	for (size_t i = 0; i < KS_COUNT(good_host); i++)
		write_at(host, good_host[i].path, good_host[i].text);
	assert_int_equal(mkdirat(host->scratch.fd, "dev", 0755), 0);
	for (size_t i = 0; i < KS_COUNT(device_names); i++) {
		(void)snprintf(at, sizeof(at), "dev/%s", device_names[i]);
		(void)snprintf(to, sizeof(to), "/dev/%s", device_names[i]);
		assert_int_equal(symlinkat(to, host->scratch.fd, at), 0);
	}
	host->limits.backend = "v2";
	host->facts = (struct ks_doctor_facts){
		.root = host->scratch.path,
		.uid = 1000,
		.cwd = "/home/me/project",
		.program = "/opt/kern/kern-sidecar",
		.runtime_dir = "/run/user/1000",
		.runs = 64,
		.memory_mb = 512,
		.start_us = 2500,
		.limits = &host->limits,
		.state_path = "/tmp/kern-sidecar-1000/01234567",
		.state_free = UINT64_C(9000) << 20,
	};
	*state = host;
	return 0;
}

static int tear_down(void **state)
{
	struct host *host = *state;

	scratch_close(&host->scratch);
	free(host);
	return 0;
}

static const struct ks_check *find(const struct host *host, const char *id)
{
	for (size_t i = 0; i < host->checks.count; i++)
		if (strcmp(host->checks.items[i].id, id) == 0)
			return &host->checks.items[i];
	fail_msg("no check %s", id);
	return NULL;
}

/* What holds for every report, whatever the host. */
static void examine(struct host *host)
{
	const struct ks_checks *checks = &host->checks;

	ks_doctor_examine(&host->facts, &host->checks);
	assert_true(checks->count > 35 && checks->count < KS_CHECKS_MAX);
	for (size_t i = 0; i < checks->count; i++) {
		const struct ks_check *check = &checks->items[i];
		assert_ptr_equal(find(host, check->id), check); /* the first of this id is the only one */
		assert_true(check->found[0] && strlen(check->found) < sizeof(check->found) - 1);
		assert_true(strlen(check->wanted) < sizeof(check->wanted) - 1); /* nothing is cut */
		assert_true(strlen(check->fix) < sizeof(check->fix) - 1);
		if (check->status != KS_CHECK_OK)
			assert_true(check->fix[0]);
	}
	bool front = strcmp(checks->items[0].id, "box") == 0;
	assert_string_equal(checks->items[front ? 0 : 1].id, "box");
	if (front)
		return;
	assert_non_null(host->facts.probe);
	assert_int_equal(checks->items[0].status, KS_CHECK_FAIL);
	assert_int_equal(checks->items[1].status, KS_CHECK_FAIL);
	assert_non_null(strstr(checks->items[1].found, checks->items[0].id));
}

static void fail_probe(struct host *host, const char *step, int sys_errno)
{
	(void)ks_fail_errno(&host->probe, KS_E_START_FAILED, sys_errno, "cannot do it");
	(void)ks_error_step(&host->probe, step);
	host->facts.probe = &host->probe;
}
