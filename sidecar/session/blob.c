#include "blob.h"

#include <errno.h>
#include <nettle/base16.h>
#include <string.h>
#include <sys/random.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/list.h"

#define RAW_ID_BYTES (KS_BLOB_ID_BYTES / 2)

struct ks_blob {
	struct ks_list node;
	const void *owner;
	struct ks_buf data;
	char *mime;
	int64_t expires_us; /* 0: never */
	struct ks_digest digest;
	char sha256[KS_DIGEST_HEX_SIZE];
	uint8_t raw_id[RAW_ID_BYTES];
	char id[KS_BLOB_ID_BYTES + 1];
};

struct ks_blobs {
	struct ks_list all; /* the oldest first */
	size_t bytes, count, max;
	uint8_t gone[KS_BLOB_GONE_MAX][RAW_ID_BYTES]; /* a ring */
	size_t gone_count, gone_next;
};

int ks_blobs_new(size_t max_bytes, struct ks_blobs **ret, struct ks_error *err)
{
	struct ks_blobs *blobs = calloc(1, sizeof(*blobs));

	if (!blobs)
		return ks_fail(err, KS_E_INTERNAL, "no memory for the blob store");
	ks_list_init(&blobs->all);
	blobs->max = max_bytes;
	*ret = blobs;
	return 0;
}

static struct ks_blob *blob_at(struct ks_list *node)
{
	return KS_ENTRY(node, struct ks_blob, node);
}

static void blob_free(struct ks_blob *blob)
{
	ks_buf_free(&blob->data);
	free(blob->mime);
	free(blob);
}

void ks_blob_drop(struct ks_blobs *blobs, struct ks_blob *blob)
{
	memcpy(blobs->gone[blobs->gone_next], blob->raw_id, RAW_ID_BYTES);
	blobs->gone_next = (blobs->gone_next + 1) % KS_BLOB_GONE_MAX;
	if (blobs->gone_count < KS_BLOB_GONE_MAX)
		blobs->gone_count++;
	blobs->bytes -= blob->data.len;
	blobs->count--;
	ks_list_remove(&blob->node);
	blob_free(blob);
}

void ks_blobs_free(struct ks_blobs *blobs)
{
	if (!blobs)
		return;
	while (!ks_list_empty(&blobs->all))
		ks_blob_drop(blobs, blob_at(blobs->all.next));
	free(blobs);
}

size_t ks_blobs_max(const struct ks_blobs *blobs)
{
	return blobs->max;
}

size_t ks_blobs_bytes(const struct ks_blobs *blobs)
{
	return blobs->bytes;
}

size_t ks_blobs_count(const struct ks_blobs *blobs)
{
	return blobs->count;
}

/* Room for `more` bytes: the oldest go, but not `keep`. */
static int make_room(struct ks_blobs *blobs, const struct ks_blob *keep, size_t more, struct ks_error *err)
{
	size_t kept = keep ? keep->data.len : 0;

	if (more > blobs->max || kept > blobs->max - more) {
		(void)ks_fail(err, KS_E_LIMIT, "a blob of %zu bytes is larger than the blob store (%zu bytes)",
			      kept + more, blobs->max);
		return ks_error_hint(err, "write it to a file of the workspace instead");
	}
	for (struct ks_list *node = blobs->all.next, *next; node != &blobs->all; node = next) {
		next = node->next;
		if (blobs->max - more >= blobs->bytes)
			return 0;
		if (blob_at(node) != keep)
			ks_blob_drop(blobs, blob_at(node));
	}
	return 0;
}

static void hex(char *to, size_t len, const uint8_t *from)
{
	base16_encode_update(to, len, from);
	to[BASE16_ENCODE_LENGTH(len)] = '\0';
}

/* 128 random bits: no two ids are ever the same, and none can be guessed from another. */
static int new_id(struct ks_blob *blob, struct ks_error *err)
{
	ssize_t n;

	do
		n = getrandom(blob->raw_id, RAW_ID_BYTES, 0);
	while (n < 0 && errno == EINTR);
	if (n != RAW_ID_BYTES)
		return ks_fail_errno(err, KS_E_INTERNAL, n < 0 ? errno : EIO, "no random bytes for a blob's id");
	hex(blob->id, RAW_ID_BYTES, blob->raw_id);
	return 0;
}

int ks_blob_take(struct ks_blobs *blobs, const void *owner, char *data, size_t len, const char *mime,
		 struct ks_blob **ret, struct ks_error *err)
{
	struct ks_blob *blob = calloc(1, sizeof(*blob));
	if (!blob) {
		free(data);
		return ks_fail(err, KS_E_INTERNAL, "no memory for a blob");
	}
	blob->data = (struct ks_buf){ .data = data, .len = len, .cap = len };
	blob->owner = owner;
	ks_digest_init(&blob->digest);
	if (new_id(blob, err) < 0)
		goto fail;
	blob->mime = strdup(mime);
	if (!blob->mime) {
		(void)ks_fail(err, KS_E_INTERNAL, "no memory for a blob");
		goto fail;
	}
	if (make_room(blobs, NULL, len, err) < 0)
		goto fail;
	if (blobs->count == KS_BLOB_COUNT_MAX)
		ks_blob_drop(blobs, blob_at(blobs->all.next));
	ks_list_append(&blobs->all, &blob->node);
	blobs->bytes += len;
	blobs->count++;
	*ret = blob;
	return 0;
fail:
	blob_free(blob);
	return -1;
}

int ks_blob_copy(struct ks_blobs *blobs, const void *owner, const void *data, size_t len, const char *mime,
		 struct ks_blob **ret, struct ks_error *err)
{
	if (len > blobs->max)
		return make_room(blobs, NULL, len, err);
	char *copy = malloc(len ? len : 1);
	if (!copy)
		return ks_fail(err, KS_E_INTERNAL, "no memory for a blob of %zu bytes", len);
	if (len > 0)
		memcpy(copy, data, len);
	return ks_blob_take(blobs, owner, copy, len, mime, ret, err);
}

static bool was_there(const struct ks_blobs *blobs, const char *id)
{
	uint8_t raw[BASE16_DECODE_LENGTH(KS_BLOB_ID_BYTES)];
	struct base16_decode_ctx ctx;
	size_t len = sizeof(raw);

	base16_decode_init(&ctx);
	if (strlen(id) != KS_BLOB_ID_BYTES || !base16_decode_update(&ctx, &len, raw, KS_BLOB_ID_BYTES, id) ||
	    !base16_decode_final(&ctx) || len != RAW_ID_BYTES)
		return false;
	for (size_t i = 0; i < blobs->gone_count; i++)
		if (memcmp(blobs->gone[i], raw, RAW_ID_BYTES) == 0)
			return true;
	return false;
}

int ks_blob_find(struct ks_blobs *blobs, const char *id, struct ks_blob **ret, struct ks_error *err)
{
	ks_blobs_sweep(blobs, ks_now_us());
	for (struct ks_list *node = blobs->all.next; node != &blobs->all; node = node->next)
		if (strcmp(blob_at(node)->id, id) == 0) {
			*ret = blob_at(node);
			return 0;
		}
	if (was_there(blobs, id)) {
		(void)ks_fail_at(err, KS_E_GONE, "/id", "the blob %s is gone", id);
		return ks_error_hint(err, "it was freed, its session was closed, or newer blobs needed the room");
	}
	return ks_fail_at(err, KS_E_UNKNOWN_HANDLE, "/id", "there is no blob %.64s", id);
}

int ks_blob_append(struct ks_blobs *blobs, struct ks_blob *blob, const void *data, size_t len, struct ks_error *err)
{
	if (make_room(blobs, blob, len, err) < 0)
		return -1;
	ks_buf_add(&blob->data, data, len);
	if (blob->data.failed) {
		blob->data.failed = false;
		return ks_fail(err, KS_E_INTERNAL, "no memory for %zu more bytes of a blob", len);
	}
	blobs->bytes += len;
	return 0;
}

const char *ks_blob_id(const struct ks_blob *blob)
{
	return blob->id;
}

const char *ks_blob_data(const struct ks_blob *blob)
{
	return blob->data.data;
}

size_t ks_blob_size(const struct ks_blob *blob)
{
	return blob->data.len;
}

const char *ks_blob_mime(const struct ks_blob *blob)
{
	return blob->mime;
}

const char *ks_blob_sha256(struct ks_blob *blob)
{
	if (blob->sha256[0] && blob->digest.bytes == blob->data.len)
		return blob->sha256;
	ks_digest_update(&blob->digest, blob->data.data, blob->data.len);
	ks_digest_hex(&blob->digest, blob->sha256);
	return blob->sha256;
}

void ks_blob_set_digest(struct ks_blob *blob, const struct ks_digest *digest)
{
	blob->digest = *digest;
}

void ks_blobs_release(struct ks_blobs *blobs, const void *owner)
{
	for (struct ks_list *node = blobs->all.next, *next; node != &blobs->all; node = next) {
		next = node->next;
		if (blob_at(node)->owner == owner)
			ks_blob_drop(blobs, blob_at(node));
	}
}

void ks_blobs_expire_owner(struct ks_blobs *blobs, const void *owner, int64_t ms)
{
	int64_t at_us = ks_now_us() + ms * 1000;

	for (struct ks_list *node = blobs->all.next; node != &blobs->all; node = node->next)
		if (blob_at(node)->owner == owner) {
			blob_at(node)->owner = NULL;
			blob_at(node)->expires_us = at_us;
		}
}

void ks_blobs_sweep(struct ks_blobs *blobs, int64_t now_us)
{
	for (struct ks_list *node = blobs->all.next, *next; node != &blobs->all; node = next) {
		next = node->next;
		if (blob_at(node)->expires_us && blob_at(node)->expires_us <= now_us)
			ks_blob_drop(blobs, blob_at(node));
	}
}
