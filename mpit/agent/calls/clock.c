/* clock.c - which clock, and how long its tick is; clock.h says how it is used. */
#define _GNU_SOURCE
#include "clock.h"

#include "now.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NS_PER_S 1000000000u
#define UNITS_PER_S ((uint64_t)1 << 30)

struct ratio ratio_of(uint64_t units, uint64_t ticks)
{
	struct ratio r = { .shift = 0 };
	unsigned __int128 scaled;

	while (r.shift < 63 && (unsigned __int128)units >= (unsigned __int128)ticks << r.shift)
		r.shift++;
	/* Rounded up and one less: below the true ratio also where that is a whole number of last places. */
	scaled = ((unsigned __int128)units << (64 - r.shift)) + ticks - 1;
	r.below = (uint64_t)(scaled / ticks - 1);
	return r;
}

uint64_t ratio_units(const struct ratio *r, uint64_t ticks)
{
	/* With one more in the last place: not below the true ratio, so that whole units come out whole. */
	unsigned __int128 product = (unsigned __int128)ticks * r->below + ticks;

	return (uint64_t)(product >> (64 - r->shift));
}

uint64_t ratio_ticks(const struct ratio *r, uint64_t units)
{
	return (uint64_t)(((unsigned __int128)units << (64 - r->shift)) / r->below);
}

uint64_t clock_monotonic(void)
{
	return monotonic_ns();
}

#if defined __x86_64__

/* The same moment on both clocks, as well as it can be had: the reading that lay between the closest two of the
 * counter. */
struct moment {
	uint64_t ticks, ns;
	uint64_t unsure; /* ticks */
};

static struct moment loaded;

static struct moment moment_now(void)
{
	struct moment best = { .unsure = UINT64_MAX };

	for (int i = 0; i < 16; i++) {
		uint64_t before = clock_counter(), ns = clock_ns(CLOCK_MONOTONIC_RAW), after = clock_counter();

		if (after - before < best.unsure)
			best = (struct moment){ .ticks = before + (after - before) / 2, .ns = ns, .unsure = after - before };
	}
	return best;
}

/* As early as can be: MPI_Init, which comes in between, takes tens of milliseconds. */
__attribute__((constructor)) static void library_loaded(void)
{
	loaded = moment_now();
}

/* Then it runs at one speed and in step on all cores, which the kernel goes on watching. */
static bool kernel_trusts_counter(void)
{
	static const char wanted[] = "tsc\n";
	char name[16];
	ssize_t length;
	int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	length = read(fd, name, sizeof name);
	close(fd);
	return length == sizeof wanted - 1 && memcmp(name, wanted, sizeof wanted - 1) == 0;
}

static bool counter_ratio(struct ratio *ratio)
{
	struct moment now = moment_now();
	uint64_t ticks = now.ticks - loaded.ticks, ns = now.ns - loaded.ns;

	/* A moment is wrong by half its width at most: two moments, right to 1e-5. */
	if (!kernel_trusts_counter() || now.ticks <= loaded.ticks || now.ns <= loaded.ns ||
	    (now.unsure + loaded.unsure) / 2 > ticks / 100000)
		return false;
	/* 100 MHz to 20 GHz: anything else is a counter that something has happened to. */
	if (ticks / 20 > ns || ticks < ns / 10)
		return false;
	for (; (ns | ticks) >> 32 != 0; ns >>= 1)
		ticks >>= 1;
	*ratio = ratio_of(ns * (UNITS_PER_S >> 9), ticks * (NS_PER_S >> 9));
	return true;
}

#elif defined __aarch64__

/* The counter is the one that the kernel keeps time by, and the register says how fast it runs. */
static bool counter_ratio(struct ratio *ratio)
{
	uint64_t hz;

	__asm__ volatile("mrs %0, cntfrq_el0" : "=r"(hz));
	if (hz < 1000000 || hz > (uint64_t)20 * NS_PER_S)
		return false;
	*ratio = ratio_of(UNITS_PER_S, hz);
	return true;
}

#else

static bool counter_ratio(struct ratio *ratio)
{
	(void)ratio;
	return false;
}

#endif

bool clock_choose(struct clock *c, const char **why)
{
	const char *wanted = getenv("MPIT_CALLS_CLOCK");
	bool monotonic = wanted != NULL && strcmp(wanted, "monotonic") == 0;

	if (wanted != NULL && *wanted != '\0' && !monotonic) {
		*why = "MPIT_CALLS_CLOCK is neither empty nor monotonic";
		return false;
	}
	c->counter = !monotonic && counter_ratio(&c->ratio);
	if (!c->counter)
		c->ratio = ratio_of(UNITS_PER_S, NS_PER_S);
	return true;
}
