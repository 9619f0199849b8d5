/* spares.h: boxes of a session that were made before anybody asked for them: their namespaces, mounts and filters are ready, and their
 * init waits for a claim. In some an interpreter has been booted as well, and our runner in it waits for the code. Each serves one call and
 * goes with it. No code of the caller's has been in one: only the image's programs and what lies in plugins' run/ directories.
 *
 * How many are kept follows demand: none before the first call, more when calls find none ready, fewer when they lie about, none
 * when nobody has called for a while; never fewer than the session's `prewarm`. */
#pragma once

#include "base/list.h"
#include "box/box.h"

#define KS_SPARES_MAX 16	       /* without interpreter that demand alone makes of a session; `prewarm` may be more */
#define KS_PARKED_MAX 2	       /* with the interpreter of one language: each costs its memory */
#define KS_PARKED_FLOOR 8      /* of a `prewarm`, for each language that is used */
#define KS_SPARES_TOTAL 256    /* of one sidecar */
#define KS_PARKED_TOTAL 32     /* of these with an interpreter */
/* Boxes of a sidecar that are not gone yet, whosever: then none is made ahead, so that dying ones cannot pile up. */
#define KS_SPARES_BACKLOG 512
#define KS_SPARES_IDLE_MS 30000 /* without a call: what is above `prewarm` goes */
#define KS_SPARES_DELAY_MS 10  /* between a claim and its replacement, so that the call has the machine for itself */
#define KS_SPARES_PAUSE_MS 2   /* between two such times when more is missing */
#define KS_PRELOAD_LIMIT_MS 60000 /* from the boot of an interpreter until its modules are there */
#define KS_SPARES_BURST 2      /* made at one time */

struct ks_call;
struct ks_core;
struct ks_language;
struct ks_session;
struct ks_spare;

enum ks_spare_answer {
	KS_SPARE_NONE,	/* the call makes a box of its own */
	KS_SPARE_TAKEN, /* it has got one that was ready */
	KS_SPARE_EARLY, /* it has got one that is not ready yet, and may claim it at once */
	KS_SPARE_WAIT,	/* ks_call_spare_ready() follows, with `call->spare` gone if it died */
};

void ks_spares_init(struct ks_session *session);
/* For this call, and whoever comes next: what is taken or missed is what is made. */
enum ks_spare_answer ks_spares_take(struct ks_call *call);
/* The call that waited for it has gone. */
void ks_spare_leave(struct ks_call *call);
/* It waits no longer: that spare is of no use. ks_call_spare_ready() follows. */
void ks_spare_reject(struct ks_call *call);
/* The session is open: `prewarm` of them. */
void ks_spares_begin(struct ks_session *session);
/* The first interpreter with the modules of the session's `preload`; ks_session_preloaded() follows, perhaps at once. */
void ks_spares_preload(struct ks_session *session);
/* One, with the interpreter of that language if there is one, for a call that is going to come. */
void ks_spares_expect(struct ks_session *session, const struct ks_language *language);
/* Some milliseconds from now: what is missing anywhere. */
void ks_spares_soon(struct ks_core *core);
/* A call has been answered: where half are gone what was to be made soon need not wait any more. */
void ks_spares_now(struct ks_core *core);
/* What they were made of is about to change. Calls that wait for one go on without. */
void ks_spares_drop(struct ks_session *session);
/* When the session goes: after the last of its processes. */
void ks_spares_free(struct ks_session *session);
/* Every few seconds. */
void ks_spares_idle(struct ks_core *core, int64_t now_us);
