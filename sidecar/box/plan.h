/* plan.h: a session posture's set-up as data: which ids, which mount tree, which mounts a box makes for itself. The sidecar
 * writes it, `run --plan` prints it, the template and the box execute it (tree.c); a failing step is named by it.
 * Sources are pinned by descriptor from the moment they were checked. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"
#include "filter.h"
#include "msg.h"

#define KS_BOX_UID 1000u
#define KS_RANGE_START 2000000000u /* a root sidecar: box id n is host id KS_RANGE_START + n */
#define KS_RANGE_COUNT 65536u
#define KS_PLAN_STEPS 512
#define KS_CODE_DIR "/run/code"	   /* private to each box: the code's files */
#define KS_HOME_DIR "/home/sandbox" /* private to each box: HOME */
#define KS_EMPTY_DIR "/run/kern/empty" /* in every box's root: what a masked directory shows */
#define KS_PLAN_MAX ((size_t)4 << 20)

struct ks_id_range {
	uint32_t inside, outside, count;
};

enum ks_step_kind {
	KS_STEP_DIR,	 /* made in our own root */
	KS_STEP_FILE,	 /* text */
	KS_STEP_SYMLINK, /* text */
	KS_STEP_BIND,	 /* source */
	KS_STEP_TMPFS,	 /* size, inodes, mode; in the template: the memory workspace, owned by the box's user */
	KS_STEP_PROC,	 /* only in a box */
	KS_STEP_DEVPTS,	 /* only in a box */
	KS_STEP_MASK,	 /* the box's /dev/null over a file, an empty directory over a directory; only in a box */
};

#define KS_STEP_BOX 1u	   /* made by each box, not once by the template: mount copies share superblocks */
#define KS_STEP_RDONLY 2u  /* bind: read-only, recursively */
#define KS_STEP_DEVICE 4u  /* bind: a device node of ours; every other bind is nodev */
#define KS_STEP_COVER 16u  /* bind: the source is a file of our own root, or a directory of what the template has mounted */
#define KS_STEP_AGAIN 32u  /* bind, in a box: what the template has at `source`, at a place that the box's own mounts have covered */
#define KS_STEP_SENT 64u  /* bind: the tree comes over the socket `fd`, from another template of the session */
#define KS_STEP_OPTIONAL 8u /* mask: a kernel without that file is fine. dir: one that is there is, too */

struct ks_step {
	uint32_t kind, flags;
	uint32_t mode;
	int32_t fd;	    /* bind: index of the detached tree among the descriptors, -1: open `source` and compare */
	uint32_t target, source, text; /* offsets of strings; 0 is "" */
	uint32_t text_len;
	uint64_t size, inodes; /* tmpfs */
	uint64_t device, inode; /* bind by path: what it must still be */
};

struct ks_plan_head {
	uint32_t magic, step_count, strings_len;
	uint32_t is_root;
	uint32_t map_count;
	struct ks_id_range uid_map[4], gid_map[4];
	uint32_t hostname, fail_step; /* strings; fail_step only in test builds */
	uint32_t box_uid, box_gid;    /* who the command is */
	uint32_t shares_network;      /* no network namespace of its own */
	uint32_t apparmor;	      /* string; a profile's name, or "" */
	uint32_t filter[2], filter_count[2]; /* allowlist, arguments, as BPF: offset among the strings, a multiple of 8; instructions */
	uint32_t box_user_ns;	      /* each box makes a user namespace of its own (KS_BOX_OWN_USER_NS) */
	uint64_t keep_caps;	      /* bit mask of capabilities that the command keeps; 0: none */
};
_Static_assert(sizeof(struct ks_plan_head) % 8 == 0, "the steps would lie across their alignment");

struct ks_plan {
	struct ks_plan_head head;
	struct ks_step steps[KS_PLAN_STEPS];
	struct ks_buf strings;
	int fds[KS_MSG_FDS]; /* detached mount trees, owned */
	int nfds;
};

#define KS_PLAN_MAGIC 0x6b70316eu

/* `is_root`: the sidecar has real root's powers, so trees are cloned and pinned here; else the template reopens them by path. */
void ks_plan_init(struct ks_plan *plan, bool is_root);
void ks_plan_free(struct ks_plan *plan);
/* The box's user (below KS_RANGE_COUNT) becomes `owner` outside, everything else lies in the unused high range (root), or is not mapped at
 * all (user). */
void ks_plan_map_ids(struct ks_plan *plan, uid_t box_uid, gid_t box_gid, uid_t owner_uid, gid_t owner_gid);

/* Each returns 0 or -1 with err (out of room, or the kernel's reason). Targets are absolute paths in the box. */
int ks_plan_dir(struct ks_plan *plan, const char *target, unsigned mode, struct ks_error *err);
int ks_plan_file(struct ks_plan *plan, const char *target, const char *text, struct ks_error *err);
/* A directory there, if there is none; one that lies in an image or a workspace is not made but refused. */
int ks_plan_place(struct ks_plan *plan, const char *target, struct ks_error *err);
int ks_plan_symlink(struct ks_plan *plan, const char *target, const char *to, struct ks_error *err);
/* `fd` is an O_PATH descriptor of the source (stays the caller's), `path` its canonical name. `idmap`: a user namespace whose map
 * the mount gets (root only), or -1. */
int ks_plan_bind(struct ks_plan *plan, int fd, const char *path, const char *target, unsigned flags, int idmap,
		 struct ks_error *err);
/* A file of our own root, made by ks_plan_file(), over a file of the image. */
int ks_plan_cover(struct ks_plan *plan, const char *source, const char *target, struct ks_error *err);
/* A directory of what the template has mounted by then (a path in the box; it must be this inode), at another place or over itself. */
int ks_plan_within(struct ks_plan *plan, const char *source, const struct stat *identity, const char *target, unsigned flags,
		   struct ks_error *err);
/* What the template mounted at `source`, again at `target` below one of the box's own file systems. */
int ks_plan_again(struct ks_plan *plan, const char *source, const char *target, struct ks_error *err);
int ks_plan_tmpfs(struct ks_plan *plan, const char *target, uint64_t size, uint64_t inodes, unsigned mode,
		  struct ks_error *err);
/* The session's own: the template mounts it once for all of its boxes, and its group's `ready` brings the root of it. */
int ks_plan_memory(struct ks_plan *plan, const char *target, uint64_t size, uint64_t inodes, struct ks_error *err);
/* The same in a further template of the session: `sock` is where ks_group_send_memory() sends it. Takes a copy of `sock`. */
int ks_plan_sent(struct ks_plan *plan, int sock, const char *target, struct ks_error *err);
int ks_plan_proc(struct ks_plan *plan, struct ks_error *err);
int ks_plan_devpts(struct ks_plan *plan, struct ks_error *err);
int ks_plan_mask(struct ks_plan *plan, const char *target, struct ks_error *err);
int ks_plan_set_hostname(struct ks_plan *plan, const char *name, struct ks_error *err);
int ks_plan_set_apparmor(struct ks_plan *plan, const char *profile, struct ks_error *err);
int ks_plan_set_filters(struct ks_plan *plan, const struct ks_filter filters[2], struct ks_error *err);
int ks_plan_set_fail_step(struct ks_plan *plan, const char *name, struct ks_error *err);

/* One step a line, for people and for a golden test; host-dependent numbers are left out. */
enum ks_plan_phase { KS_PLAN_TEMPLATE, KS_PLAN_BOX };
void ks_plan_print(const struct ks_plan *plan, enum ks_plan_phase phase, struct ks_buf *out);
/* A sealed memfd with the plan, to be sent in front of plan->fds. -1 with err. */
int ks_plan_pack(const struct ks_plan *plan, struct ks_error *err);

/* The reading side: maps a packed plan. Checks every offset, so a damaged one is refused, not followed. */
struct ks_plan_view {
	const struct ks_plan_head *head;
	const struct ks_step *steps;
	const char *strings;
	size_t mapped;
};
int ks_plan_open(int fd, struct ks_plan_view *ret, struct ks_error *err);
void ks_plan_close(struct ks_plan_view *view);
/* The filters inside the plan, 0 and 1; valid as long as the view. */
struct ks_filter ks_plan_filter(const struct ks_plan_view *view, int which);
const char *ks_plan_string(const struct ks_plan_view *view, uint32_t offset);
const char *ks_step_name(uint32_t kind);
/* Where the memory workspace is; NULL when there is none. */
const char *ks_plan_memory_target(const struct ks_plan_view *view);

/* Test hook: true when `step` is the one that has to fail. Always false in a build without hooks. */
bool ks_plan_fails(const struct ks_plan_view *view, const char *step);
