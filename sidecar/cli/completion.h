/* completion.h: `kern-sidecar completion SHELL`: words to complete, from the same tables that read them. */
#pragma once

/* argv[0] is "completion". Returns the exit status. */
int ks_cli_completion(int argc, char **argv);
/* The flags of run and exec, one a line with what they mean, for --help. */
void ks_cli_print_flags(void);
