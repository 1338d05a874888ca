/*
 * bench.c - what a sample costs a rank: CPU time of the agent's thread for one request and its answer, all system
 * calls in it, as its own statistics have it. 60 variables of a library that does next to nothing (fake_abi.c), so
 * this is the agent's part and the kernel's.
 *
 * "cold": before each request 64 MiB are written on the same core, so that nothing of the agent, of its values and of
 * the kernel's path is in a cache, as after a second of somebody else's computing. "warm": requests without a pause.
 * Printed as Go's benchmarks are, for benchstat: the median. An allocation in the agent's code between the first
 * sample and the last one is a failure.
 */
#define _GNU_SOURCE
#include "test.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { VARIABLES = 60, ROUNDS = 501, COLD_BYTES = 64 << 20, CPU_WORD = 8 + 6 };

static _Atomic unsigned long allocations;

/* In the linker's place of those that the agent calls (--wrap). */
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
	atomic_fetch_add(&allocations, 1);
	return __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
	atomic_fetch_add(&allocations, 1);
	return __real_calloc(count, bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
	atomic_fetch_add(&allocations, 1);
	return __real_realloc(old, bytes);
}

static unsigned char *trash;

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* CPU nanoseconds of the agent's thread at the beginning of this sample. */
static uint64_t sample(int fd, const struct wire *request)
{
	static uint64_t words[4096];
	unsigned char bytes[WIRE_HEADER_BYTES];
	struct wire_header header;

	CHECK(send(fd, request->bytes, request->length, 0) == (ssize_t)request->length);
	CHECK(recv(fd, bytes, sizeof bytes, MSG_WAITALL) == sizeof bytes && wire_header(bytes, &header));
	CHECK(header.type == FRAME_SAMPLE && header.words < sizeof words / sizeof *words);
	CHECK(recv(fd, words, header.words * sizeof *words, MSG_WAITALL) == (ssize_t)(header.words * sizeof *words));
	CHECK(words[1] == SAMPLE_FRESH && words[6] == 1);
	return words[CPU_WORD];
}

static void measure(const char *name, int fd, const struct wire *request, bool cold)
{
	static uint64_t costs[ROUNDS];
	uint64_t before = sample(fd, request), now;
	unsigned long allocated = atomic_load(&allocations);

	for (int i = 0; i < ROUNDS; i++, before = now) {
		if (cold)
			memset(trash, i, COLD_BYTES);
		for (int v = 0; v < VARIABLES; v++)
			fake_variables[v].value[0][0].i++;
		now = sample(fd, request);
		costs[i] = now - before;
	}
	allocated = atomic_load(&allocations) - allocated;
	qsort(costs, ROUNDS, sizeof *costs, by_value);
	printf("BenchmarkAgentSample/variables=%d/%s\t%d\t%llu ns/op\t%lu allocs/op\n", VARIABLES, name, ROUNDS,
	       (unsigned long long)costs[ROUNDS / 2], allocated);
	CHECK(allocated == 0);
}

int main(void)
{
	static char names[VARIABLES][32];
	uint64_t unseen[3] = { 0 }, seen[3];
	struct wire request_bytes = { 0 };
	cpu_set_t one;
	int fd, listening;

	/* One core for both sides: what one writes is in the other's caches too. */
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
	CHECK((trash = __real_malloc(COLD_BYTES)) != NULL);
	fake_reset();
	for (int v = 0; v < VARIABLES; v++) {
		snprintf(names[v], sizeof names[v], "variable_%d", v);
		variable(names[v], COUNTER, TYPE_UNSIGNED_LONG, 8, BIND_NONE, 1);
	}
	open_session("", 10);
	fd = open_conversation(&listening);
	request(fd, REQUEST_SAMPLE, 1, unseen, 3);
	expect_sample(fd, 1, SAMPLE_FRESH, 2);
	seen[0] = session.catalogue.generation;
	seen[1] = session.layout_generation;
	seen[2] = session.remains.generation;
	wire_begin(&request_bytes, REQUEST_SAMPLE, 2);
	wire_words(&request_bytes, seen, 3);
	wire_end(&request_bytes);
	for (int i = 0; i < 10; i++)
		sample(fd, &request_bytes);
	measure("cold", fd, &request_bytes, true);
	measure("warm", fd, &request_bytes, false);
	wire_free(&request_bytes);
	close_conversation(fd, listening);
	return 0;
}
