/* clock.h: CLOCK_MONOTONIC in microseconds. It stands still while the machine is suspended. */
#pragma once

#include <stdint.h>
#include <time.h>

static inline int64_t ks_now_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}
