/* anonymous.h: sessions that are opened before a call without a session comes. Such a call has one for itself alone, of default options:
 * a new workspace, a new template, a new box, and all of it goes with the call. So it can be there before, and serves one call.
 *
 * How many are kept follows demand, as with spares. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define KS_ANONYMOUS_MAX 4
#define KS_ANONYMOUS_IDLE_MS 30000 /* without such a call: all go */

struct ks_call;
struct ks_core;
struct ks_session;

/* One that is open, for this call; NULL: it opens its own. What is taken or missed is what is made. */
struct ks_session *ks_anonymous_take(struct ks_call *call);
/* Some milliseconds after a call: opens one of those that are missing; false when none is. */
bool ks_anonymous_refill(struct ks_core *core);
/* Every few seconds. */
void ks_anonymous_idle(struct ks_core *core, int64_t now_us);
/* A session ends. */
void ks_anonymous_forget(struct ks_session *session);
