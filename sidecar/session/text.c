#include "text.h"

#include <stdio.h>
#include <string.h>

#include "proto/write.h"

/* {"blob":{"id":"32","bytes":20,"sha256":"64","mime":"…"}} without the mime's characters, rounded up. */
#define BLOB_REF_BYTES ((size_t)192)

static bool is_utf8(const struct ks_text_item *item)
{
	if (!item->digest)
		return ks_utf8_valid(item->data, item->len);
	ks_digest_update(item->digest, item->data, item->len);
	return ks_digest_utf8(item->digest);
}

static const char *mime_of(const struct ks_text_item *item)
{
	if (item->mime)
		return item->mime;
	if (item->json)
		return "application/json";
	return is_utf8(item) ? "text/plain; charset=utf-8" : "application/octet-stream";
}

/* Base64 travels as {"base64":"…"}. */
static size_t base64_size(size_t len)
{
	return ks_json_base64_size(len) + strlen("{\"base64\":}");
}

static size_t ref_size(const struct ks_text_item *item)
{
	return BLOB_REF_BYTES + (item->mime ? ks_json_escaped_size(item->mime, strlen(item->mime)) : 0);
}

/* The inline form and its size. A text is never shorter on the wire than in memory (an invalid sequence of up to three
 * bytes becomes three), so what is longer than the budget and than a reference is sure to become a blob: not scanned. */
static void measure(struct ks_text_item *item, size_t budget)
{
	item->form = item->json ? KS_FORM_JSON : KS_FORM_STRING;
	item->size = item->len;
	if (item->json || (item->len > budget && item->len > ref_size(item)))
		return;
	if (item->encoding == KS_ENCODING_BASE64 ||
	    (item->encoding == KS_ENCODING_AUTO && !ks_utf8_valid(item->data, item->len))) {
		item->form = KS_FORM_BASE64;
		item->size = base64_size(item->len);
	} else {
		item->size = ks_json_escaped_size(item->data, item->len);
	}
}

size_t ks_text_plan(struct ks_text_item *items, size_t count, size_t budget)
{
	size_t total = 0;

	for (size_t i = 0; i < count; i++) {
		measure(&items[i], budget);
		total += items[i].size;
	}
	while (total > budget) {
		struct ks_text_item *largest = NULL;
		for (size_t i = 0; i < count; i++)
			if (items[i].form != KS_FORM_BLOB && items[i].size > ref_size(&items[i]) &&
			    (!largest || items[i].size > largest->size))
				largest = &items[i];
		if (!largest)
			break; /* no reference would be shorter */
		total -= largest->size;
		largest->form = KS_FORM_BLOB;
		largest->size = ref_size(largest);
		total += largest->size;
	}
	return total;
}

static int make_blob(struct ks_text_item *item, struct ks_blobs *blobs, const void *owner, struct ks_blob **ret,
		     struct ks_error *err)
{
	const char *mime = mime_of(item);
	bool owned = KS_TAKE(item->owned, false);
	int result = owned ? ks_blob_take(blobs, owner, KS_TAKE_PTR(item->data), item->len, mime, ret, err) :
			     ks_blob_copy(blobs, owner, item->data, item->len, mime, ret, err);

	if (result == 0 && item->digest)
		ks_blob_set_digest(*ret, item->digest);
	return result;
}

static int write_blob(struct ks_buf *json, struct ks_text_item *item, struct ks_blobs *blobs, const void *owner,
		      struct ks_error *err)
{
	struct ks_blob *blob;
	struct ks_error ignored;

	if (item->blob[0] && ks_blob_find(blobs, item->blob, &blob, &ignored) == 0) {
		/* told once already */
	} else if (make_blob(item, blobs, owner, &blob, err) < 0) {
		return -1;
	}
	(void)snprintf(item->blob, sizeof(item->blob), "%s", ks_blob_id(blob));
	ks_write_open(json, '{');
	ks_write_key(json, "blob");
	ks_write_open(json, '{');
	ks_write_key_string(json, "id", ks_blob_id(blob));
	ks_write_key_int(json, "bytes", (int64_t)ks_blob_size(blob));
	ks_write_key_string(json, "sha256", ks_blob_sha256(blob));
	ks_write_key_string(json, "mime", ks_blob_mime(blob));
	ks_write_close(json, '}');
	ks_write_close(json, '}');
	return 0;
}

int ks_text_write(struct ks_buf *json, struct ks_text_item *item, struct ks_blobs *blobs, const void *owner,
		  struct ks_error *err)
{
	int result = 0;

	switch (item->form) {
	case KS_FORM_STRING:
		ks_write_utf8_lossy(json, item->data, item->len);
		break;
	case KS_FORM_BASE64:
		ks_write_open(json, '{');
		ks_write_key(json, "base64");
		ks_write_base64(json, item->data, item->len);
		ks_write_close(json, '}');
		break;
	case KS_FORM_JSON:
		ks_write_raw(json, item->data, item->len);
		break;
	case KS_FORM_BLOB:
		result = write_blob(json, item, blobs, owner, err);
		break;
	}
	ks_text_item_free(item);
	return result;
}

void ks_text_item_free(struct ks_text_item *item)
{
	if (item->owned)
		free(item->data);
	item->owned = false;
	item->data = NULL;
	item->len = 0;
}

size_t ks_text_fit(const char *data, size_t len, size_t budget)
{
	size_t n = ks_utf8_complete_prefix(data, len < budget ? len : budget), size;

	/* The share that fits if the text is alike all over; each round is shorter than the one before. */
	while ((size = ks_json_escaped_size(data, n)) > budget)
		n = ks_utf8_complete_prefix(data, n * budget / size);
	return n;
}

size_t ks_base64_fit(size_t len, size_t budget)
{
	size_t most = (budget - 2) / 4 * 3;

	return len < most ? len : most;
}

size_t ks_text_write_slice(struct ks_buf *json, const char *data, size_t len, size_t budget)
{
	size_t n = ks_text_fit(data, len, budget);

	if (len == 0 || (n > 0 && ks_utf8_valid(data, n))) {
		ks_write_key(json, "text");
		ks_write_utf8_lossy(json, data, n);
		return n;
	}
	n = ks_base64_fit(len, budget);
	ks_write_key(json, "base64");
	ks_write_base64(json, data, n);
	return n;
}

int ks_text_bytes(const struct ks_text *text, struct ks_blobs *blobs, const char **ret_data, size_t *ret_len,
		  struct ks_error *err)
{
	struct ks_blob *blob;

	if (!text->blob) {
		*ret_data = text->data;
		*ret_len = text->len;
		return 0;
	}
	if (ks_blob_find(blobs, text->blob, &blob, err) < 0)
		return -1;
	*ret_data = ks_blob_data(blob);
	*ret_len = ks_blob_size(blob);
	return 0;
}
