/* session.h: a session: a workspace, an image, a posture, and the group of processes that makes its boxes. */
#pragma once

#include "box/box.h"
#include "image/image.h"
#include "proto/messages.h"
#include "session/core.h"
#include "session/gate.h"
#include "session/looks.h"
#include "session/note.h"
#include "workspace/tree.h"

enum ks_session_state { KS_SESSION_OPENING, KS_SESSION_OPEN, KS_SESSION_CLOSING };

struct ks_interpreter {
	struct ks_list node;
	char *language, *path; /* path as seen in the box */
	bool given;	       /* by the request; else found in the image */
};

struct ks_session_mount {
	char *source, *target; /* canonical on the host, in the box */
	int fd;		       /* pinned */
	bool writable, id_mapped;
	uid_t owner_uid; /* on the host */
	gid_t owner_gid;
};

struct ks_session_tmpfs {
	char *target;
	uint64_t size; /* bytes */
};

struct ks_deps { /* see deps.h */
	bool present, readonly;
	struct stat identity;
};

/* Where a setup works, as made by KS_JOB_DEPS_STAGE: what lies over .deps, /tmp and HOME. */
struct ks_deps_stage {
	struct stat tree, tmp, home;
};

/* One of the session's groups: the one in use, its successor while that opens, those that are ending. */
struct ks_session_group {
	struct ks_list node;
	struct ks_session *session;
	struct ks_group *group;
};

/* What files.c knows of a session. */
struct ks_files {
	struct ks_list tasks; /* struct ks_task, in the order they came */
	size_t count, bytes;
	struct ks_worker *worker; /* for the short ones; NULL until the first, and again when idle */
	int64_t used_us;
	bool turning;
};

struct ks_session {
	struct ks_list node;
	struct ks_core *core;
	enum ks_session_state state;
	char id[65];
	bool throwaway;
	bool held; /* in the middle of something: ks_session_turn() does nothing */
	struct ks_image *image;
	struct ks_list interpreters;
	char *workspace, *workspace_target, *cwd; /* workspace: canonical host path */
	int workspace_fd;
	bool workspace_private;
	bool workspace_memory;	/* a memory file system; workspace_fd is its root once the session is open */
	bool workspace_watched; /* its limit is ours to watch, not the kernel's */
	uint32_t workspace_project; /* holds it; 0: none */
	char workspace_reason[256]; /* who holds the limit, in words */
	uid_t owner_uid; /* the host id of the box's user */
	gid_t owner_gid;
	bool id_mapped; /* the workspace is mounted with an id map, because real root owns it */
	uid_t box_uid; /* who the code is in the box */
	gid_t box_gid;
	char user_name[65];
	uint64_t keep_caps; /* bit mask; 0: none */
	bool network, untrusted;
	char *apparmor; /* profile, or NULL */
	struct ks_session_mount *mounts; /* sorted by target */
	size_t mount_count;
	struct ks_session_tmpfs *tmpfs; /* sorted by target; /tmp is among them */
	size_t tmpfs_count;
	uint64_t shm_size;
	struct ks_box_limits limits;
	int64_t timeout_ms, max_output_bytes, workspace_max_mb; /* 0: no limit */
	bool track_files;
	int start; /* enum ks_start */
	int64_t prewarm;
	struct ks_strings preload; /* modules of python */
	struct ks_list spares; /* spares.h */
	struct { /* anonymous.h */
		struct ks_list node;
		bool waits; /* for a call */
		bool returns; /* the call that has it may leave it to another */
		bool served; /* a call has had it */
		struct ks_tree_entry fresh; /* times of its empty workspace */
	} anonymous;
	struct ks_pairs env;
	struct ks_deps deps;
	const struct ks_deps_stage *stage; /* of the setup that makes its box: such a box has it, and the network on */
	struct ks_group *group; /* NULL before and after */
	struct ks_list groups; /* struct ks_session_group; the last is the newest */
	struct ks_list calls;	/* struct ks_call, by their session_node */
	size_t call_count;
	struct ks_files files;
	struct ks_looks looks;
	struct ks_gate gate;
	struct ks_notes notes;
	int64_t opened_us;
	/* who waits */
	void (*opened)(void *arg, struct ks_session *session, const struct ks_error *err);
	void *opened_arg;
	void (*closed)(void *arg);
	void *closed_arg;
	void (*reopened)(void *arg, const struct ks_error *err);
	void *reopened_arg;
};

/* Checks everything, then asks for the template. -1 with err: nothing was left behind and no callback comes. Else `opened` is called
 * once: with the session, or with NULL and err. */
int ks_session_open(struct ks_core *core, const struct ks_session_params *params, bool throwaway,
		    void (*opened)(void *arg, struct ks_session *session, const struct ks_error *err), void *arg,
		    struct ks_session **ret, struct ks_error *err);
/* Running calls answer `cancelled`, processes end, a private workspace is removed; then `closed` (may be NULL). */
void ks_session_close(struct ks_session *session, void (*closed)(void *arg), void *arg);
/* Of the open ones, or also of those that are about to be: NULL with err (unknown_handle at /sessionId). */
struct ks_session *ks_session_find(struct ks_core *core, const char *id, bool opening_too, struct ks_error *err);
/* The first interpreter has its modules, or cannot have them. */
void ks_session_preloaded(struct ks_session *session, const struct ks_error *err);
/* One more template for the same posture (start: "cold"). */
struct ks_group *ks_session_open_group(struct ks_session *session, const struct ks_group_ops *ops, void *arg, struct ks_error *err);
/* The template again, with what the session's fields say now; nothing of the session may be running. The old one stays until the new one
 * is there, and for good when that fails. `reopened` follows; or -1 with err. */
int ks_session_reopen(struct ks_session *session, void (*reopened)(void *arg, const struct ks_error *err), void *arg,
		      struct ks_error *err);
/* Frees it without waiting for anybody: the sidecar ends. */
void ks_session_forget(struct ks_session *session);
/* A call came or went. */
void ks_session_turn(struct ks_session *session);
/* The interpreter for a language in this session, or NULL: not in the image. */
const char *ks_session_interpreter(struct ks_session *session, const struct ks_language *language);
/* Turns a path of a request into an absolute one of the box: relative ones begin at the session's cwd. Free it. */
char *ks_session_resolve_cwd(const struct ks_session *session, const char *cwd, struct ks_error *err);
/* 0, or -1: out of memory, and what was copied is in *ret. */
int ks_pairs_copy(const struct ks_pairs *from, struct ks_pairs *ret);
void ks_pairs_free(struct ks_pairs *pairs);
