/* memcheck.h: valgrind makes a test forty times slower. There, what takes one path a hundred thousand times takes it less often. */
#pragma once

#include <stdbool.h>
#include <stdlib.h>

static inline bool under_memcheck(void)
{
	return getenv("KERN_MEMCHECK") != NULL; /* by memcheck.py */
}
