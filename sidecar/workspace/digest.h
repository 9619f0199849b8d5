/* digest.h: SHA-256 and first bytes of a small file in a tree that others change. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "mime.h"

struct ks_digest {
	uint64_t size; /* bytes that were read */
	unsigned char sha256[32];
	unsigned char head[KS_MIME_PEEK];
	size_t head_len;
};

/* Reads `path` below `dir_fd`: 0, or -errno; -EFBIG when it has more than `max` bytes (no digest, the head is set),
 * -EINVAL when it is no regular file. Reads at most max + KS_MIME_PEEK bytes, whatever the file's size says. */
int ks_digest_file(int dir_fd, const char *path, size_t max, struct ks_digest *ret);
