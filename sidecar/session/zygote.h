/* zygote.h: an interpreter of a session that is booted once, runs nothing but our runner and what `preload` names, and forks
 * itself into the boxes of calls: what those find is what an interpreter that was booted in their box would have become, for a
 * fraction of the price.
 *
 * It is a box's main process as any other, under the same limits, but lives in the session's pid namespace and has the power to
 * enter boxes of this session (box/join.h); so what `preload` imports is trusted with the session's calls, with no other
 * session's, and with nothing of the host. It serves no call itself. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define KS_ZYGOTE_FORKS 500 /* processes; then another interpreter takes its place: addresses and hash seeds are those of the boot */

struct ks_box;
struct ks_language;
struct ks_session;
struct ks_zygote;

enum ks_zygote_end {
	KS_ZYGOTE_UNABLE, /* it cannot be forked, and says why: interpreters have to boot */
	KS_ZYGOTE_FAILED, /* a module of `preload` cannot be imported */
	KS_ZYGOTE_DIED,
};

/* Calls of this language could have one in this session. */
bool ks_zygote_possible(const struct ks_session *session, const struct ks_language *language);
/* NULL: it cannot be made. `ready` follows, or `ended`, or first one and then the other; after `ended` it is no more. */
struct ks_zygote *ks_zygote_start(struct ks_session *session, const struct ks_language *language, void (*ready)(void *arg),
				  void (*ended)(void *arg, enum ks_zygote_end how, const char *why), void *arg);
bool ks_zygote_is_ready(const struct ks_zygote *zygote);
/* One more, for this box, which is ready. What it comes in over, for ks_call_park(), or -1 with err: then it has to boot. `hurry`: a call
 * waits for it. */
int ks_zygote_fork(struct ks_zygote *zygote, struct ks_box *box, bool hurry, struct ks_error *err);
/* Every few seconds: one that never gets ready is ended. */
void ks_zygote_look(struct ks_zygote *zygote, int64_t now_us);
/* What it has forked is not touched. NULL is fine. No callback. */
void ks_zygote_stop(struct ks_zygote *zygote);
/* The sidecar ends, and its engine has ended before: nothing is told to it any more. */
void ks_zygote_forget(struct ks_zygote *zygote);
