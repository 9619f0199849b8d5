/* plan.h: `kern-sidecar run --plan`: what would be set up, without doing it. */
#pragma once

#include "proto/messages.h"

/* Returns the exit status. */
int ks_cli_plan(const struct ks_session_params *params);
