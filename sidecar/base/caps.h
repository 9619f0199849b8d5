/* caps.h: giving power away (capabilities(7)), by libcap. `keep` is a bit mask of capabilities. Both return 0 or -errno. */
#pragma once

#include <stdint.h>

/* The bounding set limits what exec can give, not what is held now: dropped once in a template, its clones need no more. A new user
 * namespace comes with a full one. */
int ks_drop_bounding_set(uint64_t keep);
/* Effective and permitted become `keep`, inheritable and ambient become empty. */
int ks_drop_capabilities(uint64_t keep);
/* Inheritable becomes `lend`: so that a program may get them, with ks_pass_capabilities(). Before the bounding set is dropped, which
 * would forbid it (capabilities(7)). */
int ks_lend_capabilities(uint64_t lend);
/* All sets but the bounding one become `pass`: so has the program that is executed next. */
int ks_pass_capabilities(uint64_t pass);
