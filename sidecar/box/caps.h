/* caps.h: giving power away (capabilities(7)), by libcap. Both return 0 or -errno. */
#pragma once

/* The bounding set limits what exec can give, not what is held now: dropped once in a template, its clones need no more. A new user
 * namespace comes with a full one. */
int ks_drop_bounding_set(void);
/* Effective, permitted, inheritable and ambient. */
int ks_drop_capabilities(void);
