/* fuzz_text.c: what becomes of bytes in a result when the line has only so much room. Every plan keeps its sizes,
 * every text is JSON that our own strict scanner takes, and a piece is never empty, too long, or cut inside a code
 * point. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/scan.h"
#include "proto/write.h"
#include "session/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ITEMS 8

static void must(int condition)
{
	if (!condition)
		abort();
}

struct input {
	const uint8_t *at;
	size_t left;
};

static unsigned take(struct input *in)
{
	if (in->left == 0)
		return 0;
	in->left--;
	return *in->at++;
}

static void take_item(struct input *in, struct ks_text_item *ret)
{
	const unsigned kind = take(in);
	size_t len = take(in) | (size_t)take(in) << 8;

	len = len < in->left ? len : in->left;
	*ret = (struct ks_text_item){ .len = len, .owned = kind & 4, .json = (kind & 24) == 24,
				      .mime = kind & 32 ? "image/\"p\n" : NULL, .encoding = (int)(kind & 3) % 3 };
	if (ret->json) {
		ret->data = malloc(len + 2); /* one JSON value of that size */
		must(ret->data != NULL);
		memset(ret->data, ' ', len + 2);
		ret->data[0] = '[';
		ret->data[len + 1] = ']';
		ret->len += 2;
	} else {
		ret->data = malloc(len ? len : 1);
		must(ret->data != NULL);
		memcpy(ret->data, in->at, len);
	}
	in->at += len;
	in->left -= len;
}

static void check_item(struct ks_text_item *item, struct ks_blobs *blobs)
{
	KS_AUTOBUF struct ks_buf json = { 0 };
	struct ks_error err = { 0 };
	char *mine = item->owned ? NULL : item->data;

	if (ks_text_write(&json, item, blobs, NULL, &err) < 0) {
		must(item->form == KS_FORM_BLOB && json.len == 0 && err.text[0]); /* no room for the blob */
	} else {
		must(json.len <= item->size && (item->form == KS_FORM_BLOB || json.len == item->size));
		must(ks_json_scan(json.data, json.len, NULL, &err) == 0);
		must((item->form == KS_FORM_BLOB) == (item->blob[0] != '\0'));
	}
	must(item->data == NULL && !item->owned);
	free(mine);
}

static void check_plan(struct input in, size_t budget)
{
	struct ks_text_item items[ITEMS];
	struct ks_blobs *blobs;
	struct ks_error err;
	size_t count = 0, sum = 0;

	must(ks_blobs_new(4096, &blobs, &err) == 0);
	while (count < ITEMS && in.left > 0)
		take_item(&in, &items[count++]);
	size_t planned = ks_text_plan(items, count, budget);
	for (size_t i = 0; i < count; i++)
		sum += items[i].size;
	must(sum == planned);
	for (size_t i = 0; planned > budget && i < count; i++) /* then there was nothing left to take out */
		must(items[i].form == KS_FORM_BLOB || items[i].size <= 192 + 32);
	for (size_t i = 0; i < count; i++)
		check_item(&items[i], blobs);
	ks_blobs_free(blobs);
}

static void check_slices(const char *data, size_t len, size_t budget)
{
	while (len > 0) {
		KS_AUTOBUF struct ks_buf json = { 0 };
		struct ks_error err;
		ks_write_open(&json, '{');
		const size_t before = json.len, n = ks_text_write_slice(&json, data, len, budget);
		must(n > 0 && n <= len);
		must(json.len - before <= budget + strlen("\"base64\":"));
		ks_write_close(&json, '}');
		must(ks_json_scan(json.data, json.len, NULL, &err) == 0);
		data += n;
		len -= n;
	}
}

/* Whether a whole code point lies across `at`. */
static bool cuts_code_point(const char *data, size_t len, size_t at)
{
	for (size_t start = at > 3 ? at - 3 : 0; start < at; start++) {
		const unsigned char lead = (unsigned char)data[start];
		const size_t whole = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
		if (start + whole > at && start + whole <= len && ks_utf8_valid(data + start, whole))
			return true;
	}
	return false;
}

static void check_fit(const char *data, size_t len, size_t budget)
{
	const size_t n = ks_text_fit(data, len, budget), bytes = ks_base64_fit(len, budget);

	must(n <= len && ks_json_escaped_size(data, n) <= budget);
	must(!cuts_code_point(data, len, n));
	must(bytes <= len && ks_json_base64_size(bytes) <= budget && (len == 0 || bytes > 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	const size_t budget = 16 + (take(&in) | (size_t)(take(&in) & 15) << 8);

	check_plan(in, budget);
	check_fit((const char *)in.at, in.left, budget);
	check_slices((const char *)in.at, in.left, budget);
	return 0;
}
