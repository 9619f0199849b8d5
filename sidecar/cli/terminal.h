/* terminal.h: output of a box on a person's terminal. Untrusted: it may set colours, and nothing else that a terminal obeys. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* One stream of output; zeros to begin with. */
struct ks_terminal {
	char held[24]; /* the beginning of what may become a colour */
	size_t held_len;
	bool c2; /* the first byte of a C1 control in UTF-8 came */
};

/* Appends what may be shown: ESC as ^[ (but for colours: ESC [ digits ; m), other controls but \t \n \r \b as ^X, C1 not at all. The result
 * does not depend on how the bytes are cut. */
void ks_terminal_feed(struct ks_terminal *terminal, const char *data, size_t len, struct ks_buf *out);

bool ks_terminal_colour(int fd); /* a terminal, and neither NO_COLOR nor TERM=dumb forbids it */
/* A colour's escape, or "" when `on` is not set. */
const char *ks_red(bool on);
const char *ks_green(bool on);
const char *ks_yellow(bool on);
const char *ks_dim(bool on);
const char *ks_plain(bool on);
