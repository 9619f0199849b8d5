/* run.h: `kern-sidecar run` and `exec`: one call for a person, without a client. */
#pragma once

#include <stddef.h>

/* argv[0] is "run" or "exec". The rest as for ks_cli_doctor and ks_cli_archive. Returns the exit status: the code's own (128 + n for
 * signal n, 127 and 126 when the program is not there or cannot be run), 124 at the deadline, 125 when nothing has run. */
int ks_cli_call(int argc, char **argv, char *arguments, size_t arguments_len, const char *const *plugin_dirs, const char *worker_program);
