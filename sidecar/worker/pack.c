#include "pack.h"

#include <string.h>

void ks_pack_int(struct ks_buf *buf, int64_t value)
{
	ks_buf_add(buf, &value, sizeof(value));
}

void ks_pack_bytes(struct ks_buf *buf, const void *data, size_t len)
{
	ks_pack_int(buf, (int64_t)len);
	ks_buf_add(buf, data, len);
	ks_buf_char(buf, '\0');
}

void ks_pack_string(struct ks_buf *buf, const char *text)
{
	ks_pack_bytes(buf, text ? text : "", text ? strlen(text) : 0);
}

static const char *take(struct ks_unpack *in, size_t count)
{
	const char *at = in->at;

	if (in->bad || count > in->left) {
		in->bad = true;
		return NULL;
	}
	in->at += count;
	in->left -= count;
	return at;
}

int64_t ks_unpack_int(struct ks_unpack *in)
{
	int64_t value = 0;
	const char *at = take(in, sizeof(value));

	if (at)
		memcpy(&value, at, sizeof(value));
	return value;
}

const char *ks_unpack_bytes(struct ks_unpack *in, size_t *ret_len)
{
	int64_t len = ks_unpack_int(in);
	const char *at = len < 0 || (uint64_t)len >= in->left ? NULL : take(in, (size_t)len + 1);

	if (!at || at[len] != '\0' || (!ret_len && memchr(at, '\0', (size_t)len))) {
		in->bad = true;
		at = "";
		len = 0;
	}
	if (ret_len)
		*ret_len = (size_t)len;
	return at;
}

bool ks_unpack_end(const struct ks_unpack *in)
{
	return !in->bad && in->left == 0;
}
