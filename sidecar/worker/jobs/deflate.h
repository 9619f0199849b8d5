/* deflate.h: bytes to a .gz, through libarchive's filter, hashed and counted. No time, no name in it: equal bytes in, equal bytes out. */
#pragma once

#include "base/error.h"
#include "worker/archive.h"

struct ks_deflate;

/* `write` takes what is ready: 0, or -1 with err. More than `max_bytes` is too_large. */
int ks_deflate_new(int64_t max_bytes, int (*write)(void *arg, const void *data, size_t len, struct ks_error *err), void *arg,
		   struct ks_deflate **ret, struct ks_error *err);
int ks_deflate_add(struct ks_deflate *deflate, const void *data, size_t len, struct ks_error *err);
int ks_deflate_zeros(struct ks_deflate *deflate, int64_t len, struct ks_error *err);
/* The end. *ret_bytes: all that was written. */
int ks_deflate_end(struct ks_deflate *deflate, int64_t *ret_bytes, unsigned char ret_digest[32], struct ks_error *err);
int64_t ks_deflate_in(const struct ks_deflate *deflate); /* bytes that were added */
void ks_deflate_free(struct ks_deflate *deflate);
