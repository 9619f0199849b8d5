/* text.h: bytes in a result. Decides how each travels: as a string, as base64, or as a blob when the line is full. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"
#include "proto/messages.h"
#include "session/blob.h"

enum ks_form { KS_FORM_STRING, KS_FORM_BASE64, KS_FORM_JSON, KS_FORM_BLOB };

struct ks_text_item {
	char *data; /* not read when len is 0 */
	size_t len;
	bool owned;	  /* data is malloc'ed and the item's: a blob takes it; ks_text_write() frees it */
	bool json;	  /* data is one JSON value (an array or object that may be too large) */
	int encoding;	  /* enum ks_encoding, unless json */
	const char *mime; /* of the blob; NULL: text/plain or application/octet-stream or application/json */
	struct ks_digest *digest; /* NULL, or of the beginning of data: completed when it becomes a blob */
	enum ks_form form; /* out: what ks_text_plan() decided */
	size_t size;	   /* out: bytes that ks_text_write() will write, without comma; for blobs at most */
	/* out of ks_text_write(): the id when it became a blob, else ""; in: the id of the blob that it became before */
	char blob[KS_BLOB_ID_BYTES + 1];
};

/* Turns the largest items into blobs until the rest fits into `budget` bytes together. Returns the sum of the sizes:
 * more than `budget` only when not even that was enough. */
size_t ks_text_plan(struct ks_text_item *items, size_t count, size_t budget);
/* Writes the item as planned; call it in the order of the reply. On failure (no room for the blob) nothing is written. */
int ks_text_write(struct ks_buf *json, struct ks_text_item *item, struct ks_blobs *blobs, const void *owner,
		  struct ks_error *err);
void ks_text_item_free(struct ks_text_item *item);

/* A prefix that is at most `budget` (>= 16) bytes as a JSON string, quotes included, and does not cut a code point: all of
 * it when that fits, else most of what fits. 0 only when `data` is the beginning of one code point. */
size_t ks_text_fit(const char *data, size_t len, size_t budget);
/* The longest beginning whose base64 JSON string is at most `budget` (>= 16) bytes. */
size_t ks_base64_fit(size_t len, size_t budget);

/* For the methods that read a piece by offset: writes the member "text" (a part that is valid UTF-8) or "base64", of at
 * most `budget` (>= 16) bytes, and returns how many of the len bytes it holds: all that fit, at least 1 unless len is 0. */
size_t ks_text_write_slice(struct ks_buf *json, const char *data, size_t len, size_t budget);

/* The bytes of a Text of a request, from its blob when it names one. They live as long as the request or the blob. */
int ks_text_bytes(const struct ks_text *text, struct ks_blobs *blobs, const char **ret_data, size_t *ret_len,
		  struct ks_error *err);
