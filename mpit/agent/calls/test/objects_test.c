/* objects_test.c - handles and the objects that they name. */
#define _GNU_SOURCE
#include "test.h"

void test_a_handle_that_is_used_again_is_another_object(void)
{
	uint32_t first = make(BIND_COMM, 0x200), second;

	CHECK(MPI_Send(0, 1, 100, 0x200) == 0);
	CHECK(bytes("mpit_call_bytes_sent_MPI_Send", first) == 100); /* the last read */
	freed(BIND_COMM, 0x200, first);
	second = make(BIND_COMM, 0x200);
	CHECK(MPI_Send(0, 1, 1, 0x200) == 0);
	CHECK(bytes("mpit_call_bytes_sent_MPI_Send", second) == 1 && calls("MPI_Send", second) == 1);
	/* Freed unseen, and made again. */
	first = second;
	second = make(BIND_COMM, 0x200);
	CHECK(MPI_Send(0, 1, 2, 0x200) == 0 && bytes("mpit_call_bytes_sent_MPI_Send", second) == 2);
	/* What is said of an object that has gone concerns nobody. */
	freed(BIND_COMM, 0x200, first);
	CHECK(MPI_Send(0, 1, 2, 0x200) == 0 && bytes("mpit_call_bytes_sent_MPI_Send", second) == 4);
	freed(BIND_COMM, 0x200, second);
}

void test_an_untracked_object_is_object_0(void)
{
	uint64_t before;
	uint32_t comm;

	CHECK(MPI_Send(0, 1, 1, 0x300) == 0);
	before = calls("MPI_Send", 0);
	/* The handle was an untracked object's; now it is a tracked one's. */
	comm = make(BIND_COMM, 0x300);
	CHECK(MPI_Send(0, 1, 1, 0x300) == 0);
	CHECK(calls("MPI_Send", 0) == before && calls("MPI_Send", comm) == 1);
	freed(BIND_COMM, 0x300, comm);
	CHECK(MPI_Send(0, 1, 1, 0x300) == 0 && calls("MPI_Send", 0) == before + 1);
}

static uint32_t dying;

/* As MPI_Comm_free in another thread, while this one waits. */
static void dies(void)
{
	freed(BIND_COMM, 0x400, dying);
}

static void another_dies(void)
{
	freed(BIND_COMM, 0x401, make(BIND_COMM, 0x401));
}

void test_an_object_freed_during_a_call(void)
{
	uint64_t uncounted = bytes("mpit_call_uncounted", 0), unnamed = calls("MPI_Recv", 0);

	dying = make(BIND_COMM, 0x400);
	CHECK(MPI_Recv(0, 1, 1, 0x400) == 0);
	fake_inside = another_dies;
	CHECK(MPI_Recv(0, 1, 1, 0x400) == 0 && calls("MPI_Recv", dying) == 2);
	fake_inside = dies;
	CHECK(MPI_Recv(0, 1, 1, 0x400) == 0);
	fake_inside = NULL;
	CHECK(bytes("mpit_call_uncounted", 0) == uncounted + 1 && calls("MPI_Recv", 0) == unnamed);
	/* On object 0 nothing dies. */
	fake_inside = another_dies;
	CHECK(MPI_Recv(0, 1, 1, 0x499) == 0 && calls("MPI_Recv", 0) == unnamed + 1);
	fake_inside = NULL;
	CHECK(bytes("mpit_call_uncounted", 0) == uncounted + 1);
}

/* ---- the table, read while it is written ---- */

enum { LASTING = 64, PASSING = 3000, READERS = 3 };

static uint32_t lasting[LASTING];
static _Atomic bool over;
static _Atomic unsigned reading;

static void *looks_up(void *unused)
{
	do {
		for (unsigned i = 0; i < LASTING; i++) {
			struct place place;
			uint32_t number = 0;
			unsigned slot = registry_find(BIND_COMM, 0x10000 + (intptr_t)i, &number);

			CHECK(slot != 0 && number == lasting[i] && registry_place(slot, number, &place));
			CHECK(place.rank == (int)i && place.size == 1000 + (int)i);
			/* One that comes and goes is itself or nothing. */
			slot = registry_find(BIND_COMM, 0x20000, &number);
			if (slot != 0 && registry_place(slot, number, &place))
				CHECK(place.rank == (int)number && place.size == (int)number + 1);
		}
		atomic_fetch_add(&reading, 1);
	} while (!atomic_load(&over));
	return unused;
}

void test_objects_are_found_while_others_come_and_go(void)
{
	const unsigned used = registry_slots();
	pthread_t readers[READERS];
	uint32_t passing[50];

	for (unsigned i = 0; i < LASTING; i++)
		source->object_made(BIND_COMM, 0x10000 + i, lasting[i] = next_object++, (int)i, 1000 + (int)i);
	for (int i = 0; i < READERS; i++)
		CHECK(pthread_create(&readers[i], NULL, looks_up, NULL) == 0);
	while (atomic_load(&reading) < READERS)
		sched_yield();
	for (unsigned round = 0; round < PASSING; round++) {
		for (unsigned i = 0; i < 50; i++) {
			passing[i] = next_object++;
			source->object_made(BIND_COMM, 0x20000 + i * (1 + round % 7) * 16, passing[i], (int)passing[i],
					    (int)passing[i] + 1);
		}
		for (unsigned i = 0; i < 50; i++)
			freed(BIND_COMM, 0x20000 + (intptr_t)(i * (1 + round % 7) * 16), passing[i]);
	}
	atomic_store(&over, true);
	for (int i = 0; i < READERS; i++)
		CHECK(pthread_join(readers[i], NULL) == 0);
	CHECK(registry_slots() <= used + LASTING + 50);
	for (unsigned i = 0; i < LASTING; i++)
		freed(BIND_COMM, 0x10000 + (intptr_t)i, lasting[i]);
}

void test_the_registry_is_bounded(void)
{
	uint32_t first = next_object, number;
	uint64_t before = 0;

	for (unsigned i = 0; i < REGISTRY_SLOTS; i++)
		make(BIND_WIN, 0x100000 + (intptr_t)i);
	CHECK(registry_find(BIND_WIN, 0x100000 + (intptr_t)REGISTRY_SLOTS - 1, &number) != 0 && number == next_object - 1);
	make(BIND_WIN, 0x10);
	CHECK(registry_find(BIND_WIN, 0x10, &number) == 0);
	CHECK(MPI_Put(0, 1, 1, 0x10) == 0);
	before = calls("MPI_Put", 0);
	CHECK(MPI_Put(0, 1, 1, 0x10) == 0 && calls("MPI_Put", 0) == before + 1);
	for (unsigned i = 0; i < REGISTRY_SLOTS; i++)
		freed(BIND_WIN, 0x100000 + (intptr_t)i, first + i);
	number = make(BIND_WIN, 0x10);
	CHECK(MPI_Put(0, 1, 1, 0x10) == 0 && calls("MPI_Put", number) == 1);
	freed(BIND_WIN, 0x10, number);
}
