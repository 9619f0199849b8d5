/* flags.h: command-line flags from the protocol's tables: memoryMb is --memory-mb. The same decoder judges them. */
#pragma once

#include "proto/field.h"

/* Reads flags from argv[*at] on, until a word that is none; *at then is its index. Fills *out by the table. Errors name the field. */
int ks_flags_parse(const struct ks_schema *schema, int argc, char **argv, int *at, void *out, struct ks_error *err);
/* Before that: --workspace as a person writes it; the contract takes absolute paths only. `*ret` is malloc'ed, or NULL when there was
 * nothing to do; argv points into it. */
int ks_flags_workspace(int argc, char **argv, char **ret, struct ks_error *err);
/* One line on stderr: where, what, and the cure. */
void ks_cli_complain(const struct ks_error *err);
