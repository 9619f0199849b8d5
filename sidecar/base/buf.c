#include "buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void ks_buf_free(struct ks_buf *buf)
{
	free(buf->data);
	*buf = (struct ks_buf){ 0 };
}

void ks_buf_clear(struct ks_buf *buf)
{
	buf->len = 0;
	buf->failed = false;
}

void *ks_buf_reserve(struct ks_buf *buf, size_t more)
{
	if (buf->failed || more > (size_t)1 << 40)
		return buf->failed = true, NULL;
	if (buf->cap - buf->len < more) {
		size_t cap = buf->cap ? buf->cap : 256;
		while (cap - buf->len < more)
			cap += cap / 2 + 64;
		char *data = realloc(buf->data, cap);
		if (!data)
			return buf->failed = true, NULL;
		buf->data = data;
		buf->cap = cap;
	}
	return buf->data + buf->len;
}

void ks_buf_add(struct ks_buf *buf, const void *data, size_t len)
{
	if (len == 0)
		return;
	void *to = ks_buf_reserve(buf, len);
	if (!to)
		return;
	memcpy(to, data, len);
	buf->len += len;
}

void ks_buf_str(struct ks_buf *buf, const char *text)
{
	ks_buf_add(buf, text, strlen(text));
}

void ks_buf_char(struct ks_buf *buf, char c)
{
	char *to = ks_buf_reserve(buf, 1);

	if (!to)
		return;
	*to = c;
	buf->len++;
}

void ks_buf_printf(struct ks_buf *buf, const char *fmt, ...)
{
	va_list ap;
	char room[256];

	va_start(ap, fmt);
	int n = vsnprintf(room, sizeof(room), fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof(room)) {
		ks_buf_add(buf, room, (size_t)n);
		return;
	}
	char *to = n < 0 ? NULL : ks_buf_reserve(buf, (size_t)n + 1);
	if (!to)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(to, (size_t)n + 1, fmt, ap);
	va_end(ap);
	buf->len += (size_t)n;
}

void ks_buf_drop(struct ks_buf *buf, size_t count)
{
	if (count == 0)
		return;
	memmove(buf->data, buf->data + count, buf->len - count);
	buf->len -= count;
}
