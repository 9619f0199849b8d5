/* base.h: cleanup attributes and ownership transfer. Depends on libc only. */
#pragma once

#include <stdlib.h>
#include <unistd.h>

#define KS_CLEANUP(fn) __attribute__((__cleanup__(fn)))
#define KS_AUTOFREE KS_CLEANUP(ks_freep)
#define KS_AUTOCLOSE KS_CLEANUP(ks_closep)
#define KS_PRINTF(fmt, args) __attribute__((__format__(__printf__, fmt, args)))
#define KS_MUST_CHECK __attribute__((__warn_unused_result__))
#define KS_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Hands the value to the caller and leaves the empty value behind. */
#define KS_TAKE(var, empty)                         \
	(__extension__({                            \
		__typeof__(var) ks_taken_ = (var);  \
		(var) = (empty);                    \
		ks_taken_;                          \
	}))
#define KS_TAKE_PTR(p) KS_TAKE(p, NULL)
#define KS_TAKE_FD(fd) KS_TAKE(fd, -1)

static inline void ks_freep(void *p)
{
	free(*(void **)p);
}

static inline void ks_closep(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd); /* never retried: on Linux the fd is gone even on EINTR */
}

/* Closes and forgets; -1 is fine. */
static inline void ks_close(int *fd)
{
	ks_closep(fd);
	*fd = -1;
}
