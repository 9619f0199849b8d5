/* command.h: in the init of a box: reads the claim, starts the command as pid 2, or lets it come in (join.h), reaps until it has
 * ended. Runs with the box's own powerless credentials. */
#pragma once

#include "init.h"

#define KS_COMMAND_STEPS 6u
extern const char *const ks_command_steps[KS_COMMAND_STEPS];

/* Waits for the claim. 0; 1 when the socket ended; -1 with err when the claim is not one. */
int ks_command_claim(int sock, struct ks_error *err);
/* Starts the command, says so on `sock`, and waits until the main process has ended: 0 with an EXITED or EXEC_FAILED message, or -1 with
 * err: it never ran. */
int ks_command_run(int sock, struct ks_msg *ret_msg, struct ks_error *err);
/* Before both. */
void ks_command_set_up(const struct ks_box_setup *setup);
