/* cgroup.h: limits and usage from the kernel. Owns every cgroup directory of this sidecar: finding a place, the
 * pool of leaves (one a box), their limits and counters, removing it all, and sweeping what dead sidecars left.
 * Touches no cgroup it did not make, except for the v2 subtree_control of the one it was started in (restored).
 *
 * The life of a leaf: take, enter (the box's init writes "0" into the descriptors), limit (right before the code
 * starts: takes the baselines), facts (when the main process has ended), release (when all is reaped).
 * Single-threaded; descriptors are CLOEXEC; nothing here is for use after a fork. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define KS_LEAF_FDS 8	  /* no host needs more hierarchies than memory, pids, cpu, cpuacct, blkio */
#define KS_LEAF_OVERHEAD 1 /* tasks of ours in a box: its init */

enum ks_enforced { KS_ENFORCED_KERNEL, KS_ENFORCED_POLLED, KS_ENFORCED_NONE };

const char *ks_enforced_name(enum ks_enforced enforced); /* "kernel", "polled", "none" */

struct ks_cgroups; /* what this host lets us enforce, and the pool of leaves */
struct ks_leaf;	   /* one box's directory in every hierarchy that is needed */

/* All zero is right for a real host; the rest is for tests. */
struct ks_cgroups_config {
	const char *root;	     /* mounts at or below it are used: "/sys/fs/cgroup" */
	const char *proc_cgroup;     /* "/proc/self/cgroup" */
	const char *proc_mountinfo;  /* "/proc/self/mountinfo" */
	const char *systemd_booted;  /* exists when systemd manages the host (sd_booted(3)): "/run/systemd/system" */
	const char *systemd_library; /* "libsystemd.so.0"; "" = do not ask systemd */
	int systemd_timeout_ms;	     /* 2000 */
	int pool_max;		     /* idle leaves that are kept: 32 */
	int64_t clean_bytes;	     /* page cache left in a leaf beyond which it is emptied before reuse: 32 MiB */
	/* mkdirat(2) and unlinkat(2, AT_REMOVEDIR): a fake tree makes and removes the files that cgroupfs would. */
	int (*make_dir)(int parent, const char *name, mode_t mode);
	int (*remove_dir)(int parent, const char *name, int flags);
};

enum ks_limit_kind { KS_LIMIT_MEMORY, KS_LIMIT_PIDS, KS_LIMIT_CPU, KS_LIMIT_KINDS };

struct ks_cgroup_status {
	enum ks_enforced enforced[KS_LIMIT_KINDS]; /* memory without a cgroup: POLLED (by the box); the others NONE */
	char reason[KS_LIMIT_KINDS][160];	   /* why not by the kernel; "" otherwise */
	const char *backend;			   /* "v1", "v2", "hybrid" (v1 beside a v2 mount, or both used), "none" */
	bool clone_into;			   /* ks_leaf_dir_fd() is of use */
};

/* Once, before the first fork (v2 wants our cgroup to hold no process but us). In this order: a v2 subtree that is
 * ours; a scope of our own from systemd (Delegate=yes); v1 hierarchies that we may write; none. Each controller by
 * itself. A host without cgroups is a status, not an error; err is for out of memory and the like.
 * Sweeps what dead owners left. */
int ks_cgroups_open(const struct ks_cgroups_config *config, struct ks_cgroups **ret, struct ks_error *err);
const struct ks_cgroup_status *ks_cgroups_status(const struct ks_cgroups *cgroups);
/* What all boxes together may have; 0 = no limit. Only where the kernel holds it: -1 with err (limits_unenforced) otherwise. On v2 the
 * sidecar's own processes count, too. */
int ks_cgroups_limit_all(struct ks_cgroups *cgroups, int64_t memory_bytes, int64_t pids, struct ks_error *err);
/* Removes everything of ours; all boxes must be gone. NULL is fine. Leaves that are still taken are freed, too. */
void ks_cgroups_close(struct ks_cgroups *cgroups);

/* From the pool, or new. Without any limit until ks_leaf_limit. With backend "none" it is an empty leaf whose facts
 * are all -1, so that callers need no second path. NULL and err when it cannot be made. */
struct ks_leaf *ks_leaf_take(struct ks_cgroups *cgroups, struct ks_error *err);
/* What a box takes part in besides memory and pids. On v1 each costs the box about 15 us (one more hierarchy to enter);
 * on v2 it is all one. A cpu limit needs KS_ENTER_CPU; without KS_ENTER_USAGE v1 may not tell cpu and io figures. */
#define KS_ENTER_CPU 1u
#define KS_ENTER_USAGE 2u
/* Open cgroup.procs files, owned by the leaf; the count is returned, or -1 and err. The process that writes "0" into
 * each of them moves itself. Opened here, because the kernel checks the opener's credentials (CVE-2021-4197 fix). */
int ks_leaf_enter_fds(struct ks_leaf *leaf, unsigned enter, int ret_fds[KS_LEAF_FDS], struct ks_error *err);
/* v2: the directory, for CLONE_INTO_CGROUP (then ks_leaf_enter_fds is not needed); -1 otherwise. Owned by the leaf. */
int ks_leaf_dir_fd(struct ks_leaf *leaf);
/* 0 = no limit. `pids` are the box's own tasks, KS_LEAF_OVERHEAD is added. Swap is 0. cpus_milli >= 10 (1 ms of 100).
 * What the host does not enforce (status) is passed over. Every limit written is read back; takes the baselines of
 * the facts below. May be called again, also with a box inside. An error names the file. */
int ks_leaf_limit(struct ks_leaf *leaf, int64_t memory_bytes, int64_t pids, int64_t cpus_milli, struct ks_error *err);

/* Differences since ks_leaf_limit; -1 = the host does not tell. */
struct ks_leaf_facts {
	int64_t oom_kills;	/* processes that the kernel killed for memory, by this box's limit or an ancestor's */
	bool oom_own_limit;	/* oom_kills > 0 and the box's own limit was hit: only then is the limit to be named */
	int64_t memory_peak_bytes;
	bool memory_peak_exact; /* false: the highest that was seen by ks_leaf_memory_now and here (kernels < 6.12, reused) */
	int64_t pids_peak;	/* without KS_LEAF_OVERHEAD, as the next */
	int64_t pids_now;	/* tasks: processes and threads */
	int64_t pids_refused;	/* forks refused at the limit */
	int64_t cpu_user_us, cpu_system_us;
	int64_t io_read_bytes, io_write_bytes; /* of block devices; v1 does not attribute buffered writes */
};

void ks_leaf_facts(struct ks_leaf *leaf, struct ks_leaf_facts *ret);
int64_t ks_leaf_tasks_now(struct ks_leaf *leaf); /* processes and threads, pid 1 of the box included; -1 unknown */
int64_t ks_leaf_memory_now(struct ks_leaf *leaf); /* without what the former box left; -1 unknown */
/* v2 with cgroup.kill (5.14): SIGKILL to all inside; else nothing (pid 1 of the box has to be killed anyway). */
void ks_leaf_kill(struct ks_leaf *leaf);
/* The box may leave pages that outlive it (files in memory, charged to who wrote them): not for another box. The leaf is then removed
 * at its release, and the kernel goes on counting them in its parent. */
void ks_leaf_spend(struct ks_leaf *leaf);
/* Back to the pool, limits taken off; all its processes must have been reaped. NULL is fine. Much page cache left
 * on v1 is emptied by a short-lived child process meanwhile; a leaf that something still lives in is not reused. */
void ks_leaf_release(struct ks_cgroups *cgroups, struct ks_leaf *leaf);
