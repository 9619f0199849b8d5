/* Any bytes as an image: the first byte chooses the type. What must hold: a PNG that is accepted is accepted again after it was
 * encoded, with the same size, and nothing is reported both ways. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "worker/jobs/jobs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
	if (!condition)
		abort();
}

struct verdict {
	char why[64];
	int64_t width, height;
	struct ks_buf result;
	const char *again;
	size_t len;
};

static void look(const char *mime, const void *data, size_t len, struct verdict *ret)
{
	KS_AUTOBUF struct ks_buf request = { 0 };
	struct ks_error err;

	*ret = (struct verdict){ .width = 0 };
	ks_pack_string(&request, mime);
	ks_pack_bytes(&request, data, len);
	struct ks_unpack in = { request.data, request.len, false };
	must(ks_job_image(NULL, &in, &ret->result, &err) == 0);
	in = (struct ks_unpack){ ret->result.data, ret->result.len, false };
	const char *why = ks_unpack_bytes(&in, NULL);
	must(strlen(why) < sizeof(ret->why));
	memcpy(ret->why, why, strlen(why) + 1);
	ret->width = ks_unpack_int(&in);
	ret->height = ks_unpack_int(&in);
	ret->again = ks_unpack_bytes(&in, &ret->len);
	must(ks_unpack_end(&in));
	must(!why[0] || ret->len == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const mimes[] = { "image/png", "image/jpeg", "image/gif", "image/webp" };
	struct verdict first, second;

	if (size == 0)
		return 0;
	const char *mime = mimes[data[0] % KS_COUNT(mimes)];
	look(mime, data + 1, size - 1, &first);
	if (!first.why[0] && first.len > 0) {
		look(mime, first.again, first.len, &second);
		must(!second.why[0] && second.width == first.width && second.height == first.height && second.len > 0);
		ks_buf_free(&second.result);
	}
	ks_buf_free(&first.result);
	return 0;
}
