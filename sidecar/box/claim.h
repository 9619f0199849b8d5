/* claim.h: the claim of a box: what only this call knows. The sidecar packs it, the box's init reads it; both by this
 * file, which touches neither descriptors nor files.
 *
 * On the box's socket: a struct ks_claim, then its body; one that is too large for a message lies in a memfd
 * (KS_CLAIM_MEMFD). The body: cwd, argc words, envc NAME=VALUE pairs, each ended by a NUL; then nfiles times a
 * ks_claim_file, the name with its NUL, the content. Descriptors: [join,] [memfd,] stdin, stdout, stderr [, result]. */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

#define KS_CLAIM_INLINE 32768u
#define KS_CLAIM_MAX ((size_t)24 << 20)
#define KS_CLAIM_WORDS 4096u /* argc + envc */
#define KS_CLAIM_NAME 255u   /* bytes of a file's name, as NAME_MAX of Linux */

#define KS_CLAIM_MEMFD 1u
#define KS_CLAIM_RESULT 2u	/* a result channel is among the fds; the command gets it as descriptor 3 */
#define KS_CLAIM_POLL_MEMORY 4u /* no memory cgroup: init polls */
#define KS_CLAIM_JOIN 8u /* the command is not executed: a zygote forks it, and init lets it in (join.h) */
#define KS_CLAIM_FDS 6

struct ks_claim {
	uint32_t flags;
	uint32_t argc, envc, nfiles;
	uint32_t length; /* of the body */
	uint32_t nofile; /* RLIMIT_NOFILE */
	uint32_t nproc;	 /* RLIMIT_NPROC, 0 = as inherited */
	uint32_t cpus;	 /* whole cpus the command may use, for the affinity mask; 0 = all */
	uint64_t memory_bytes; /* of the poll */
	uint64_t file_bytes;   /* RLIMIT_FSIZE, 0 = as inherited */
};

struct ks_claim_file {
	uint32_t name_len; /* with its NUL */
	uint32_t mode;
	uint32_t len;
};

struct ks_command_file {
	const char *name; /* in the box's private code directory */
	const void *data;
	size_t len;
	unsigned mode;
};

struct ks_command_spec {
	const char *cwd;
	const char *const *argv, *const *env; /* NULL-terminated; env holds NAME=VALUE */
	const struct ks_command_file *files;
	size_t nfiles;
	int stdio[3];
	int result_fd; /* the box's end of the result channel, which the command gets as descriptor 3; -1 none */
	int join_fd;   /* it is not executed but comes in over this, and needs the result channel; -1: executed */
};

/* Appends the body and fills in its counts and length. -1 with err: nothing was appended. */
int ks_claim_pack(const struct ks_command_spec *spec, struct ks_claim *head, struct ks_buf *body, struct ks_error *err);

struct ks_claim_view {
	const char *cwd;
	const char *words[KS_CLAIM_WORDS + 2]; /* argv, NULL; from argc + 1 on env, NULL */
	const char *files, *end; /* what ks_claim_next_file() has not taken yet */
};

/* Checks the whole claim, so that nothing is done for half of one. `body` has head->length bytes and must outlive the
 * view, which points into it. NULL, or what is wrong with it. */
const char *ks_claim_read(const struct ks_claim *head, const char *body, struct ks_claim_view *ret);
/* Takes the next file; false after the last. */
bool ks_claim_next_file(struct ks_claim_view *view, struct ks_command_file *ret);
