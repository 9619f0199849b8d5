/* tar_number.c: the numbers in headers. What is not wholly a number is none. */
#include <string.h>

#include "tar_header.h"

/* Octal digits between blanks, or GNU's base 256. -1: neither. */
int ks_tar_number(const char *field, size_t size, int64_t *ret)
{
	const unsigned char *at = (const unsigned char *)field, *end = at + size;
	uint64_t value = 0;

	if (*at == 0x80 || *at == 0xff) {
		const uint64_t sign = *at == 0xff ? UINT64_MAX : 0;
		value = sign;
		for (at++; at < end; at++) {
			if (value >> 55 != sign >> 55)
				return -1;
			value = value << 8 | *at;
		}
		*ret = (int64_t)value;
		return 0;
	}
	while (at < end && *at == ' ')
		at++;
	for (; at < end && *at >= '0' && *at <= '7'; at++) {
		if (value >> 60)
			return -1;
		value = value << 3 | (uint64_t)(*at - '0');
	}
	for (; at < end; at++)
		if (*at != ' ' && *at != '\0')
			return -1;
	*ret = (int64_t)value;
	return 0;
}

int ks_tar_decimal(const char *text, const char *end, int64_t *ret)
{
	int64_t value = 0;

	if (text == end || end - text > 18)
		return -1;
	for (; text < end; text++) {
		if (*text < '0' || *text > '9')
			return -1;
		value = value * 10 + (*text - '0');
	}
	*ret = value;
	return 0;
}

/* [-]seconds[.fraction]; digits behind the ninth are below what a file system keeps. */
int ks_tar_time(const char *text, size_t len, struct timespec *ret)
{
	const bool minus = len > 0 && *text == '-';
	const char *end = text + len, *from = text + minus, *dot = memchr(text, '.', len);
	int64_t whole, fraction = 0;

	if (ks_tar_decimal(from, dot ? dot : end, &whole) < 0 || whole > INT64_C(1) << 40)
		return -1;
	if (dot) {
		int64_t unit = 100000000;
		for (const char *c = dot + 1; c < end; c++, unit /= 10) {
			if (*c < '0' || *c > '9')
				return -1;
			fraction += unit * (*c - '0');
		}
	}
	if (minus && fraction > 0)
		*ret = (struct timespec){ -whole - 1, 1000000000 - fraction };
	else
		*ret = (struct timespec){ minus ? -whole : whole, fraction };
	return 0;
}
