/* blob.h: bytes that do not fit a line. Owns them until they are freed, their owner is released, they expire, or newer
 * ones need the room (the oldest goes first). Ids cannot be guessed and are never used twice. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "session/digest.h"

#define KS_BLOB_BYTES_DEFAULT ((size_t)256 << 20) /* limits.blobBytes */
#define KS_BLOB_COUNT_MAX 4096
#define KS_BLOB_GONE_MAX 4096	    /* ids that are remembered after their bytes went */
#define KS_BLOB_ID_BYTES 32	    /* hex digits */
#define KS_BLOB_THROWAWAY_MS 60000  /* life of what a throw-away call leaves behind */

struct ks_blobs;
struct ks_blob;

int ks_blobs_new(size_t max_bytes, struct ks_blobs **ret, struct ks_error *err);
void ks_blobs_free(struct ks_blobs *blobs);
size_t ks_blobs_max(const struct ks_blobs *blobs);   /* limits.blobBytes */
size_t ks_blobs_bytes(const struct ks_blobs *blobs); /* held now */
size_t ks_blobs_count(const struct ks_blobs *blobs);

/* Takes the malloc'ed `data` without copying it, also on failure. `owner` is any address that stands for a session or
 * a run, NULL for the connection. `mime` is copied. Larger than the store: KS_E_LIMIT. */
int ks_blob_take(struct ks_blobs *blobs, const void *owner, char *data, size_t len, const char *mime,
		 struct ks_blob **ret, struct ks_error *err);
/* The same with a copy of the bytes. */
int ks_blob_copy(struct ks_blobs *blobs, const void *owner, const void *data, size_t len, const char *mime,
		 struct ks_blob **ret, struct ks_error *err);
/* KS_E_GONE for an id that was there once, else KS_E_UNKNOWN_HANDLE; the pointer is "/id". The pointers that the
 * functions below return live until the next call that adds, appends, frees, releases or expires. */
int ks_blob_find(struct ks_blobs *blobs, const char *id, struct ks_blob **ret, struct ks_error *err);
int ks_blob_append(struct ks_blobs *blobs, struct ks_blob *blob, const void *data, size_t len, struct ks_error *err);
void ks_blob_drop(struct ks_blobs *blobs, struct ks_blob *blob);

const char *ks_blob_id(const struct ks_blob *blob);
const char *ks_blob_data(const struct ks_blob *blob);
size_t ks_blob_size(const struct ks_blob *blob);
const char *ks_blob_mime(const struct ks_blob *blob);
const char *ks_blob_sha256(struct ks_blob *blob); /* 64 hex digits; each byte is hashed once */
/* Of a new blob: what is known already of the bytes that it begins with. */
void ks_blob_set_digest(struct ks_blob *blob, const struct ks_digest *digest);

/* The owner's blobs: gone now, or in `ms` from now (they then belong to nobody, so that the address can be reused). */
void ks_blobs_release(struct ks_blobs *blobs, const void *owner);
void ks_blobs_expire_owner(struct ks_blobs *blobs, const void *owner, int64_t ms);
/* Drops what has expired. The caller has a coarse timer; ks_blob_find() never hands out an expired one. */
void ks_blobs_sweep(struct ks_blobs *blobs, int64_t now_us);
