/* doctor_facts.h: what the doctor's checks go by: the probe's outcome, what the sidecar knows of itself, and the files
 * of the host below a root that a test can replace. Reads only; every read has a cap. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "box/cgroup.h"

#define KS_DOCTOR_FILE_MAX ((size_t)1 << 20) /* of /proc/self/mountinfo; what lies behind is not seen */

struct ks_doctor_facts {
	const char *root; /* "" is this machine; a test puts a tree of its own there */
	uid_t uid;
	const char *cwd;	 /* where a project would be */
	const char *program;	 /* of the sidecar itself, or NULL */
	const char *runtime_dir; /* $XDG_RUNTIME_DIR, or NULL */
	int64_t runs;		 /* limits.runs */
	int64_t memory_mb;	 /* a box's memory cap when nobody names one */
	/* The probe: one box with every layer. NULL: it ran. */
	const struct ks_error *probe;
	int64_t start_us;
	const struct ks_cgroup_status *limits; /* NULL: it was never found out */
	/* The state directory: either `state_error`, or path and room. */
	const struct ks_error *state_error;
	const char *state_path;
	uint64_t state_free;
};

/* The text of a file below the root, cut after size - 1 bytes, without the newline at its end; -errno when it cannot be
 * read. */
int ks_facts_text(const struct ks_doctor_facts *facts, const char *path, char *ret, size_t size);
bool ks_facts_exists(const struct ks_doctor_facts *facts, const char *path);
/* A file that holds one number; false when it does not. */
bool ks_facts_number(const struct ks_doctor_facts *facts, const char *path, int64_t *ret);
/* What stands behind `key` in a file of "key<blanks>value" lines, up to the line's end; false when no line has it. */
bool ks_facts_field(const struct ks_doctor_facts *facts, const char *path, const char *key, char *ret, size_t size);

/* One line of /proc/self/mountinfo (proc_pid_mountinfo(5)). */
struct ks_facts_mount {
	char root[256], point[256], options[256], type[32];
};

/* Calls `each` for every mount, in order, until it returns false. False when the file cannot be read. */
bool ks_facts_mounts(const struct ks_doctor_facts *facts, bool (*each)(void *arg, const struct ks_facts_mount *mount),
		     void *arg);
/* The mount that `path` lies in: the longest mount point, and of equal ones the last, which covers the others. */
bool ks_facts_mount_of(const struct ks_doctor_facts *facts, const char *path, struct ks_facts_mount *ret);
/* Whether `word` is one of the words of a comma-separated list. */
bool ks_facts_has_option(const char *options, const char *word);
/* Whether `path` is `dir` or lies below it. */
bool ks_facts_is_below(const char *path, const char *dir);
