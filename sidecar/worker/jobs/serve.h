/* serve.h: the loop of kern-worker: frames in, jobs, frames out. */
#pragma once

#include "run.h"

void ks_run_answer(struct ks_run *run, enum ks_answer kind, const void *payload, size_t len);
/* Until the sidecar closes its end. */
_Noreturn void ks_serve(int sock);
