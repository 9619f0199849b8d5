/* digest.h: what has to be known of all the bytes of a text, found out while they come: the SHA-256, and whether they are
 * UTF-8. At the end of 64 MiB of output either would hold up the whole sidecar for as long as a ping may take. */
#pragma once

#include <nettle/sha2.h>
#include <stdbool.h>
#include <stddef.h>

struct ks_digest {
	struct sha256_ctx sha256;
	size_t bytes;	/* that were told; the rest of the text follows them */
	unsigned utf8;	/* state of ks_utf8_step() behind them */
};

#define KS_DIGEST_HEX_SIZE (2 * SHA256_DIGEST_SIZE + 1)

void ks_digest_init(struct ks_digest *digest);
/* `data` is the whole text so far, from its first byte, of at least as many bytes as the last time: the new ones are read. */
void ks_digest_update(struct ks_digest *digest, const char *data, size_t len);
/* Of the bytes told so far: the hash in hex digits with a NUL behind them; that they are whole, valid UTF-8. */
void ks_digest_hex(const struct ks_digest *digest, char ret[static KS_DIGEST_HEX_SIZE]);
bool ks_digest_utf8(const struct ks_digest *digest);
