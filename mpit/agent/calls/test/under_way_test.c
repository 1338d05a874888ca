/* under_way_test.c - what is told of calls that have not returned. */
#define _GNU_SOURCE
#include "test.h"

#include "order.h"
#include "requests.h"

#include <sched.h>
#include <setjmp.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint64_t all_activities(const struct source_calls *c)
{
	uint64_t all = 0;

	for (size_t i = 0; i < ACTIVITIES; i++)
		all += c->threads[0].activity_ns[i];
	return all;
}

static struct source_calls now(void)
{
	struct source_calls c;

	CHECK(source->calls(&c));
	CHECK(c.threads[0].inside_ns <= c.threads[0].observed_ns);
	CHECK(all_activities(&c) <= c.threads[0].inside_ns);
	return c;
}

/*
 * Functions of which it is known where their code lies, and so whether a return address is theirs: each in a section of
 * its own, whose ends the linker names.
 */
#define CALLS_FROM(name, expression)                                                             \
	extern const char __start_code_of_##name[], __stop_code_of_##name[];                     \
	static __attribute__((noinline, noclone, section("code_of_" #name))) int name(void)      \
	{                                                                                        \
		int rc = expression;                                                             \
		__asm__ volatile("" ::: "memory"); /* so that it is no jump */                   \
		return rc;                                                                       \
	}                                                                                        \
	static bool is_in_##name(uintptr_t at)                                                   \
	{                                                                                        \
		return at > (uintptr_t)__start_code_of_##name && at <= (uintptr_t)__stop_code_of_##name; \
	}

CALLS_FROM(barriers, MPI_Barrier(0, 0, 0, 0x100))
CALLS_FROM(sends_from, MPI_Send(0, 1, 8, 0x200))
CALLS_FROM(waits, PMPI_Wait(0, 0, 0, 0x300))
CALLS_FROM(receives, MPI_Recv(0, 1, 8, 0x100))

static struct source_calls seen;

static void looks(void)
{
	seen = now();
}

/* In a call inside another one. */
static void looks_from_inside(void)
{
	fake_inside = looks;
	CHECK(MPI_Bcast(0, 1, 8, 0x200) == 0);
}

void test_a_call_under_way_is_told(void)
{
	uint32_t comm = make(BIND_COMM, 0x100);

	looks();
	CHECK(seen.running_ns == 0 && seen.function == NULL && seen.object == 0 && seen.from == 0);
	fake_inside = looks;
	CHECK(barriers() == 0);
	CHECK(seen.running_ns > 0 && strcmp(seen.function, "MPI_Barrier") == 0 && seen.bind == BIND_COMM);
	CHECK(seen.object == comm && is_in_barriers(seen.from));
	CHECK(waits() == 0);
	CHECK(strcmp(seen.function, "MPI_Wait") == 0 && seen.bind == BIND_NONE && seen.object == 0 &&
	      is_in_waits(seen.from));
	CHECK(sends_from() == 0); /* on a communicator that isn't tracked */
	CHECK(strcmp(seen.function, "MPI_Send") == 0 && seen.bind == BIND_COMM && seen.object == 0);
	/* The outermost call counts. */
	fake_inside = looks_from_inside;
	CHECK(barriers() == 0);
	CHECK(strcmp(seen.function, "MPI_Barrier") == 0 && is_in_barriers(seen.from));
	fake_inside = NULL;
	looks();
	CHECK(seen.running_ns == 0);
	freed(BIND_COMM, 0x100, comm);
}

static void sleeps(void)
{
	const struct timespec a_little = { .tv_nsec = 3000000 };

	nanosleep(&a_little, NULL);
}

static void looks_twice(void)
{
	struct source_calls before = now(), after;

	sleeps();
	after = now();
	CHECK(after.running_ns - before.running_ns >= 3000000);
	/* All that passes in a call is inside MPI; ticks are cut to nanoseconds. */
	CHECK(after.threads[0].inside_ns - before.threads[0].inside_ns + 3 >=
	      after.threads[0].observed_ns - before.threads[0].observed_ns);
	CHECK(after.threads[0].inside_ns - before.threads[0].inside_ns >= 3000000);
}

/* A call of this thread, the first one, ends between two readings: its time is what the histogram's sum gains. */
void test_time_inside_is_that_of_the_calls(void)
{
	uint32_t comm = make(BIND_COMM, 0x100);
	uint64_t elements[DISTRIBUTION_ELEMENTS], counted;
	struct source_calls before, after;

	before = now();
	fake_inside = sleeps;
	for (int i = 0; i < 5; i++) {
		CHECK(barriers() == 0);
		sleeps();
	}
	fake_inside = looks_twice;
	CHECK(barriers() == 0);
	fake_inside = NULL;
	after = now();
	source->read(variable("mpit_call_time_MPI_Barrier"), comm, elements);
	counted = (uint64_t)((double)elements[0] / (1 << 30) * 1e9);
	/* Nanoseconds are cut, and so are units; readings take no account of a tick. */
	CHECK(after.threads[0].inside_ns - before.threads[0].inside_ns < counted + 1000 &&
	      after.threads[0].inside_ns - before.threads[0].inside_ns + 1000 > counted);
	CHECK(after.threads[0].observed_ns - before.threads[0].observed_ns > counted + 5 * 3000000u);
	freed(BIND_COMM, 0x100, comm);
}

static void looks_twice_from_a_barrier(void)
{
	struct source_calls before = now(), after;

	sleeps();
	after = now();
	CHECK(after.threads[0].activity_ns[IN_COLLECTIVE] - before.threads[0].activity_ns[IN_COLLECTIVE] >= 3000000);
	CHECK(after.threads[0].activity_ns[SENDING] == before.threads[0].activity_ns[SENDING]);
	CHECK(after.threads[0].activity_ns[WAITING] == before.threads[0].activity_ns[WAITING]);
}

/* By what the call does, one under way included; together they are all the time inside. */
void test_time_inside_by_activity(void)
{
	struct source_calls before, after;

	fake_inside = looks_twice_from_a_barrier;
	before = now();
	CHECK(barriers() == 0);
	fake_inside = sleeps;
	CHECK(sends_from() == 0);
	CHECK(waits() == 0);
	CHECK(receives() == 0);
	CHECK(MPI_File_write(0, 1, 8, 0x400) == 0);
	fake_inside = NULL;
	after = now();
	CHECK(after.threads[0].activity_ns[SENDING] - before.threads[0].activity_ns[SENDING] >= 3000000);
	CHECK(after.threads[0].activity_ns[WAITING] - before.threads[0].activity_ns[WAITING] >= 6000000);
	CHECK(after.threads[0].activity_ns[IN_COLLECTIVE] - before.threads[0].activity_ns[IN_COLLECTIVE] >= 3000000);
	CHECK(after.threads[0].activity_ns[IN_FILE] - before.threads[0].activity_ns[IN_FILE] >= 3000000);
	/* Each is cut to nanoseconds. */
	CHECK(all_activities(&after) - all_activities(&before) + ACTIVITIES >=
	      after.threads[0].inside_ns - before.threads[0].inside_ns);
}

/* As a wrapper of MPI_Test, which takes no time here. */
static __attribute__((noinline)) void tests(void)
{
	struct call c;

	if (!call_begins(&c, FUNCTION_MPI_Test, BIND_NONE, 0, UNORDERED, 0, __builtin_dwarf_cfa()))
		return;
	call_returns(&c, POLLING);
	call_counts(&c, 0, 0);
}

static void computes_for(uint64_t ns)
{
	for (uint64_t end = clock_monotonic() + ns; clock_monotonic() < end;)
		;
}

/* A microsecond after each test, which in a loop of nothing else is all of it, and of work between tests a hundredth. */
void test_polling(void)
{
	struct source_calls before, after;
	uint64_t polled;
	uint32_t gap = calls_state.poll_gap;

	tests();
	sleeps();
	before = now();
	sleeps();
	after = now();
	CHECK(after.threads[0].inside_ns == before.threads[0].inside_ns); /* the gap's microsecond has passed */
	tests();
	after = now();
	CHECK(after.threads[0].inside_ns > before.threads[0].inside_ns);

	before = now();
	for (int i = 0; i < 200; i++) {
		computes_for(100000);
		tests();
	}
	after = now();
	polled = after.threads[0].activity_ns[POLLING] - before.threads[0].activity_ns[POLLING];
	/* A call of it takes tens of nanoseconds, or a time slice; the gaps are 200 us in all, and one before and after. */
	CHECK(polled >= 199 * 900 && polled + 3 >= after.threads[0].inside_ns - before.threads[0].inside_ns);

	/* A loop whose gaps are short enough is nothing but polling, also while a gap goes on. */
	calls_state.poll_gap = UINT32_MAX;
	tests();
	before = now();
	for (int i = 0; i < 10; i++) {
		sleeps();
		tests();
	}
	sleeps();
	after = now();
	CHECK(after.threads[0].activity_ns[POLLING] - before.threads[0].activity_ns[POLLING] + 3 >=
	      after.threads[0].observed_ns - before.threads[0].observed_ns);
	calls_state.poll_gap = gap;
	/* A call that is no test ends it, and takes none of the gap. */
	tests();
	before = now();
	CHECK(sends_from() == 0);
	after = now();
	CHECK(after.threads[0].activity_ns[POLLING] - before.threads[0].activity_ns[POLLING] <= 1100);
	sleeps();
	CHECK(now().threads[0].activity_ns[POLLING] == after.threads[0].activity_ns[POLLING]);
}

static void is_paused_meanwhile(void)
{
	struct source_calls before, paused;

	source->measure(false);
	before = now();
	sleeps();
	paused = now();
	CHECK(paused.threads[0].observed_ns == before.threads[0].observed_ns && paused.threads[0].inside_ns ==
	      before.threads[0].inside_ns);
	CHECK(paused.running_ns >= 3000000); /* it is there all the same */
	source->measure(false); /* again: nothing */
	source->measure(true);
	source->measure(true);
}

/* Another thread may pause while this one is in a call; that it counts on must not make a share above 1. */
void test_a_pause_is_not_observed(void)
{
	struct source_calls before = now(), after;

	source->measure(false);
	before = now();
	sleeps();
	CHECK(barriers() == 0); /* passes through */
	after = now();
	CHECK(after.threads[0].observed_ns == before.threads[0].observed_ns && after.threads[0].inside_ns ==
	      before.threads[0].inside_ns);
	source->measure(true);

	before = now();
	fake_inside = is_paused_meanwhile;
	CHECK(barriers() == 0);
	fake_inside = NULL;
	after = now();
	CHECK(after.threads[0].inside_ns - before.threads[0].inside_ns <=
	      after.threads[0].observed_ns - before.threads[0].observed_ns);
}

static jmp_buf out;

static void jumps_out(void)
{
	fake_inside = NULL;
	longjmp(out, 1);
}

void test_what_a_longjmp_leaves_under_way(void)
{
	struct source_calls before, stale, after;

	before = now();
	fake_inside = jumps_out;
	if (setjmp(out) == 0)
		barriers();
	sleeps();
	/* Nobody knows that it has been left, until the thread calls again. */
	stale = now();
	CHECK(strcmp(stale.function, "MPI_Barrier") == 0 && stale.threads[0].inside_ns >=
	      before.threads[0].inside_ns + 3000000);
	CHECK(sends_from() == 0);
	after = now();
	CHECK(after.running_ns == 0 && after.threads[0].inside_ns >= stale.threads[0].inside_ns);
	/* And it goes on from what was told. */
	fake_inside = sleeps;
	CHECK(sends_from() == 0);
	fake_inside = NULL;
	CHECK(now().threads[0].inside_ns >= after.threads[0].inside_ns + 3000000);
}

static void ends_the_thread(void)
{
	fake_inside = NULL;
	looks();
	pthread_exit(NULL);
}

static void *ends_inside(void *unused)
{
	fake_inside = ends_the_thread;
	receives();
	return unused;
}

void test_a_threads_end_clears_its_call(void)
{
	struct source_calls before = now();

	in_a_thread(ends_inside, NULL);
	CHECK(strcmp(seen.function, "MPI_Recv") == 0 && is_in_receives(seen.from));
	CHECK(now().running_ns == 0);
	/* Another thread's calls are not the first one's time. */
	CHECK(seen.threads[0].inside_ns == before.threads[0].inside_ns);
}

/* In the call of a thread beside the first. */
static const struct source_thread *thread_in(const struct source_calls *c, const char *function)
{
	for (size_t i = 0; i < c->thread_count; i++)
		if (c->threads[i].begun_ns != 0 && strcmp(c->threads[i].function, function) == 0)
			return &c->threads[i];
	return NULL;
}

static struct source_thread met_first, met_second;

static void looks_at_threads(void)
{
	const struct source_thread *t;

	fake_inside = NULL;
	seen = now();
	t = thread_in(&seen, "MPI_Recv");
	CHECK(t != NULL && t != &seen.threads[0] && t->id != 0 && t->tid == (uint64_t)gettid());
	CHECK(t->begun_ns <= t->now_ns && t->ended_ns <= t->begun_ns && t->bind == BIND_COMM);
	met_second = *t;
	sleeps();
	/* The same call has the same beginning. */
	seen = now();
	t = thread_in(&seen, "MPI_Recv");
	CHECK(t->begun_ns == met_second.begun_ns && t->now_ns >= met_second.now_ns + 3000000);
	CHECK(t->activity_ns[WAITING] >= met_second.activity_ns[WAITING] + 3000000);
	CHECK(t->observed_ns >= met_second.observed_ns + 3000000);
}

static void *is_looked_at(void *unused)
{
	fake_inside = looks_at_threads;
	receives();
	return unused;
}

void test_threads_are_told_apart(void)
{
	struct source_calls c;

	sends_from();
	c = now();
	CHECK(c.threads[0].id != 0 && c.threads[0].tid == (uint64_t)gettid() && c.threads[0].begun_ns == 0);
	CHECK(c.threads[0].ended_ns != 0 && c.threads[0].ended_ns <= c.threads[0].now_ns);
	CHECK(c.threads[0].function == NULL && c.threads[0].object == 0);
	in_a_thread(is_looked_at, NULL);
	met_first = met_second;
	CHECK(now().thread_count == 1); /* one that has ended is not told of */
	/* The next one goes on with its counts, and is another thread. */
	in_a_thread(is_looked_at, NULL);
	CHECK(met_second.id != met_first.id && met_second.ended_ns == 0);
	CHECK(met_second.activity_ns[WAITING] >= met_first.activity_ns[WAITING]);
	CHECK(seen.threads[0].id == c.threads[0].id);
}

static const struct source_thread *named(int (*call)(intptr_t, intptr_t, intptr_t, intptr_t), intptr_t rank,
					 intptr_t tag, intptr_t handle)
{
	fake_inside = looks;
	call(rank, tag, 8, handle);
	fake_inside = NULL;
	return &seen.threads[0];
}

/* Registers hold an int in their lower half; what is above it is whatever was there. */
#define REGISTER(i) ((intptr_t)0x5ca1ab1e00000000 | (uint32_t)(i))

void test_whom_a_call_names(void)
{
	const struct source_thread *t = named(MPI_Barrier, 3, 4, FAKE_WORLD);
	uint32_t world, halo;

	CHECK(t->peer == NO_PEER && t->tag == -1 && t->root == -1);
	t = named(MPI_Recv, 3, 4, FAKE_WORLD);
	CHECK(t->peer == NO_PEER && t->tag == 4 && t->root == -1); /* of an object that isn't tracked */
	source->object_made(BIND_COMM, FAKE_WORLD, world = next_object++, 0, FAKE_WORLD_SIZE);
	t = named(MPI_Recv, REGISTER(3), REGISTER(4), FAKE_WORLD);
	CHECK(t->peer == 3 && t->tag == 4 && t->root == -1);
	t = named(MPI_Recv, REGISTER(calls_abi->any_source), REGISTER(-7), FAKE_WORLD);
	CHECK(t->peer == ANY_PEER && t->tag == -1);
	t = named(MPI_Send, calls_abi->proc_null, 0, FAKE_WORLD);
	CHECK(t->peer == NO_PEER && t->tag == 0);
	t = named(MPI_Recv, FAKE_WORLD_SIZE, 4, FAKE_WORLD);
	CHECK(t->peer == NO_PEER);
	t = named(MPI_Bcast, REGISTER(5), 0, FAKE_WORLD);
	CHECK(t->peer == NO_PEER && t->tag == -1 && t->root == 5);
	t = named(MPI_Bcast, calls_abi->root, 0, FAKE_WORLD);
	CHECK(t->root == -1);
	CHECK(now().threads[0].peer == NO_PEER && now().threads[0].tag == -1); /* it has ended */

	/* Ranks of others are known with peers only. */
	fake_rank_count = 2;
	fake_ranks[0] = 40;
	fake_ranks[1] = 42;
	source->object_made(BIND_COMM, 0x700, halo = next_object++, 0, 2);
	CHECK(named(MPI_Recv, 1, 4, 0x700)->peer == NO_PEER);
	freed(BIND_COMM, 0x700, halo);
	calls_state.peers = true;
	source->object_made(BIND_COMM, 0x700, halo = next_object++, 0, 2);
	CHECK(named(MPI_Recv, 1, 4, 0x700)->peer == 42);
	freed(BIND_COMM, 0x700, halo);
	calls_state.peers = false;
	freed(BIND_COMM, FAKE_WORLD, world);
}

/* Of MPI_COMM_WORLD: 0, or the request's handle. */
static uint32_t begins(int (*call)(intptr_t, intptr_t, intptr_t, intptr_t), int rank, int tag, uint32_t handle)
{
	fake_request = (intptr_t)&handle;
	call(rank, tag, 8, FAKE_WORLD);
	fake_request = 0;
	return handle;
}

static const struct source_thread *waits_on(const uint32_t *requests, int count)
{
	return named(MPI_Wait, (intptr_t)requests, count, 0);
}

static bool waits_for(const struct source_thread *t, size_t count, const int *peers)
{
	return t->peer == NO_PEER && t->peer_count == count && memcmp(t->peers, peers, count * sizeof *peers) == 0;
}

void test_whose_requests_a_call_waits_for(void)
{
	const struct call without_cell = { .cell = NULL };
	uint32_t world, r[REQUESTS_MOST + 1];
	const struct source_thread *t;

	source->object_made(BIND_COMM, FAKE_WORLD, world = next_object++, 0, FAKE_WORLD_SIZE);
	CHECK(requests_open());
	r[0] = begins(MPI_Irecv, 3, 7, 0x101);
	CHECK(waits_on(r, 1)->peer == NO_PEER); /* nothing is noted unless peers are counted */
	calls_state.peers = true;
	CHECK(waits_on(r, 1)->peer == NO_PEER);
	r[0] = begins(MPI_Irecv, 3, 7, 0x101);
	t = waits_on(r, 1);
	CHECK(t->peer == 3 && t->tag == 7 && t->peer_count == 0);
	r[1] = begins(MPI_Irecv, 3, 8, 0x102);
	r[2] = FAKE_NULL_TYPE; /* completed */
	t = waits_on(r, 3);
	CHECK(t->peer == 3 && t->tag == -1 && t->peer_count == 0);
	CHECK(waits_on(r, 0)->peer == NO_PEER && waits_on(r + 2, 1)->peer == NO_PEER);
	r[2] = begins(MPI_Irecv, 5, 8, 0x103);
	CHECK(waits_for(waits_on(r, 3), 2, (int[]){ 3, 5 }));
	r[2] = begins(MPI_Irecv, 6, 8, 0x103); /* the handle is used again */
	CHECK(waits_for(waits_on(r, 3), 2, (int[]){ 3, 6 }));
	r[1] = begins(MPI_Irecv, calls_abi->proc_null, 0, 0x102);
	r[0] = FAKE_NULL_TYPE;
	CHECK(waits_on(r, 3)->peer == 6);
	r[1] = begins(MPI_Irecv, calls_abi->any_source, 0, 0x102);
	CHECK(waits_on(r + 1, 1)->peer == ANY_PEER);

	/* One of them isn't known: nothing is. */
	CHECK(waits_on(r + 1, 2)->peer == NO_PEER && waits_on(r + 1, 2)->peer_count == 0);
	r[1] = begins(MPI_Barrier, 3, 8, 0x102);
	CHECK(waits_on(r + 1, 2)->peer == NO_PEER && waits_on(r + 1, 2)->collective == NULL);
	t = waits_on(r + 1, 1);
	CHECK(strcmp(t->collective, "MPI_Barrier") == 0 && t->collective_on == world && t->collective_number == 1);
	CHECK(t->peer == NO_PEER && t->number == 0 && t->object == 0 && waits_on(r + 2, 1)->collective == NULL);
	r[1] = begins(MPI_Bcast, 3, 8, 0x102);
	CHECK(waits_on(r + 1, 1)->collective_number == 2);
	order_unknown(FAKE_WORLD);
	r[1] = begins(MPI_Barrier, 3, 8, 0x102);
	CHECK(waits_on(r + 1, 1)->collective == NULL);
	r[1] = 0x999;
	CHECK(waits_on(r + 1, 2)->peer == NO_PEER);
	CHECK(waits_on((const uint32_t *)16, 2)->peer == NO_PEER); /* no memory is there */
	call_requested(&without_cell, (intptr_t)&r[1], call_names(6, 8)); /* of whatever function */
	CHECK(waits_on(r + 1, 2)->peer == NO_PEER);
	fake_filter = true;
	CHECK(waits_on(r + 2, 1)->peer == NO_PEER); /* a filter of system calls has come */
	fake_filter = false;
	CHECK(waits_on(r + 2, 1)->peer == 6);
	source->measure(false);
	source->measure(true);
	CHECK(waits_on(r + 2, 1)->peer == NO_PEER); /* what was noted before may have ended meanwhile */

	for (uint32_t i = 0; i < REQUESTS_MOST + 1; i++)
		r[i] = begins(MPI_Irecv, (int)(i % SOURCE_PEERS), 0, 0x200 + i);
	t = waits_on(r, REQUESTS_MOST);
	CHECK(t->peer_count == SOURCE_PEERS && t->peers[SOURCE_PEERS - 1] == SOURCE_PEERS - 1);
	CHECK(waits_on(r, REQUESTS_MOST + 1)->peer_count == 0 && waits_on(r, -1)->peer_count == 0);
	r[1] = begins(MPI_Irecv, SOURCE_PEERS, 0, 0x201);
	CHECK(waits_on(r, REQUESTS_MOST)->peer_count == 0); /* more than are told of */
	calls_state.peers = false;
	freed(BIND_COMM, FAKE_WORLD, world);
}

static uint32_t receive_request, barrier_request; /* on one place of the table */
static uint64_t receive_key, barrier_key;
static _Atomic bool noted_enough;

static void *notes_both(void *unused)
{
	while (!atomic_load(&noted_enough)) {
		requests_note(receive_request, receive_key, call_names(3, 4));
		requests_note(barrier_request, barrier_key, 5);
	}
	return unused;
}

/* The receive's, or nothing. */
static void looks_for_the_receive(void)
{
	unsigned found = 0;

	for (int i = 0; i < 100000 && found < 1000; i++) {
		looks();
		CHECK(seen.threads[0].collective == NULL);
		if (seen.threads[0].peer == NO_PEER)
			continue;
		CHECK(seen.threads[0].peer == 3 && seen.threads[0].tag == 4);
		found++;
	}
}

void test_requests_are_told_apart_while_they_are_noted(void)
{
	uint32_t world, number = 0;
	pthread_t writer;
	unsigned slot;

	source->object_made(BIND_COMM, FAKE_WORLD, world = next_object++, 0, FAKE_WORLD_SIZE);
	slot = registry_find(BIND_COMM, FAKE_WORLD, &number);
	receive_key = key_of(FUNCTION_MPI_Irecv, world, slot);
	barrier_key = key_of(FUNCTION_MPI_Barrier, world, slot);
	calls_state.peers = true;
	receive_request = barrier_request = 0x1000;
	do {
		requests_note(receive_request, receive_key, call_names(3, 4));
		requests_note(++barrier_request, barrier_key, 5);
	} while (waits_on(&receive_request, 1)->peer == 3);
	CHECK(pthread_create(&writer, NULL, notes_both, NULL) == 0);
	fake_inside = looks_for_the_receive;
	MPI_Wait((intptr_t)&receive_request, 1, 0, 0);
	fake_inside = NULL;
	atomic_store(&noted_enough, true);
	CHECK(pthread_join(writer, NULL) == 0);
	calls_state.peers = false;
	freed(BIND_COMM, FAKE_WORLD, world);
}

static pthread_barrier_t all_here;

static void *stands_by(void *unused)
{
	sends_from();
	pthread_barrier_wait(&all_here);
	pthread_barrier_wait(&all_here);
	return unused;
}

void test_so_many_threads_are_told_of(void)
{
	pthread_t threads[SOURCE_THREADS + 1];
	struct source_calls c;

	pthread_barrier_init(&all_here, NULL, SOURCE_THREADS + 2);
	for (size_t i = 0; i < SOURCE_THREADS + 1; i++)
		CHECK(pthread_create(&threads[i], NULL, stands_by, NULL) == 0);
	pthread_barrier_wait(&all_here);
	c = now();
	CHECK(c.thread_count == SOURCE_THREADS && c.threads[0].tid == (uint64_t)gettid());
	for (size_t i = 0; i < SOURCE_THREADS; i++)
		for (size_t k = 0; k < i; k++)
			CHECK(c.threads[i].id != c.threads[k].id);
	pthread_barrier_wait(&all_here);
	for (size_t i = 0; i < SOURCE_THREADS + 1; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&all_here);
	CHECK(now().thread_count == 1);
}

static void *returns_here(void *call)
{
	sends_from(); /* so that it has a block */
	call_returns(call, IN_COLLECTIVE);
	CHECK(!is_running(atomic_load(&calls_thread.under_way->inside)));
	CHECK(atomic_load(&calls_thread.under_way->inside) < (uint64_t)1 << 40);
	return NULL;
}

void test_a_call_returns_on_another_thread(void)
{
	struct source_calls before = now();
	struct call c;

	CHECK(call_begins(&c, FUNCTION_MPI_Barrier, BIND_COMM, 0x999, ORDERED, 0, __builtin_dwarf_cfa()));
	in_a_thread(returns_here, &c);
	CHECK(now().running_ns > 0);
	calls_thread.mark = NULL;
	CHECK(sends_from() == 0 && now().running_ns == 0 && now().threads[0].inside_ns >= before.threads[0].inside_ns);
}

/* ---- */

#define TURNS 20000

static _Atomic bool over;
static _Atomic unsigned met; /* how often the reader has met a call */
static uint32_t barrier_comm, send_comm;

static void *calls_from_elsewhere(void *unused)
{
	while (!atomic_load(&over)) {
		receives();
		waits();
	}
	return unused;
}

static void *reads_all_the_time(void *unused)
{
	struct source_calls last = now();

	while (!atomic_load(&over)) {
		struct source_calls c = now();

		CHECK(c.threads[0].inside_ns >= last.threads[0].inside_ns && c.threads[0].observed_ns >=
		      last.threads[0].observed_ns);
		CHECK(c.threads[0].inside_ns - last.threads[0].inside_ns <=
		      c.threads[0].observed_ns - last.threads[0].observed_ns);
		for (size_t i = 0; i < ACTIVITIES; i++)
			CHECK(c.threads[0].activity_ns[i] >= last.threads[0].activity_ns[i]);
		/* Nobody knows in which of them what has just begun is, but for an instant. */
		CHECK(c.threads[0].inside_ns - all_activities(&c) < 1000000);
		last = c;
		if (c.running_ns == 0)
			continue;
		atomic_fetch_add(&met, 1);
		/* What is told of a call is of one call. */
		if (strcmp(c.function, "MPI_Barrier") == 0)
			CHECK(c.object == barrier_comm && is_in_barriers(c.from));
		else if (strcmp(c.function, "MPI_Send") == 0)
			CHECK(c.object == send_comm && is_in_sends_from(c.from));
		else if (strcmp(c.function, "MPI_Recv") == 0)
			CHECK(c.object == barrier_comm && is_in_receives(c.from));
		else if (strcmp(c.function, "MPI_Test") == 0)
			CHECK(c.object == 0);
		else
			CHECK(strcmp(c.function, "MPI_Wait") == 0 && c.object == 0 && is_in_waits(c.from));
	}
	return unused;
}

void test_calls_under_way_against_a_reader(void)
{
	pthread_t reader, other;

	barrier_comm = make(BIND_COMM, 0x100);
	send_comm = make(BIND_COMM, 0x200);
	CHECK(pthread_create(&other, NULL, calls_from_elsewhere, NULL) == 0);
	CHECK(pthread_create(&reader, NULL, reads_all_the_time, NULL) == 0);
	for (int i = 0; i < TURNS || atomic_load(&met) < 100; i++) {
		barriers();
		tests();
		sends_from();
		if (i % 100 == 0)
			sched_yield();
	}
	atomic_store(&over, true);
	CHECK(pthread_join(reader, NULL) == 0 && pthread_join(other, NULL) == 0);
	freed(BIND_COMM, 0x100, barrier_comm);
	freed(BIND_COMM, 0x200, send_comm);
}
