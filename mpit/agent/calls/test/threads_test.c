/* threads_test.c - several threads count, one reads. */
#define _GNU_SOURCE
#include "test.h"

#include <string.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 6, ROUNDS = 4000, OBJECTS = 3 };

static _Atomic unsigned running;

static void *counts(void *argument)
{
	intptr_t base = 0x600 + (intptr_t)argument % 2 * OBJECTS;

	for (int i = 0; i < ROUNDS; i++) {
		CHECK(MPI_Send(0, 1, 8, base + i % OBJECTS) == 0 && MPI_Sendrecv(0, 2, 8, base + i % OBJECTS) == 0);
		CHECK(MPI_Wait(0, 0, 0, 0) == 0);
	}
	atomic_fetch_sub(&running, 1);
	return NULL;
}

/* A reader's view of one distribution: nothing in it ever falls. */
static void reads_on(size_t variable, uint32_t object, uint64_t *last)
{
	uint64_t now[DISTRIBUTION_ELEMENTS];

	source->read(variable, object, now);
	for (size_t i = 0; i < DISTRIBUTION_ELEMENTS; i++)
		CHECK(now[i] >= last[i]);
	memcpy(last, now, sizeof now);
}

void test_threads_against_a_reader(void)
{
	static uint64_t last[2 * OBJECTS + 1][DISTRIBUTION_ELEMENTS], last_sizes[2 * OBJECTS][DISTRIBUTION_ELEMENTS];
	static struct told told;
	uint32_t objects[2 * OBJECTS];
	uint64_t waits, uncounted;
	pthread_t threads[THREADS];
	size_t time, wait, size;

	CHECK(MPI_Wait(0, 0, 0, 0) == 0 && MPI_Send(0, 1, 1, 0x699) == 0 && MPI_Sendrecv(0, 1, 1, 0x699) == 0);
	time = variable("mpit_call_time_MPI_Send");
	size = variable("mpit_call_size_MPI_Send");
	wait = variable("mpit_call_time_MPI_Wait");
	waits = calls("MPI_Wait", 0);
	uncounted = bytes("mpit_call_uncounted", 0);
	tells(&told);
	told.count = 0;
	for (int i = 0; i < 2 * OBJECTS; i++)
		objects[i] = make(BIND_COMM, 0x600 + i);
	atomic_store(&running, THREADS);
	for (intptr_t i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, counts, (void *)i) == 0);
	while (atomic_load(&running) > 0) {
		tells(&told);
		for (int i = 0; i < 2 * OBJECTS; i++) {
			reads_on(time, objects[i], last[i]);
			reads_on(size, objects[i], last_sizes[i]);
		}
		reads_on(wait, 0, last[2 * OBJECTS]);
		/* Objects that come and go meanwhile change nothing for the others. */
		freed(BIND_COMM, 0x650, make(BIND_COMM, 0x650));
	}
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	tells(&told);
	for (int i = 0; i < 2 * OBJECTS; i++) {
		uint64_t each = THREADS / 2 * (uint64_t)(ROUNDS / OBJECTS + (i % OBJECTS < ROUNDS % OBJECTS));

		reads_on(size, objects[i], last_sizes[i]);
		CHECK(last_sizes[i][0] == 8 * each && last_sizes[i][1 + 3] == each);
		CHECK(calls("MPI_Send", objects[i]) == each && bytes("mpit_call_bytes_sent_MPI_Send", objects[i]) == 8 * each);
		CHECK(calls("MPI_Sendrecv", objects[i]) == each &&
		      bytes("mpit_call_bytes_received_MPI_Sendrecv", objects[i]) == 16 * each);
		CHECK(tells_of(&told, "mpit_call_time_MPI_Send", objects[i]) &&
		      tells_of(&told, "mpit_call_bytes_sent_MPI_Sendrecv", objects[i]));
		freed(BIND_COMM, 0x600 + i, objects[i]);
	}
	CHECK(told.count == 2 * OBJECTS * 7 && calls("MPI_Wait", 0) == waits + THREADS * ROUNDS);
	CHECK(bytes("mpit_call_uncounted", 0) == uncounted);
}

/* ---- */

static pthread_barrier_t turn;
static uint32_t current;
enum { TURNS = 500 };

static void *is_handed(void *unused)
{
	for (int i = 0; i < TURNS; i++) {
		pthread_barrier_wait(&turn); /* it is made */
		CHECK(MPI_Send(0, 1, 10, 0x700) == 0);
		pthread_barrier_wait(&turn);
	}
	return unused;
}

/* One thread makes and frees it, two use it; the handle is always the same, the object never. */
void test_a_handle_goes_from_thread_to_thread(void)
{
	pthread_t other;

	CHECK(pthread_barrier_init(&turn, NULL, 2) == 0 && pthread_create(&other, NULL, is_handed, NULL) == 0);
	for (int i = 0; i < TURNS; i++) {
		current = make(BIND_COMM, 0x700);
		pthread_barrier_wait(&turn);
		CHECK(MPI_Send(0, 1, 1, 0x700) == 0);
		pthread_barrier_wait(&turn);
		CHECK(calls("MPI_Send", current) == 2 && bytes("mpit_call_bytes_sent_MPI_Send", current) == 11);
		freed(BIND_COMM, 0x700, current);
	}
	CHECK(pthread_join(other, NULL) == 0 && pthread_barrier_destroy(&turn) == 0);
}

/* ---- */

static void *sends_once(void *handle)
{
	CHECK(MPI_Send(0, 1, 5, (intptr_t)handle) == 0);
	return NULL;
}

void test_counts_outlive_their_threads(void)
{
	uint32_t comm = make(BIND_COMM, 0x800);
	unsigned before;

	in_a_thread(sends_once, (void *)0x800);
	before = block_count();
	for (int i = 0; i < 100; i++)
		in_a_thread(sends_once, (void *)0x800);
	CHECK(calls("MPI_Send", comm) == 101 && bytes("mpit_call_bytes_sent_MPI_Send", comm) == 505);
	CHECK(block_count() == before);
	freed(BIND_COMM, 0x800, comm);
}

/* ---- */

static pthread_barrier_t all;

static void *holds_a_block(void *unused)
{
	CHECK(MPI_Wait(0, 0, 0, 0) == 0);
	pthread_barrier_wait(&all); /* all blocks are taken */
	pthread_barrier_wait(&all);
	return unused;
}

static void calls_again(void)
{
	fake_inside = NULL;
	CHECK(MPI_Bcast(0, 1, 1, 0x900) == 0);
}

static void *has_no_memory(void *unused)
{
	uint64_t before = bytes("mpit_call_uncounted", 0);

	fake_inside = calls_again;
	CHECK(MPI_Allgather(0, 1, 8, 0x900) == 0); /* one call, whatever is inside */
	CHECK(MPI_Send(0, 1, 8, 0x900) == 0 && calls_thread.block == NULL);
	CHECK(bytes("mpit_call_uncounted", 0) == before + 2);
	/* It doesn't try each time, but it does. */
	atomic_store(&no_memory, false);
	CHECK(MPI_Send(0, 1, 8, 0x900) == 0 && calls_thread.block == NULL);
	for (int i = 0; calls_thread.block == NULL; i++) {
		CHECK(i < 2000);
		CHECK(MPI_Barrier(0, 1, 8, 0x900) == 0);
	}
	before = bytes("mpit_call_uncounted", 0);
	CHECK(MPI_Barrier(0, 1, 8, 0x900) == 0 && bytes("mpit_call_uncounted", 0) == before);
	return unused;
}

void test_calls_without_memory_are_counted(void)
{
	uint32_t comm = make(BIND_COMM, 0x900);
	unsigned blocks_now = block_count();
	pthread_t holders[64];

	CHECK(blocks_now < 64 && pthread_barrier_init(&all, NULL, blocks_now + 1) == 0);
	for (unsigned i = 0; i < blocks_now; i++)
		CHECK(pthread_create(&holders[i], NULL, holds_a_block, NULL) == 0);
	pthread_barrier_wait(&all);
	/* A thread's stack comes from glibc's own mmap, which is not wrapped. */
	atomic_store(&no_memory, true);
	in_a_thread(has_no_memory, NULL);
	CHECK(calls("MPI_Allgather", comm) == 0 && calls("MPI_Bcast", comm) == 0 && calls("MPI_Send", comm) == 0 &&
	      calls("MPI_Barrier", comm) == 2);
	pthread_barrier_wait(&all);
	for (unsigned i = 0; i < blocks_now; i++)
		CHECK(pthread_join(holders[i], NULL) == 0);
	CHECK(pthread_barrier_destroy(&all) == 0);
	freed(BIND_COMM, 0x900, comm);
}

void test_a_child_measures_nothing(void)
{
	uint64_t before = calls("MPI_Wait", 0);
	int status = -1;
	pid_t child = fork();

	CHECK(child >= 0);
	if (child == 0) {
		source->measure(false); /* as the agent does */
		MPI_Wait(0, 0, 0, 0);
		_exit(calls("MPI_Wait", 0) == before ? 0 : 1);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(MPI_Wait(0, 0, 0, 0) == 0 && calls("MPI_Wait", 0) == before + 1);
}
