/* cgroup_pool.c: making, keeping and removing leaves, and the open and close of the whole. */
#include "box/cgroup_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/log.h"
#include "box/sys.h"

#define PROBE_MEMORY (INT64_C(64) << 20)
#define PROBE_PIDS 16
#define PROBE_QUOTA_US 50000
#define CLEANER_END_MS 200 /* a killed cleaner may sit in write-back: it is then left to init */

static void free_leaf(struct ks_leaf *leaf)
{
	for (int i = 0; i < KS_PLACES; i++)
		ks_close(&leaf->procs[i]);
	for (int i = 0; i < KS_F_COUNT; i++)
		ks_close(&leaf->files[i]);
	ks_close(&leaf->dir);
	ks_list_remove(&leaf->node);
	free(leaf);
}

/* False: something lives in it (or the kernel will not have it for another reason). */
static bool remove_leaf(struct ks_leaf *leaf)
{
	struct ks_cgroups *cgroups = leaf->cgroups;
	bool gone = true;

	for (int i = 0; i < cgroups->place_count; i++)
		if (cgroups->config.remove_dir(cgroups->places[i].set_fd, leaf->name, AT_REMOVEDIR) < 0 &&
		    errno != ENOENT)
			gone = false;
	if (gone)
		free_leaf(leaf);
	return gone;
}

/* Out of the way until it can be removed: tried again at each release and at the end. */
static void retire(struct ks_leaf *leaf)
{
	struct ks_list *stuck = &leaf->cgroups->stuck;

	ks_list_remove(&leaf->node);
	ks_list_append(stuck, &leaf->node);
	(void)remove_leaf(leaf);
}

static struct ks_leaf *make_leaf(struct ks_cgroups *cgroups, struct ks_error *err)
{
	struct ks_leaf *leaf = calloc(1, sizeof(*leaf));

	if (!leaf) {
		(void)ks_fail_errno(err, KS_E_INTERNAL, ENOMEM, "cannot make a cgroup");
		return NULL;
	}
	leaf->cgroups = cgroups;
	leaf->dir = -1;
	leaf->seen = -1;
	leaf->peak_reset = true;
	for (int i = 0; i < KS_PLACES; i++)
		leaf->procs[i] = -1;
	for (int i = 0; i < KS_F_COUNT; i++) {
		leaf->files[i] = KS_UNKNOWN;
		leaf->written[i] = KS_UNKNOWN;
	}
	ks_list_init(&leaf->node);
	(void)snprintf(leaf->name, sizeof(leaf->name), "box%u", cgroups->next_leaf++);
	for (int i = 0; i < cgroups->place_count; i++) {
		const struct ks_place *place = &cgroups->places[i];

		if (cgroups->config.make_dir(place->set_fd, leaf->name, 0755) < 0) {
			(void)ks_fail_errno(err, KS_E_START_FAILED, errno, "cannot make %.180s/%s/%s", place->path,
					    cgroups->set, leaf->name);
			retire(leaf);
			return NULL;
		}
	}
	for (int i = 0; i < cgroups->place_count; i++)
		if (cgroups->places[i].ops->prepare)
			cgroups->places[i].ops->prepare(leaf);
	return leaf;
}

/* What a box is in even before ks_leaf_enter_fds says more. */
static unsigned entered_at_least(const struct ks_cgroups *cgroups)
{
	unsigned functions = 0;

	for (int i = 0; i < cgroups->place_count; i++)
		if (cgroups->places[i].functions & (KS_FN(KS_FN_MEMORY) | KS_FN(KS_FN_PIDS)))
			functions |= cgroups->places[i].functions;
	return functions;
}

static int keep_idle(struct ks_cgroups *cgroups, struct ks_leaf *leaf)
{
	if (cgroups->idle_count >= cgroups->config.pool_max)
		return -1;
	ks_list_remove(&leaf->node);
	ks_list_append(&cgroups->idle, &leaf->node);
	cgroups->idle_count++;
	return 0;
}

/* The cleaner's end, if it has ended; `kill` makes it end. */
static void reap_cleaner(struct ks_cgroups *cgroups, bool kill)
{
	struct pollfd ended = { .fd = cgroups->cleaner, .events = POLLIN };
	siginfo_t info;

	if (cgroups->cleaner < 0)
		return;
	if (kill)
		(void)ks_pidfd_kill(cgroups->cleaner, SIGKILL);
	if (poll(&ended, 1, kill ? CLEANER_END_MS : 0) != 1 && !kill)
		return;
	(void)waitid(P_PIDFD, (id_t)cgroups->cleaner, &info, WEXITED | WNOHANG | __WALL);
	ks_close(&cgroups->cleaner);
	struct ks_leaf *leaf = KS_TAKE_PTR(cgroups->cleaning);
	if (keep_idle(cgroups, leaf) < 0)
		retire(leaf);
}

/* A child, because reclaim waits for write-back as long as a slow disk likes and v1 has no smaller portion. It holds
 * no descriptor but the one: a pipe of ours kept open would hide our own end from a host. */
static int start_cleaner(struct ks_cgroups *cgroups, struct ks_leaf *leaf, int64_t bytes)
{
	int fd = ks_leaf_file(leaf, KS_F_MEMORY_CLEAN);
	char text[32];
	int len = snprintf(text, sizeof(text), "%lld", (long long)bytes);
	sigset_t all, old;

	if (fd < 0 || cgroups->cleaner >= 0)
		return -1;
	(void)sigfillset(&all); /* no handler of ours may run in the child */
	(void)sigprocmask(SIG_BLOCK, &all, &old);
	pid_t pid = ks_clone3(0, 0, -1, &cgroups->cleaner);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(dup2(fd, 0) < 0 || syscall(SYS_close_range, 1, ~0U, 0) < 0 || write(0, text, (size_t)len) < 0);
	}
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	if (pid < 0) {
		cgroups->cleaner = -1;
		return -1;
	}
	cgroups->cleaning = leaf;
	return 0;
}

struct ks_leaf *ks_leaf_take(struct ks_cgroups *cgroups, struct ks_error *err)
{
	struct ks_leaf *leaf;

	reap_cleaner(cgroups, false);
	if (cgroups->taken_count >= KS_LEAVES_MAX) {
		(void)ks_fail(err, KS_E_OVERLOADED, "%d boxes have a cgroup already, no more are made", KS_LEAVES_MAX);
		return NULL;
	}
	if (ks_list_empty(&cgroups->idle)) {
		leaf = make_leaf(cgroups, err);
		if (!leaf)
			return NULL;
	} else {
		leaf = KS_ENTRY(cgroups->idle.prev, struct ks_leaf, node); /* the last one used is warm */
		ks_list_remove(&leaf->node);
		cgroups->idle_count--;
	}
	leaf->entered = entered_at_least(cgroups);
	ks_list_append(&cgroups->taken, &leaf->node);
	cgroups->taken_count++;
	return leaf;
}

static bool inhabited(const struct ks_leaf *leaf)
{
	char some[16];

	for (int i = 0; i < leaf->cgroups->place_count; i++)
		if (leaf->procs[i] >= 0 && pread(leaf->procs[i], some, 1, 0) > 0)
			return true;
	int n = leaf->dir >= 0 ? ks_cgroup_read_at(leaf->dir, "cgroup.procs", some, sizeof(some)) : 0;
	return n > 0 || n == -E2BIG;
}

/* v2 before 6.12: a peak that cannot be reset hides that of the next box unless it is higher. And what is charged for good would
 * be the next box's. Making a leaf is left to this moment, when nobody waits for it. */
static void replace(struct ks_leaf *leaf)
{
	struct ks_cgroups *cgroups = leaf->cgroups;
	struct ks_error err;

	retire(leaf);
	leaf = make_leaf(cgroups, &err);
	if (leaf && (ks_leaf_unlimit(leaf, &err) < 0 || keep_idle(cgroups, leaf) < 0))
		retire(leaf);
}

static bool keeps_peak(struct ks_leaf *leaf)
{
	return ks_leaf_file(leaf, KS_F_MEMORY_PEAK) >= 0 && !leaf->peak_reset;
}

void ks_leaf_spend(struct ks_leaf *leaf)
{
	leaf->spent = true;
}

void ks_leaf_release(struct ks_cgroups *cgroups, struct ks_leaf *leaf)
{
	struct ks_error err;

	if (!leaf)
		return;
	reap_cleaner(cgroups, false);
	ks_list_remove(&leaf->node);
	cgroups->taken_count--;
	if (!ks_list_empty(&cgroups->stuck))
		(void)remove_leaf(KS_ENTRY(cgroups->stuck.next, struct ks_leaf, node));
	if (inhabited(leaf)) {
		ks_log(KS_LOG_WARN, "cgroup_inhabited", "%s/%s still has processes, it is not used again", cgroups->set,
		       leaf->name);
		retire(leaf);
		return;
	}
	if (leaf->spent || keeps_peak(leaf)) {
		replace(leaf);
		return;
	}
	leaf->entered = 0;
	if (cgroups->idle_count >= cgroups->config.pool_max || ks_leaf_unlimit(leaf, &err) < 0) {
		retire(leaf);
		return;
	}
	int64_t left = cgroups->config.clean_bytes > 0 ? ks_leaf_number(leaf, KS_F_MEMORY_NOW) : -1;
	if (left > cgroups->config.clean_bytes && start_cleaner(cgroups, leaf, left) == 0)
		return;
	if (keep_idle(cgroups, leaf) < 0)
		retire(leaf);
}

/* A limit counts as the kernel's only when one has been written here and read back. */
static void probe(struct ks_cgroups *cgroups)
{
	struct ks_cgroup_status *status = &cgroups->status;
	struct ks_leaf *leaf;
	struct ks_error err;

	leaf = make_leaf(cgroups, &err);
	for (int kind = 0; kind < KS_LIMIT_KINDS; kind++) {
		const struct ks_place *place = leaf ? ks_leaf_place(leaf, (enum ks_function)kind) : NULL;
		int rc = -1;

		if (leaf && !place)
			continue; /* has its reason */
		if (leaf && kind == KS_LIMIT_MEMORY)
			rc = place->ops->limit_memory(leaf, PROBE_MEMORY, &err);
		else if (leaf && kind == KS_LIMIT_PIDS)
			rc = ks_leaf_write(leaf, KS_F_PIDS_MAX, "16", PROBE_PIDS, &err);
		else if (leaf)
			rc = place->ops->limit_cpu(leaf, PROBE_QUOTA_US, &err);
		if (rc < 0) {
			(void)snprintf(status->reason[kind], sizeof(status->reason[kind]), "%.*s",
				       (int)sizeof(status->reason[kind]) - 1, err.text);
			continue;
		}
		status->enforced[kind] = KS_ENFORCED_KERNEL;
		status->reason[kind][0] = '\0';
	}
	if (leaf && (ks_leaf_unlimit(leaf, &err) < 0 || keep_idle(cgroups, leaf) < 0))
		retire(leaf);
}

static void name_backend(struct ks_cgroups *cgroups, bool v2_mounted)
{
	bool v1 = false, v2 = false;

	for (int i = 0; i < cgroups->place_count; i++) {
		v1 |= cgroups->places[i].ops == &ks_cgroup_v1;
		v2 |= cgroups->places[i].ops == &ks_cgroup_v2;
	}
	cgroups->status.backend = v1 ? (v2_mounted ? "hybrid" : "v1") : v2 ? "v2" : "none";
	cgroups->status.clone_into = v2 && !v1;
}

static void set_defaults(struct ks_cgroups_config *c)
{
	c->root = c->root ? c->root : "/sys/fs/cgroup";
	c->proc_cgroup = c->proc_cgroup ? c->proc_cgroup : "/proc/self/cgroup";
	c->proc_mountinfo = c->proc_mountinfo ? c->proc_mountinfo : "/proc/self/mountinfo";
	c->systemd_booted = c->systemd_booted ? c->systemd_booted : "/run/systemd/system";
	c->systemd_library = c->systemd_library ? c->systemd_library : "libsystemd.so.0";
	c->systemd_timeout_ms = c->systemd_timeout_ms > 0 ? c->systemd_timeout_ms : 2000;
	c->pool_max = c->pool_max > 0 ? c->pool_max : 32;
	c->clean_bytes = c->clean_bytes > 0 ? c->clean_bytes : INT64_C(32) << 20;
	c->make_dir = c->make_dir ? c->make_dir : mkdirat;
	c->remove_dir = c->remove_dir ? c->remove_dir : unlinkat;
}

int ks_cgroups_open(const struct ks_cgroups_config *config, struct ks_cgroups **ret, struct ks_error *err)
{
	struct ks_cgroups *cgroups = calloc(1, sizeof(*cgroups));
	bool v2_mounted = false, limits = false;

	if (!cgroups)
		return ks_fail_errno(err, KS_E_INTERNAL, ENOMEM, "cannot look for cgroups");
	cgroups->config = *config;
	set_defaults(&cgroups->config);
	cgroups->cleaner = -1;
	ks_list_init(&cgroups->idle);
	ks_list_init(&cgroups->taken);
	ks_list_init(&cgroups->stuck);
	cgroups->status.enforced[KS_LIMIT_MEMORY] = KS_ENFORCED_POLLED;
	cgroups->status.enforced[KS_LIMIT_PIDS] = cgroups->status.enforced[KS_LIMIT_CPU] = KS_ENFORCED_NONE;
	if (ks_cgroup_claim(cgroups, &v2_mounted, err) < 0) {
		ks_cgroups_close(cgroups);
		return -1;
	}
	if (cgroups->place_count > 0)
		probe(cgroups);
	for (int kind = 0; kind < KS_LIMIT_KINDS; kind++)
		limits |= cgroups->status.enforced[kind] == KS_ENFORCED_KERNEL;
	if (!limits)
		ks_cgroup_drop_places(cgroups);
	name_backend(cgroups, v2_mounted);
	*ret = cgroups;
	return 0;
}

const struct ks_cgroup_status *ks_cgroups_status(const struct ks_cgroups *cgroups)
{
	return &cgroups->status;
}

/* The directories of all leaves, for as long as the last dying process needs (about 50 ms at most). */
void ks_cgroup_drop_places(struct ks_cgroups *cgroups)
{
	struct ks_list *lists[] = { &cgroups->idle, &cgroups->stuck, &cgroups->taken };

	for (int tries = 0; tries < 10; tries++) {
		bool left = false;

		for (size_t i = 0; i < KS_COUNT(lists); i++)
			for (struct ks_list *node = lists[i]->next, *next; node != lists[i]; node = next) {
				next = node->next;
				left |= !remove_leaf(KS_ENTRY(node, struct ks_leaf, node));
			}
		if (!left)
			break;
		(void)poll(NULL, 0, 5);
	}
	for (size_t i = 0; i < KS_COUNT(lists); i++)
		while (!ks_list_empty(lists[i]))
			free_leaf(KS_ENTRY(lists[i]->next, struct ks_leaf, node));
	cgroups->idle_count = cgroups->taken_count = 0;
	while (cgroups->place_count > 0)
		ks_cgroup_give_back(cgroups, &cgroups->places[--cgroups->place_count]);
}

void ks_cgroups_close(struct ks_cgroups *cgroups)
{
	if (!cgroups)
		return;
	reap_cleaner(cgroups, true);
	ks_cgroup_drop_places(cgroups);
	free(cgroups);
}
