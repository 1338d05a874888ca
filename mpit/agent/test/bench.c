/*
 * bench.c - what a sample costs a rank: CPU time of the agent's thread for one request and its answer, all system
 * calls in it, as its own statistics have it. 60 variables of a library that does next to nothing (fake_abi.c), so
 * this is the agent's part and the kernel's.
 *
 * "cold": before each request 64 MiB are written on the same core, so that nothing of the agent, of its values and of
 * the kernel's path is in a cache, as after a second of somebody else's computing. "warm": requests without a pause.
 * Under the call profile the kernel is asked besides, at most every 3 s: here of eight threads, four of which it is asked
 * what they sleep in.
 * Printed as Go's benchmarks are, for benchstat: the median. An allocation in the agent's code between the first
 * sample and the last one is a failure.
 */
#define _GNU_SOURCE
#include "kernel.h"
#include "now.h"
#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
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

static int ends[2];

static void *sleeps(void *tid)
{
	char byte;

	atomic_store((_Atomic uint64_t *)tid, (uint64_t)syscall(SYS_gettid));
	return read(ends[0], &byte, 1) == 1 ? tid : NULL;
}

static void measure_kernel(const char *name, struct kernel *k, const struct source_calls *calls, bool cold)
{
	static uint64_t costs[ROUNDS];
	struct kernel_says says;

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t before;

		if (cold)
			memset(trash, i, COLD_BYTES);
		k->next = 0;
		before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		kernel_read(k, calls, &says);
		costs[i] = clock_ns(CLOCK_THREAD_CPUTIME_ID) - before;
		CHECK(says.read);
	}
	qsort(costs, ROUNDS, sizeof *costs, by_value);
	printf("BenchmarkAgentKernel/threads=%zu/%s\t%d\t%llu ns/op\n", calls->thread_count, name, ROUNDS,
	       (unsigned long long)costs[ROUNDS / 2]);
}

static void ask_the_kernel(void)
{
	static _Atomic uint64_t tids[SOURCE_THREADS];
	struct source_calls calls = { .thread_count = SOURCE_THREADS };
	struct kernel k = { 0 };
	pthread_t threads[SOURCE_THREADS];

	CHECK(pipe(ends) == 0);
	for (int i = 0; i < SOURCE_THREADS; i++) {
		CHECK(pthread_create(&threads[i], NULL, sleeps, (void *)&tids[i]) == 0);
		while (atomic_load(&tids[i]) == 0)
			sched_yield();
		calls.threads[i] = (struct source_thread){ .id = (uint64_t)i + 1, .tid = tids[i] };
	}
	measure_kernel("cold", &k, &calls, true);
	measure_kernel("warm", &k, &calls, false);
	for (int i = 0; i < SOURCE_THREADS; i++)
		CHECK(write(ends[1], "x", 1) == 1);
	for (int i = 0; i < SOURCE_THREADS; i++)
		pthread_join(threads[i], NULL);
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
	ask_the_kernel();
	return 0;
}
