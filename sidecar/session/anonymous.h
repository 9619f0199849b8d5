/* anonymous.h: sessions that are opened before a call without a session comes. Such a call has one of default options for itself alone,
 * whose workspace is empty, and a new box. When the call has left nothing in the workspace, and the last of its processes is gone, the
 * session is as new and may have another call; else all of it goes with the call.
 *
 * How many are kept follows demand, as with spares. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define KS_ANONYMOUS_MAX 8 /* that wait */
#define KS_ANONYMOUS_IDLE_MS 30000 /* without such a call: all go */

struct ks_call;
struct ks_core;
struct ks_session;

/* One that is open, for this call; NULL: it opens its own. What is taken or missed is what is made. */
struct ks_session *ks_anonymous_take(struct ks_call *call);
/* Its call is over. False: it cannot have another, and is to be closed. Whether it may is looked at when the next one comes. */
bool ks_anonymous_return(struct ks_session *session);
/* Some milliseconds after a call: opens one of those that are missing; false when none is. */
bool ks_anonymous_refill(struct ks_core *core);
/* Every few seconds. */
void ks_anonymous_idle(struct ks_core *core, int64_t now_us);
/* A session ends. */
void ks_anonymous_forget(struct ks_session *session);
