/* doctor.h: `kern-sidecar doctor`: can this host run boxes, and if not, why and what to do. */
#pragma once

#include <stddef.h>

/* The `doctor` command; argv[0] is "doctor". `arguments` is the program's argv and environment block, which the
 * launcher wipes in its copy; `plugin_dirs` ends with NULL. Returns the exit status: 0 ok, 1 a check failed, 2 not
 * understood. */
int ks_cli_doctor(int argc, char **argv, char *arguments, size_t arguments_len, const char *const *plugin_dirs);
