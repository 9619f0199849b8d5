/* cgroup_impl.h: what the cgroup_*.c files share. Nobody else includes it. */
#pragma once

#include <stdio.h>

#include "base/list.h"
#include "box/cgroup.h"

#define KS_CGROUP_PREFIX "kern-sidecar-" /* then the uid, then 8 hex digits */
#define KS_CGROUP_TEXT 4096		 /* what is read of one control file; the longest (io.stat) has a line a device */
#define KS_CGROUP_PATH 512		 /* a longer path to a cgroup is not used */
#define KS_PLACES 5
#define KS_LEAVES_MAX 4096 /* taken at one time */
#define KS_NO_LIMIT INT64_MAX
#define KS_UNKNOWN (-2) /* an fd not opened yet, a limit not known */
#define KS_CPU_PERIOD_US 100000

/* What a hierarchy can do for us. On v1 each may be in another one. */
enum ks_function { KS_FN_MEMORY, KS_FN_PIDS, KS_FN_CPU, KS_FN_ACCT, KS_FN_IO, KS_FN_COUNT };

#define KS_FN(fn) (1u << (fn))
#define KS_FN_LIMITS (KS_FN(KS_FN_MEMORY) | KS_FN(KS_FN_PIDS) | KS_FN(KS_FN_CPU))

enum ks_leaf_file {
	KS_F_MEMORY_MAX,
	KS_F_MEMORY_SWAP,  /* v1: memory and swap together */
	KS_F_MEMORY_NOW,
	KS_F_MEMORY_PEAK,
	KS_F_MEMORY_OOM,   /* counter of kills */
	KS_F_MEMORY_HITS,  /* v1: how often the limit was hit; v2 has it in the events */
	KS_F_MEMORY_SWAP_HITS,
	KS_F_MEMORY_CLEAN, /* a write gives page cache back */
	KS_F_PIDS_MAX,
	KS_F_PIDS_EVENTS,
	KS_F_PIDS_PEAK,
	KS_F_PIDS_NOW,
	KS_F_CPU_MAX,
	KS_F_CPU_USER,
	KS_F_CPU_SYSTEM,
	KS_F_IO,
	KS_F_COUNT
};

/* -1: not told. */
struct ks_counters {
	int64_t oom_kills, oom_own /* OOMs at our own limit */, limit_hits /* charges that had to reclaim first */;
	int64_t memory_now, memory_peak, pids_peak, pids_now, pids_refused, cpu_user_us, cpu_system_us, io_read, io_write;
};

struct ks_leaf;

struct ks_cgroup_ops {
	const char *name; /* "v1", "v2" */
	struct {
		enum ks_function fn;
		const char *name, *fallback;
	} files[KS_F_COUNT];
	/* Once for a new leaf: what does not change between boxes. May be NULL. */
	void (*prepare)(struct ks_leaf *leaf);
	int (*limit_memory)(struct ks_leaf *leaf, int64_t bytes, struct ks_error *err);
	int (*limit_cpu)(struct ks_leaf *leaf, int64_t quota_us, struct ks_error *err);
	/* Fills what `fn` knows. */
	void (*count)(struct ks_leaf *leaf, enum ks_function fn, struct ks_counters *ret);
};

extern const struct ks_cgroup_ops ks_cgroup_v1, ks_cgroup_v2;

/* One hierarchy that we have a directory in. */
struct ks_place {
	const struct ks_cgroup_ops *ops;
	unsigned functions;
	int own_fd;    /* the cgroup we were started in */
	int set_fd;    /* our directory in it; its lock says that we live */
	unsigned switched_on; /* v2: controllers (ks_function bits) that we enabled in own_fd */
	bool moved;    /* v2: we went into set/self */
	char path[KS_CGROUP_PATH]; /* of own_fd */
};

struct ks_cgroups {
	struct ks_cgroups_config config;
	struct ks_cgroup_status status;
	char set[64]; /* our name, the same in each hierarchy */
	struct ks_place places[KS_PLACES];
	int place_count;
	struct ks_list idle, taken, stuck; /* stuck: something was still inside at the release */
	int idle_count, taken_count;
	unsigned next_leaf;
	struct ks_leaf *cleaning; /* at most one, by a child of ours */
	int cleaner;		  /* pidfd, or -1 */
};

struct ks_leaf {
	struct ks_list node;
	struct ks_cgroups *cgroups;
	char name[16];
	int procs[KS_PLACES]; /* -1: not opened */
	int dir;	      /* -1: not opened */
	int files[KS_F_COUNT]; /* KS_UNKNOWN: not opened; -1: there is none */
	int64_t written[KS_F_COUNT];
	unsigned entered; /* functions that the box takes part in */
	bool spent; /* see ks_leaf_spend() */
	bool peak_reset; /* the peak is of this box alone; true of a new leaf, too */
	int64_t seen; /* highest memory seen */
	struct ks_counters base;
};

/* cgroup.c */
/* Where a function is; NULL when it is nowhere. */
const struct ks_place *ks_leaf_place(const struct ks_leaf *leaf, enum ks_function fn);
/* The leaf's file, opened at the first use; -1 when there is none. */
int ks_leaf_file(struct ks_leaf *leaf, enum ks_leaf_file file);
/* Text of a control file, NUL-terminated. False when it cannot be read whole. */
bool ks_leaf_read(struct ks_leaf *leaf, enum ks_leaf_file file, char ret_text[KS_CGROUP_TEXT]);
int64_t ks_leaf_number(struct ks_leaf *leaf, enum ks_leaf_file file); /* "max" = KS_NO_LIMIT; -1 */
/* Writes `text` and compares what the kernel then says with `expected`; nothing to do when it is so already. */
int ks_leaf_write(struct ks_leaf *leaf, enum ks_leaf_file file, const char *text, int64_t expected,
		  struct ks_error *err);
int64_t ks_cgroup_value(const char *text);		     /* first number of a text */
int64_t ks_cgroup_key(const char *text, const char *key);    /* "key number" at the start of a line; -1 */
bool ks_cgroup_word(const char *text, char separator, const char *word); /* the first line has it as a whole word */
int64_t ks_memory_page_floor(int64_t bytes);

/* All limits off. */
int ks_leaf_unlimit(struct ks_leaf *leaf, struct ks_error *err);

/* cgroup_pool.c */
/* Removes every leaf and every place of ours. */
void ks_cgroup_drop_places(struct ks_cgroups *cgroups);

/* cgroup_find.c */
/* Sweeps, looks where we are and takes what we may have: fills places, and the reason of what is not there. */
int ks_cgroup_claim(struct ks_cgroups *cgroups, bool *ret_v2_mounted, struct ks_error *err);
/* Removes our directory and undoes what we changed around it. */
void ks_cgroup_give_back(struct ks_cgroups *cgroups, struct ks_place *place);
/* The controller's name in cgroup.controllers and /proc/self/cgroup. */
const char *ks_function_name(enum ks_function fn, bool v2);
/* Reads a small file whole below dirfd. Its length, or -errno. */
int ks_cgroup_read_at(int dirfd, const char *name, char *ret_text, size_t size);
int ks_cgroup_write_at(int dirfd, const char *name, const char *text);

/* cgroup_set.c */
/* Opens the cgroup that we are in, if we may write to it, and sweeps there. 0 or -errno. */
int ks_cgroup_open_own(const struct ks_cgroups_config *config, const char *path, struct ks_place *ret);
int ks_cgroup_make_set(struct ks_cgroups *cgroups, struct ks_place *place); /* 0 or -errno */
/* What has processes in it stays. */
void ks_cgroup_remove_children(const struct ks_cgroups_config *config, int set);

/* cgroup_bus.c */
/* Asks systemd for a scope of our own and waits until we are in it. False and a reason otherwise. */
bool ks_cgroup_ask_systemd(const struct ks_cgroups_config *config, char *ret_reason, size_t size);
