/* outcome_render.h: an ExecutionResult as one text for a model. */
#pragma once

#include "base/buf.h"
#include "session/call.h"

/* Appends at most `max_chars` (KS_MIN_RENDER_CHARS or more) characters. The call's output must still be its own (not yet in a blob). */
void ks_outcome_render(const struct ks_call *call, size_t max_chars, struct ks_buf *out);
