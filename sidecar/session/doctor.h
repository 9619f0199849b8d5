/* doctor.h: what this host can and cannot do for boxes, with a cause and a cure for each finding. */
#pragma once

#include "session/core.h"

/* Makes one box and runs true in it; then `done` with a JSON array of checks (each {id, status, found, wanted?, fix?}). */
void ks_doctor(struct ks_core *core, void (*done)(void *arg, bool ok, const struct ks_buf *checks), void *arg);
