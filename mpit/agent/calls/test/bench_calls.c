/*
 * bench_calls.c - what a measured call costs over the call: an MPI library whose functions do nothing (fake_mpi.c),
 * in one thread.
 *
 * Side by side, in turns, so that all see the same moments of the machine: the plain call; two reads of the clock;
 * the wrapper with measuring off, on, and on with sizes, with messages by peer ("one" is a message, a third of "mix" are)
 * or with sites counted as well, or the stack behind them, of ten frames. "mix" is 12 functions on 8 communicators, windows or files each, in a random order; its plain
 * calls are the same calls. Printed as Go's benchmarks are, for benchstat: medians. "over" is a measured call less the
 * plain one and the two reads of the clock: what the profile itself takes.
 */
#define _GNU_SOURCE
#include "../caller.h"
#include "block.h"
#include "fake_mpi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 401, CALLS = 4096, OBJECTS = 8 };

typedef int call_function(intptr_t, intptr_t, intptr_t, intptr_t);

static call_function *const plain[] = {
#define PLAIN(name, bind, out, in, activity, names) fake_##name,
	FUNCTIONS(PLAIN)
};
static call_function *const wrapped[] = {
#define WRAPPED(name, bind, out, in, activity, names) name,
	FUNCTIONS(WRAPPED)
};

static const struct source *source;
/* What is called: a function, on an object. */
static struct {
	unsigned char function, object;
} one[CALLS], mix[CALLS], (*order)[CALLS];

extern source_function mpit_agent_source;

static intptr_t handle_of(unsigned function, unsigned object)
{
	switch (functions[function].bind) {
	case BIND_COMM: return (intptr_t)0x84000000u + object;
	case BIND_WIN: return (intptr_t)0xa0000000u + object;
	default: return 0x5500000000 + 272 * object;
	}
}

static uint64_t ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void run(call_function *const *table)
{
	for (int i = 0; i < CALLS; i++) {
		unsigned f = (*order)[i].function;

		table[f](0, 1, 8, handle_of(f, (*order)[i].object));
	}
}

static void run_plain(void)
{
	run(plain);
}

static void run_wrapped(void)
{
	run(wrapped);
}

static __attribute__((noinline, noclone)) void run_deep(int frames)
{
	if (frames == 0)
		run_wrapped();
	else
		run_deep(frames - 1);
	__asm__ volatile("" ::: "memory");
}

static void run_stacks(void)
{
	run_deep(6);
}

/* What the agent's thread says of the code. */
static void look_at_sites(void)
{
	static struct mapped code;
	struct source_site s;
	size_t count = 1, made, next = 0;
	const char *path;
	uint64_t offset;

	if (code.lines == NULL)
		mapped_read(&code);
	while (next = source->sites(next, &s, &count, &made), count == 1)
		if (s.function != NULL && atomic_load(s.frame) == 0 && mapped_find(&code, s.from, &path, &offset) &&
		    strstr(path, "/libc") == NULL)
			atomic_store(s.frame, frame_of(s.from, offset));
}

static volatile uint64_t sink;

static void run_clock(void)
{
	for (int i = 0; i < CALLS; i++) {
		uint64_t begin = clock_now(&calls_state.clock);

		__asm__ volatile("" ::: "memory");
		sink = clock_now(&calls_state.clock) - begin;
	}
}

static double timed(void (*what)(void), bool measuring)
{
	uint64_t begin;

	source->measure(measuring);
	begin = ns();
	what();
	return (double)(ns() - begin) / CALLS;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

enum { PLAIN_CALL, CLOCK_READS, OFF, ON, SIZES, PEERS, SITES_TOO, STACKS, KINDS };

static void count_sites(bool on, bool stacks)
{
	calls_state.stacks = stacks;
	calls_state.sites = on;
	atomic_store(&calls_state.epoch_at_end, on ? 0 : atomic_load(&calls_state.epoch));
}

static void measure(const char *name)
{
	static const char *const kinds[KINDS] = { "plain", "two_clock_reads", "off", "on", "sizes", "peers", "sites", "stacks" };
	static double costs[KINDS][ROUNDS];
	double median[KINDS];

	for (int i = 0; i < ROUNDS; i++) {
		costs[PLAIN_CALL][i] = timed(run_plain, false);
		costs[CLOCK_READS][i] = timed(run_clock, false);
		costs[OFF][i] = timed(run_wrapped, false);
		costs[ON][i] = timed(run_wrapped, true);
		calls_state.sizes = true;
		costs[SIZES][i] = timed(run_wrapped, true);
		calls_state.sizes = false;
		calls_state.peers = true;
		costs[PEERS][i] = timed(run_wrapped, true);
		calls_state.peers = false;
		count_sites(true, false);
		costs[SITES_TOO][i] = timed(run_wrapped, true);
		count_sites(false, false);
	}
	/* Afterwards: calls from code whose frame is known take another way. */
	count_sites(true, true);
	for (int i = 0; i < ROUNDS; i++) {
		look_at_sites();
		costs[STACKS][i] = timed(run_stacks, true);
	}
	count_sites(false, false);
	for (int k = 0; k < KINDS; k++) {
		qsort(costs[k], ROUNDS, sizeof costs[k][0], by_value);
		median[k] = costs[k][ROUNDS / 2];
		printf("BenchmarkCall/%s/%s\t%d\t%.1f ns/op\n", name, kinds[k], ROUNDS, median[k]);
	}
	printf("BenchmarkCall/%s/over\t%d\t%.1f ns/op\t%.2f on/plain\n", name, ROUNDS,
	       median[ON] - median[PLAIN_CALL] - median[CLOCK_READS], median[ON] / median[PLAIN_CALL]);
}

int main(void)
{
	static const struct source_mpi mpi = { .abi = 7, .find = fake_find, .filtered = fake_filtered, .calls = "sizes,peers,sites" };
	const struct timespec while_calibrating = { .tv_nsec = 50000000 };
	const char *why;
	uint32_t number = 1;

	nanosleep(&while_calibrating, NULL);
	source = mpit_agent_source(SOURCE_VERSION);
	if (!source->begin(&mpi, &why)) {
		fprintf(stderr, "%s\n", why);
		return 1;
	}
	calls_state.sizes = false;
	fake_rank_count = 2;
	fake_ranks[1] = 1;
	for (unsigned o = 0; o < OBJECTS; o++) {
		source->object_made(BIND_COMM, (uint64_t)handle_of(FUNCTION_MPI_Send, o), number++, 0, 2);
		source->object_made(BIND_WIN, (uint64_t)handle_of(FUNCTION_MPI_Put, o), number++, 0, 2);
		source->object_made(BIND_FILE, (uint64_t)handle_of(FUNCTION_MPI_File_write, o), number++, 0, 2);
	}
	calls_state.peers = false;
	count_sites(false, false);
	srand(1);
	for (int i = 0; i < CALLS; i++) {
		mix[i].function = (unsigned char)(rand() / 7 % FUNCTION_COUNT);
		mix[i].object = (unsigned char)(rand() / 7 % OBJECTS);
	}
	printf("the clock is %s\n", calls_state.clock.counter ? "the processor's counter" : "clock_gettime");
	order = &one;
	measure("one");
	order = &mix;
	measure("mix");
	return 0;
}
