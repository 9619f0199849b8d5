/* dents.h: reading a directory with one call for many names (getdents64(2)), which readdir(3) does not let choose its buffer. */
#pragma once

#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

struct ks_dent {
	uint64_t d_ino;
	int64_t d_off;
	unsigned short d_reclen; /* to the next one */
	unsigned char d_type;
	char d_name[];
};

/* Bytes of whole entries, 0 at the end, -1 with errno. `buf` is aligned for struct ks_dent. */
static inline long ks_getdents(int fd, void *buf, size_t size)
{
	return syscall(SYS_getdents64, fd, buf, size);
}
