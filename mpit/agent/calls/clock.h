/*
 * clock.h - the clock that calls are timed with, and its ticks in the unit of durations, 2^-30 s.
 *
 * x86-64: the processor's time-stamp counter, where the kernel keeps its own time by it; AArch64: the virtual
 * counter; otherwise clock_gettime(CLOCK_MONOTONIC), whose ticks are nanoseconds. Which one, and how many units a
 * tick is, is decided once, before anything is measured, and stays.
 */
#ifndef MPIT_CALLS_CLOCK_H
#define MPIT_CALLS_CLOCK_H

#include "source.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Units per tick as a binary fraction: below / 2^(64-shift), which is less than the true ratio, and by no more than
 * the last place. Then the units of any duration, cut to a whole number, are the number of the last whole unit before
 * it ends: 0 of (0, 1], 1 of (1, 2] …, which is what inclusive upper ends of buckets need, without a rounding of its
 * own.
 */
struct ratio {
	uint64_t below;
	unsigned shift; /* below 64: units per tick are less than 2^shift */
};

struct clock {
	bool counter; /* the processor's; false: clock_gettime */
	struct ratio ratio;
};

/* Of ticks that are ticks of units: both above 0 and below 2^63, units/ticks below 2^63. */
struct ratio ratio_of(uint64_t units, uint64_t ticks);

/* The sum of durations in whole units, cut. Grows when ticks do. Exact where the ratio is, for sums below
 * 2^(63-shift) ticks. */
uint64_t ratio_units(const struct ratio *r, uint64_t ticks);

/* Ticks of so many units, to the next lower tick or so. */
uint64_t ratio_ticks(const struct ratio *r, uint64_t units);

/* The bucket of a duration: k of more than 2^(k-1) and up to 2^k units, 0 of up to one, the last one all that are
 * longer. */
static inline unsigned ratio_bucket(const struct ratio *r, uint64_t ticks)
{
	uint64_t units = (uint64_t)((unsigned __int128)(ticks << r->shift) * r->below >> 64);
	/* 0 → 0, 1 → 1, 2 and 3 → 2, 4 to 7 → 3 … */
	unsigned bucket = 63 - (unsigned)__builtin_clzll(2 * units + 1);

	return bucket < DISTRIBUTION_BUCKETS ? bucket : DISTRIBUTION_BUCKETS - 1;
}

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t clock_monotonic(void) __attribute__((visibility("hidden")));

/* Not ordered with the instructions around it, which are those of a call: what a barrier costs is more than it could
 * set right. */
#if defined __x86_64__
#define CLOCK_HAS_COUNTER 1
static inline uint64_t clock_counter(void)
{
	return __builtin_ia32_rdtsc();
}
#elif defined __aarch64__
#define CLOCK_HAS_COUNTER 1
static inline uint64_t clock_counter(void)
{
	uint64_t ticks;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
}
#else
#define CLOCK_HAS_COUNTER 0
static inline uint64_t clock_counter(void)
{
	return 0;
}
#endif

static inline uint64_t clock_now(const struct clock *c)
{
	return CLOCK_HAS_COUNTER && __builtin_expect(c->counter, 1) ? clock_counter() : clock_monotonic();
}

/*
 * Decides, in begin. x86-64: compares the counter with CLOCK_MONOTONIC_RAW over the time since the library was
 * loaded; where that is too short for a ratio that is right to 1e-5, the counter is not used.
 * MPIT_CALLS_CLOCK=monotonic: clock_gettime in any case. False: the variable holds something else; then *why says so.
 */
bool clock_choose(struct clock *c, const char **why);

#endif
