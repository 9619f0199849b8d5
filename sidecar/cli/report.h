/* report.h: what a person is told about a call: results while it runs, figures and the verdict at its end. */
#pragma once

#include "session/call.h"

/* Appends the text of a display or value (cleaned), or nothing: an image is a file later on. */
void ks_report_result(const struct ks_result *result, struct ks_buf *out);
/* Writes figures, and documents that are not text, into the working directory, never over a file; names them on stderr. */
void ks_report_figures(const struct ks_call *call, bool colour);
/* The fault with its cure, notes, what became of files: on stderr. */
void ks_report_end(const struct ks_call *call, bool private_workspace, bool colour);
/* The contract's status. */
int ks_report_status(const struct ks_outcome *outcome);
