/* frame.h: what the programs that run in the box know of the result channel (plugins/README.md). They are static and stand
 * alone, as an image may have any libc or none. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FRAME_HEADER 24
#define FRAME_PIECE 65536u
#define FRAME_PAYLOAD ((size_t)64 << 20)
#define FRAME_KEY 127

enum { FRAME_DISPLAY = 1, FRAME_UPDATE = 2, FRAME_ERROR = 4, FRAME_STATE = 6, FRAME_ACK = 7, FRAME_CELL = 8 };

static inline uint32_t get32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline void put32(uint8_t *p, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(value >> 8 * i);
}

static inline void frame_header(uint8_t p[static FRAME_HEADER], uint8_t type, uint32_t call, uint32_t id, uint32_t total, uint32_t offset)
{
	put32(p, 0x314e524bu); /* "KRN1" */
	put32(p + 4, 1u | (uint32_t)type << 8);
	put32(p + 8, call);
	put32(p + 12, id);
	put32(p + 16, total);
	put32(p + 20, offset);
}

/* The head of a part: the data, `len` bytes, follow it. Returns its length, at most FRAME_KEY + 7. */
static inline size_t frame_part(uint8_t *p, const char *key, size_t len)
{
	size_t n = 0;

	for (; key[n]; n++)
		p[6 + n] = (uint8_t)key[n];
	p[6 + n] = 0;
	p[0] = (uint8_t)(n + 1);
	p[1] = 0;
	put32(p + 2, (uint32_t)len);
	return 7 + n;
}

/* A part of a whole frame. NULL: there is none of that name. */
static inline const void *frame_find(const uint8_t *frame, size_t len, const char *key, size_t *ret_len)
{
	for (size_t at = FRAME_HEADER; at + 6 <= len;) {
		size_t key_len = frame[at], data_len = get32(frame + at + 2);
		const char *found = (const char *)frame + at + 6;
		if (key_len == 0 || key_len > len - at - 6 || data_len > len - at - 6 - key_len)
			break;
		if (found[key_len - 1] == '\0' && strcmp(found, key) == 0) {
			*ret_len = data_len;
			return found + key_len;
		}
		at += 6 + key_len + data_len;
	}
	return NULL;
}

/* The same as a string; "" when there is none, or it does not fit with its NUL. */
static inline void frame_text(const uint8_t *frame, size_t len, const char *key, char *ret, size_t size)
{
	size_t data_len = 0;
	const void *data = frame_find(frame, len, key, &data_len);

	if (!data || data_len >= size)
		data_len = 0;
	if (data)
		memcpy(ret, data, data_len);
	ret[data_len] = '\0';
}
