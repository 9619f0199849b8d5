/* pack.h: what crosses the socket between sidecar and kern-worker: integers (8 bytes, the machine's order: both ends are one build)
 * and byte strings (length, bytes, a NUL that does not count). Neither end trusts the other: reading checks every length, and after
 * the first thing that does not fit everything reads as 0 and "", and `bad` stays set. */
#pragma once

#include <stdint.h>

#include "base/buf.h"

void ks_pack_int(struct ks_buf *buf, int64_t value);
void ks_pack_bytes(struct ks_buf *buf, const void *data, size_t len);
void ks_pack_string(struct ks_buf *buf, const char *text); /* NULL: as "" */

struct ks_unpack {
	const char *at;
	size_t left;
	bool bad;
};

int64_t ks_unpack_int(struct ks_unpack *in);
/* Within the message: valid as long as that. Has a NUL behind its *ret_len bytes; ret_len may be NULL: then a NUL inside is bad. */
const char *ks_unpack_bytes(struct ks_unpack *in, size_t *ret_len);
/* Everything was read, and all of it fitted. */
bool ks_unpack_end(const struct ks_unpack *in);
