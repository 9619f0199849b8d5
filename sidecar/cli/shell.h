/* shell.h: `kern-sidecar shell`: a terminal in a box for a person, or (--bridge) a shell for a program that drives one by its stdin. */
#pragma once

#include <stddef.h>

/* `arguments`, `worker_program`: as of ks_cli_archive(). Returns the exit status: the shell's (128 + n of a signal); 125 when there is
 * none, or the words are not understood. */
int ks_cli_shell(int argc, char **argv, char *arguments, size_t arguments_len, const char *const *plugin_dirs, const char *worker_program);
