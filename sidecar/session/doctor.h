/* doctor.h: what this host can and cannot do for boxes, with a cause and a cure for each finding: a real box is made,
 * then the checks of doctor_checks.h judge what came of it. DOCTOR.md lists them. */
#pragma once

#include "session/core.h"

/* Makes one box and runs true in it; then `done` with a JSON array of checks (each {id, status, found, wanted?, fix?}).
 */
void ks_doctor(struct ks_core *core, void (*done)(void *arg, bool ok, const struct ks_buf *checks), void *arg);
/* For a program that could not even open its core: the same array (appended) with `why` as the probe's outcome; never
 * ok. */
void ks_doctor_without_core(const struct ks_error *why, struct ks_buf *ret_checks);
