/* links.h: which symbolic links may be in an archive. Text is judged; nothing is opened. */
#pragma once

#include <stdbool.h>

/* A relative target of the form (../)*(name/)*: from the directory of the link (`path` is clean) up, not above the top, then down. A ".."
 * behind a name is not taken: if that name is a link, it means another place than it says. As no link lies behind a link, what is left
 * cannot leave the top, whatever the names are. */
bool ks_link_stays_inside(const char *path, const char *target);
