#include "etag.h"

#include <errno.h>
#include <nettle/sha2.h>
#include <stdint.h>
#include <unistd.h>

/* 'b' (bytes) or 's' (stat), and the first 16 bytes of the SHA-256. */
static void write_etag(char kind, struct sha256_ctx *sha, char ret[KS_ETAG_TEXT])
{
	static const char digits[] = "0123456789abcdef";
	uint8_t digest[(KS_ETAG_TEXT - 2) / 2];

	sha256_digest(sha, sizeof(digest), digest);
	*ret++ = kind;
	for (size_t i = 0; i < sizeof(digest); i++) {
		*ret++ = digits[digest[i] >> 4];
		*ret++ = digits[digest[i] & 15];
	}
	*ret = '\0';
}

void ks_etag_of_bytes(const void *data, size_t len, char ret[KS_ETAG_TEXT])
{
	struct sha256_ctx sha;

	sha256_init(&sha);
	sha256_update(&sha, len, data);
	write_etag('b', &sha, ret);
}

void ks_etag_of_stat(const struct stat *st, char ret[KS_ETAG_TEXT])
{
	const int64_t facts[] = { (int64_t)st->st_ino,	st->st_size,	    st->st_mtim.tv_sec,
				  st->st_mtim.tv_nsec, st->st_ctim.tv_sec, st->st_ctim.tv_nsec };
	struct sha256_ctx sha;

	sha256_init(&sha);
	sha256_update(&sha, sizeof(facts), (const uint8_t *)facts);
	write_etag('s', &sha, ret);
}

int ks_etag_of_file(int fd, char ret[KS_ETAG_TEXT])
{
	struct sha256_ctx sha;
	struct stat st;
	uint8_t piece[65536];
	size_t at = 0;

	if (fstat(fd, &st) < 0)
		return -errno;
	sha256_init(&sha);
	while (st.st_size <= (off_t)KS_ETAG_CONTENT && at <= KS_ETAG_CONTENT) {
		ssize_t n = pread(fd, piece, sizeof(piece), (off_t)at);
		if (n < 0)
			return -errno;
		if (n == 0) {
			write_etag('b', &sha, ret);
			return 0;
		}
		sha256_update(&sha, (size_t)n, piece);
		at += (size_t)n;
	}
	ks_etag_of_stat(&st, ret);
	return 0;
}
