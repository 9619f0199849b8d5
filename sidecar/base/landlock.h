/* landlock.h: a process gives up access to the file system but for some places (landlock(7)). A second line behind mounts and
 * descriptors: where the kernel has none, whoever uses it says so and goes on. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* What a ruleset may handle (LANDLOCK_ACCESS_FS_*). */
#define KS_LANDLOCK_EXECUTE UINT64_C(1)
#define KS_LANDLOCK_READ (UINT64_C(1) << 2 | UINT64_C(1) << 3) /* files and directories */
/* change of content; make and remove, of every kind; rename between directories; truncate (ABI 3, left out by itself) */
#define KS_LANDLOCK_WRITE (UINT64_C(1) << 1 | UINT64_C(0x1ff0) | UINT64_C(1) << 13 | UINT64_C(1) << 14)

/* The ABI version of this kernel; 0: none, or one too old to allow renames between directories (1). */
int ks_landlock_abi(void);
/* A ruleset that takes away `access`, and with `scoped` (ABI 6) abstract sockets and signals to the outside. An fd, or -errno. */
int ks_landlock_new(uint64_t access, bool scoped);
/* Gives `access` back below `fd` (O_PATH will do), as far as it fits what fd is. 0 or -errno. */
int ks_landlock_allow(int ruleset, int fd, uint64_t access);
/* For the calling process and what it starts; needs no_new_privs. 0 or -errno. */
int ks_landlock_enforce(int ruleset);
