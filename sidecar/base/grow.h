/* grow.h: arrays that grow. */
#pragma once

#include <stdbool.h>
#include <stdlib.h>

/* Doubles *cap of an array (`array_ptr` points to its pointer) until it holds `want` items. False: out of memory, nothing is changed. */
static inline bool ks_grow(void *array_ptr, size_t *cap, size_t want, size_t size)
{
	void **array = array_ptr;
	size_t more = *cap ? *cap : 32;

	if (want <= *cap)
		return true;
	while (more < want)
		if (__builtin_mul_overflow(more, 2, &more))
			return false;
	void *bigger = reallocarray(*array, more, size);
	if (!bigger)
		return false;
	*array = bigger;
	*cap = more;
	return true;
}
