/* buf.h: a growable byte buffer. Running out of memory sets `failed` and later appends do nothing,
 * so a writer checks once, at the end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base.h"

struct ks_buf {
	char *data;
	size_t len, cap;
	bool failed;
};

#define KS_AUTOBUF KS_CLEANUP(ks_buf_free)

void ks_buf_free(struct ks_buf *buf); /* leaves an empty, usable buffer */
void ks_buf_clear(struct ks_buf *buf); /* keeps the memory */
/* Room for `more` bytes behind len; NULL when there is none. The caller adds to len what it wrote. */
void *ks_buf_reserve(struct ks_buf *buf, size_t more);
void ks_buf_add(struct ks_buf *buf, const void *data, size_t len);
void ks_buf_str(struct ks_buf *buf, const char *text);
void ks_buf_char(struct ks_buf *buf, char c);
void ks_buf_printf(struct ks_buf *buf, const char *fmt, ...) KS_PRINTF(2, 3);
/* Drops `count` bytes (<= len) from the front. */
void ks_buf_drop(struct ks_buf *buf, size_t count);
