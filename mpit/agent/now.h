/* now.h - the two clocks, in nanoseconds: the vDSO, no system call. Any thread, async-signal-safe. */
#ifndef MPIT_NOW_H
#define MPIT_NOW_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec t = { 0 };

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t realtime_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

static inline uint64_t monotonic_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

#endif
