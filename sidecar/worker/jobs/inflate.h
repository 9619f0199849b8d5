/* inflate.h: the bytes of an archive on a descriptor, unpacked by libarchive's filters: gzip, zstd, or none. What was read is hashed, and
 * what comes out is bounded by what went in. The descriptor's own position is not used. */
#pragma once

#include "base/error.h"
#include "worker/archive.h"

struct ks_inflate;

/* archive_refused for another format, by its name. */
int ks_inflate_new(int fd, struct ks_inflate **ret, struct ks_error *err);
/* All of `len` bytes, less only at the end: then the whole descriptor has been read, and nothing was behind the end. -1 with err.
 * `arg` is the struct ks_inflate: fits struct ks_tar_source. */
ssize_t ks_inflate_read(void *arg, void *buf, size_t len, struct ks_error *err);
int64_t ks_inflate_taken(const struct ks_inflate *inflate); /* bytes read so far */
int64_t ks_inflate_size(const struct ks_inflate *inflate);  /* of the descriptor */
void ks_inflate_digest(struct ks_inflate *inflate, unsigned char ret[32]);
void ks_inflate_free(struct ks_inflate *inflate);
