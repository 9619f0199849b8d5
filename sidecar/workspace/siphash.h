/* siphash.h: SipHash-2-4 (Aumasson and Bernstein, 2012), a hash whose collisions cannot be prepared by whoever chooses
 * the names but does not know the key. `salt` is hashed in front of the data, as eight little-endian bytes. */
#pragma once

#include <stddef.h>
#include <stdint.h>

uint64_t ks_siphash(const unsigned char key[16], uint64_t salt, const void *data, size_t len);
