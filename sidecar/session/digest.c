/* digest.c: see digest.h. */
#include "digest.h"

#include <nettle/base16.h>

#include "base/utf8.h"

void ks_digest_init(struct ks_digest *digest)
{
	*digest = (struct ks_digest){ .utf8 = KS_UTF8_OK };
	sha256_init(&digest->sha256);
}

void ks_digest_update(struct ks_digest *digest, const char *data, size_t len)
{
	if (len == digest->bytes)
		return;
	const char *from = data + digest->bytes;
	size_t more = len - digest->bytes;

	sha256_update(&digest->sha256, more, (const uint8_t *)from);
	digest->utf8 = ks_utf8_run(digest->utf8, from, more);
	digest->bytes = len;
}

void ks_digest_hex(const struct ks_digest *digest, char ret[static KS_DIGEST_HEX_SIZE])
{
	struct sha256_ctx end = digest->sha256; /* sha256_digest() resets what it is given */
	uint8_t raw[SHA256_DIGEST_SIZE];

	sha256_digest(&end, sizeof(raw), raw);
	base16_encode_update(ret, sizeof(raw), raw);
	ret[KS_DIGEST_HEX_SIZE - 1] = '\0';
}

bool ks_digest_utf8(const struct ks_digest *digest)
{
	return digest->utf8 == KS_UTF8_OK;
}
