/* outcome_json.h: an ExecutionResult on the wire. */
#pragma once

#include "base/buf.h"
#include "session/call.h"

/* The members of the result, without the outer braces closed by an extra member: one JSON object of at most `room` bytes; what does not
 * fit becomes a blob. The kept output moves into blobs where it does. */
int ks_outcome_write(struct ks_call *call, size_t room, struct ks_buf *json, struct ks_error *err);
/* The members of run/display that follow seq, without braces: `room` bytes at most but for ids. `result` is NULL of a clear. */
int ks_outcome_write_display(struct ks_call *call, enum ks_result_op op, const struct ks_result *result, bool wait, size_t room,
			     struct ks_buf *json, struct ks_error *err);
/* The member "fault", or nothing when there was none. */
void ks_outcome_write_fault(const struct ks_outcome *outcome, struct ks_buf *json);
/* output/read: a part of what is kept of a stream. */
int ks_output_write(struct ks_call *call, enum ks_output which, int64_t offset, int64_t max_bytes, size_t room, struct ks_buf *json,
		    struct ks_error *err);
/* "KILL" for SIGKILL, and back: 0 when there is no such signal. */
const char *ks_signal_name(int signal_number, char room[8]);
int ks_signal_number(const char *name);
