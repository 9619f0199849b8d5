#include "digest.h"

#include <errno.h>
#include <nettle/sha2.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "beneath.h"

int ks_digest_file(int dir_fd, const char *path, size_t max, struct ks_digest *ret)
{
	struct sha256_ctx sha;
	unsigned char chunk[16384];
	int got = ks_open_regular(dir_fd, path);

	if (got < 0)
		return got;
	KS_AUTOCLOSE int fd = got;
	sha256_init(&sha);
	ret->size = 0;
	ret->head_len = 0;
	for (;;) {
		size_t want = max - (size_t)ret->size + KS_MIME_PEEK;
		ssize_t n = read(fd, chunk, want < sizeof(chunk) ? want : sizeof(chunk));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		size_t head = sizeof(ret->head) - ret->head_len;
		head = head < (size_t)n ? head : (size_t)n;
		memcpy(ret->head + ret->head_len, chunk, head);
		ret->head_len += head;
		ret->size += (uint64_t)n;
		if (ret->size > max)
			return -EFBIG;
		sha256_update(&sha, (size_t)n, chunk);
	}
	sha256_digest(&sha, sizeof(ret->sha256), ret->sha256);
	return 0;
}
