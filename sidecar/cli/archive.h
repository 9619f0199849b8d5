/* archive.h: `kern-sidecar snapshot` and `restore`: a workspace to an archive and back, without a client. */
#pragma once

#include <stddef.h>

/* The `snapshot` or `restore` command, by argv[0]. `arguments` is the program's argv and environment block, which the launcher wipes in
 * its copy; `worker_program` is the path of kern-worker. Returns the exit status: 0 done, 1 it could not be, 2 not understood. */
int ks_cli_archive(int argc, char **argv, char *arguments, size_t arguments_len, const char *worker_program);
