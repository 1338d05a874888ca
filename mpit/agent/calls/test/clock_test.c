/* clock_test.c - ticks, units and buckets. */
#define _GNU_SOURCE
#include "test.h"

#include <string.h>
#include <time.h>

void test_buckets_end_where_they_should(void)
{
	static const struct {
		uint64_t units;
		unsigned bucket;
	} durations[] = {
		{ 0, 0 }, { 1, 0 }, { 2, 1 }, { 3, 2 }, { 4, 2 }, { 5, 3 }, { 8, 3 }, { 9, 4 },
		{ 1 << 30, 30 }, { (1 << 30) + 1, 31 },
		{ (uint64_t)1 << 42, 42 },       /* 4096 s */
		{ ((uint64_t)1 << 42) + 1, 43 }, /* longer: the last one */
		{ (uint64_t)1 << 60, 43 },
	};
	struct ratio one = ratio_of(1, 1), quarter = ratio_of(1, 4), seven = ratio_of(7, 1);

	for (size_t i = 0; i < sizeof durations / sizeof *durations; i++) {
		uint64_t units = durations[i].units;

		CHECK(ratio_bucket(&one, units) == durations[i].bucket);
		if (units > 0 && units < (uint64_t)1 << 60) {
			CHECK(ratio_bucket(&quarter, 4 * units) == durations[i].bucket);
			/* Hardly more than a whole number of units is more. */
			CHECK(ratio_bucket(&quarter, 4 * units + 1) == ratio_bucket(&one, units + 1));
		}
	}
	/* 7, 511, 518 units */
	CHECK(ratio_bucket(&seven, 1) == 3 && ratio_bucket(&seven, 73) == 9 && ratio_bucket(&seven, 74) == 10);
}

/* A unit is 5^9/2^21 ns: with whole numbers there is no doubt on which side of an end a duration lies. */
static unsigned exact_bucket(uint64_t ns)
{
	unsigned bucket = 0;

	while (bucket < DISTRIBUTION_BUCKETS - 1 && (unsigned __int128)ns << 21 > (unsigned __int128)1953125 << bucket)
		bucket++;
	return bucket;
}

void test_buckets_of_nanoseconds_are_exact(void)
{
	struct ratio ratio = ratio_of((uint64_t)1 << 30, 1000000000);
	uint64_t ns = 1;

	for (unsigned bucket = 0; bucket < DISTRIBUTION_BUCKETS - 1; bucket++) {
		uint64_t end = (uint64_t)(((unsigned __int128)1953125 << bucket) >> 21); /* the last whole ns in it */

		for (uint64_t at = end > 2 ? end - 2 : 0; at < end + 3; at++)
			CHECK(ratio_bucket(&ratio, at) == exact_bucket(at));
	}
	for (unsigned i = 0; i < 100000; i++) {
		ns = ns * 6364136223846793005u + 1442695040888963407u;
		CHECK(ratio_bucket(&ratio, ns >> (20 + i % 44)) == exact_bucket(ns >> (20 + i % 44)));
	}
}

void test_sums_are_exact_and_never_fall(void)
{
	struct ratio ns = ratio_of((uint64_t)1 << 30, 1000000000), one = ratio_of(1, 1),
		tsc = ratio_of((uint64_t)1 << 30, 2893301234);
	uint64_t last = 0;

	for (uint64_t seconds = 1; seconds < 4096; seconds++)
		CHECK(ratio_units(&ns, seconds * 1000000000) == seconds << 30);
	CHECK(ratio_units(&ns, 1953125) == (uint64_t)1 << 21 && ratio_units(&ns, 1953124) == ((uint64_t)1 << 21) - 2);
	for (uint64_t ticks = 0; ticks < 1000; ticks++)
		CHECK(ratio_units(&one, ticks) == ticks);
	/* Years of it, in steps of any size. */
	for (uint64_t ticks = 0, step = 1; ticks < (uint64_t)1 << 61; ticks += step, step += 1 + step / 100) {
		CHECK(ratio_units(&tsc, ticks) >= last);
		last = ratio_units(&tsc, ticks);
	}
	CHECK(ratio_units(&tsc, 2893301234u * (uint64_t)3600) == (uint64_t)3600 << 30);
}

static uint64_t clock_ns(const struct clock *c, uint64_t ticks)
{
	return (uint64_t)((unsigned __int128)ratio_units(&c->ratio, ticks) * 1000000000 >> 30);
}

/* By how much only shows that units are what they are called: a machine under load may do anything in between. */
void test_the_clocks_agree(void)
{
	const struct timespec pause = { .tv_nsec = 50000000 };
	struct clock counter = { .counter = false }, monotonic;
	const char *why = NULL;

	CHECK(clock_choose(&counter, &why));
	CHECK(setenv("MPIT_CALLS_CLOCK", "monotonic", 1) == 0 && clock_choose(&monotonic, &why) && !monotonic.counter);
	CHECK(setenv("MPIT_CALLS_CLOCK", "tsc", 1) == 0 && !clock_choose(&monotonic, &why));
	CHECK(strcmp(why, "MPIT_CALLS_CLOCK is neither empty nor monotonic") == 0);
	unsetenv("MPIT_CALLS_CLOCK");

	for (int tries = 0; counter.counter; tries++) {
		uint64_t a = clock_now(&counter), b = clock_now(&monotonic), took_a, took_b;

		nanosleep(&pause, NULL);
		took_a = clock_ns(&counter, clock_now(&counter) - a);
		took_b = clock_ns(&monotonic, clock_now(&monotonic) - b);
		if (took_a > took_b - took_b / 1000 && took_a < took_b + took_b / 1000)
			break;
		CHECK(tries < 20);
	}
}
