/* program.h: the program's own file.
 *
 * Until its exec, the process that becomes the code of a box has this program as /proc/self/exe, and code can have that name run, or
 * named as the interpreter of a script (CVE-2019-5736). What it finds there is therefore never the file on the disk, but a sealed
 * copy in memory (memfd_create(2), F_ADD_SEALS in fcntl(2)) that nobody may execute any more. */
#pragma once

#include <stdbool.h>

#include "error.h"

/* Starts the program again from a sealed copy of itself, and returns only there, or when there can be none: ks_program_sealed() then
 * says why. To be called once, first of all. `argv` is main's; argv[0] becomes the path of the file. */
void ks_program_seal(char **argv);

/* 0, or -1 and HOST_UNSUPPORTED: then no box may be made. */
int ks_program_sealed(struct ks_error *err);

/* Absolute path of the file that the program was started from; "" when it is not known. */
const char *ks_program_path(void);
