/* tar_header.h: the 512 bytes of a header (ustar interchange format, POSIX.1-2017, pax). For tar_*.c only. */
#pragma once

#include "tar.h"

struct ks_tar_header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, linkname[100], magic[6], version[2], uname[32],
		gname[32], devmajor[8], devminor[8], prefix[155], pad[12];
};

_Static_assert(sizeof(struct ks_tar_header) == KS_TAR_BLOCK, "a header is one block");

/* The sum of all bytes, those of the checksum itself taken as spaces. */
static inline unsigned ks_tar_checksum(const struct ks_tar_header *header)
{
	const unsigned char *bytes = (const unsigned char *)header;
	const size_t from = offsetof(struct ks_tar_header, checksum), to = from + sizeof(header->checksum);
	unsigned sum = 0;

	for (size_t i = 0; i < sizeof(*header); i++)
		sum += i >= from && i < to ? ' ' : bytes[i];
	return sum;
}

/* Octal digits between blanks, or GNU's base 256. All return -1 when it is something else. */
int ks_tar_number(const char *field, size_t size, int64_t *ret);
/* At most 18 digits. */
int ks_tar_decimal(const char *text, const char *end, int64_t *ret);
/* [-]seconds[.fraction], as an extended header has it. */
int ks_tar_time(const char *text, size_t len, struct timespec *ret);
