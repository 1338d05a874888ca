/* sites_test.c - calls by the place they are made from. */
#define _GNU_SOURCE
#include "test.h"

#include "sites.h"

#include <string.h>

static struct source_site told[SITES_OF_ALL];
static size_t told_count;

/* Some at a time, as the agent reads. */
static void look(void)
{
	size_t made, count, next = 0;

	told_count = 0;
	do {
		size_t first = next;

		count = 7;
		next = source->sites(first, told + first, &count, &made);
		CHECK(next == first + count && next <= made);
		told_count = next;
	} while (next < made);
	for (size_t i = 0; i < told_count; i++)
		CHECK(told[i].number == i);
	CHECK(told[0].function == NULL && told[0].from == 0);
}

static void count_sites(bool on)
{
	calls_state.sites = on;
	atomic_store(&calls_state.epoch_at_end, on ? 0 : atomic_load(&calls_state.epoch));
}

/* Those of an object, in the order in which they came. */
static size_t on(uint32_t object, const struct source_site **found, size_t most)
{
	size_t n = 0;

	look();
	for (size_t i = 1; i < told_count; i++)
		if (told[i].object == object && told[i].calls > 0 && n++ < most)
			found[n - 1] = &told[i];
	return n;
}

static bool is(const struct source_site *s, const char *function, uint64_t calls, uint64_t bytes)
{
	return strcmp(s->function, function) == 0 && s->bind == BIND_COMM && s->calls == calls && s->bytes == bytes;
}

static __attribute__((noinline)) void *sends(void *unused)
{
	CHECK(MPI_Send(0, 3, 2, 0x600) == 0);
	return unused;
}

void test_calls_have_the_place_they_are_made_from(void)
{
	uint32_t comm, other;
	const struct source_site *s[8];
	uint64_t time[DISTRIBUTION_ELEMENTS];
	size_t count = 1, made;

	CHECK(source->sites(0, told, &count, &made) == 0 && count == 0 && made == 0); /* not asked for */
	comm = make(BIND_COMM, 0x600);
	CHECK(MPI_Send(0, 1, 1, 0x600) == 0);
	count_sites(true);
	CHECK(on(comm, s, 8) == 0);
	for (int i = 0; i < 5; i++) {
		CHECK(MPI_Send(0, i, 10, 0x600) == 0);
		CHECK(MPI_Sendrecv(0, 4, 8, 0x600) == 0 || i > 0);
	}
	CHECK(MPI_Send(0, 100, 1, 0x600) == 0);
	fake_answer = 3;
	CHECK(MPI_Send(0, 100, 1, 0x600) == 3); /* counts, without bytes */
	fake_answer = 0;
	CHECK(on(comm, s, 8) == 4);
	CHECK(is(s[0], "MPI_Send", 5, 100) && is(s[1], "MPI_Sendrecv", 5, 5 * s[1]->bytes / 5) && s[1]->bytes > 0);
	CHECK(is(s[2], "MPI_Send", 1, 100) && is(s[3], "MPI_Send", 1, 0));
	for (int i = 0; i < 3; i++)
		CHECK(s[i]->from != s[3]->from && s[i]->from / 4096 - s[3]->from / 4096 + 1 <= 2);
	CHECK(calls("MPI_Send", comm) == 1 + 5 + 1 + 1 && told[0].calls == 0);
	source->read(variable("mpit_call_time_MPI_Sendrecv"), comm, time);
	CHECK(s[1]->time_ns / 1000 <= (time[0] + 1) * 1000000 / (1 << 30) + 1);

	/* Switched off, and while others come and go; of a gone one it stays. */
	source->measure(false);
	CHECK(MPI_Send(0, 1, 1, 0x600) == 0);
	source->measure(true);
	CHECK(on(comm, s, 8) == 4);
	other = make(BIND_COMM, 0x601);
	for (int i = 0; i < 3; i++) {
		CHECK(MPI_Send(0, 1, 1, 0x601) == 0);
		freed(BIND_COMM, 0x601, other);
		CHECK(on(other, s, 8) == 1 && is(s[0], "MPI_Send", 1, 1));
		other = make(BIND_COMM, 0x601);
	}
	CHECK(on(other, s, 8) == 0);
	freed(BIND_COMM, 0x601, other);

	/* Threads have their own. */
	in_a_thread(sends, NULL);
	sends(NULL);
	CHECK(on(comm, s, 8) >= 5 && told_count > 1);
	freed(BIND_COMM, 0x600, comm);
	count_sites(false);
}

void test_places_of_messages_have_their_peers(void)
{
	const struct source_site *s[8];
	uint64_t all = 0;
	uint32_t comm;

	calls_state.peers = true;
	fake_rank_count = 2;
	fake_ranks[0] = 3;
	fake_ranks[1] = 7;
	comm = make(BIND_COMM, 0x603);
	count_sites(true);
	for (int i = 0; i < 4; i++)
		CHECK(MPI_Send(i % 2, 10, 1, 0x603) == 0 && MPI_Bcast(1, 1, 1, 0x603) == 0);
	CHECK(on(comm, s, 8) == 3);
	CHECK(is(s[0], "MPI_Send", 2, 20) && s[0]->peer == 3 && is(s[2], "MPI_Send", 2, 20) && s[2]->peer == 7);
	CHECK(is(s[1], "MPI_Bcast", 4, 4) && s[1]->peer == NO_PEER);

	/* With too many peers the place is known, without them. */
	for (unsigned i = 0; i < SITES; i++)
		CHECK(MPI_Send((intptr_t)i, 1, 1, 0x603) == 0);
	look();
	for (size_t i = 1; i < told_count; i++)
		if (told[i].object == comm)
			all += told[i].calls;
	CHECK(all == 4 + 4 + SITES && told[0].calls == 0);
	CHECK(calls_thread.block->sites_used <= SITES_MOST / 2 + 2);
	freed(BIND_COMM, 0x603, comm);
	count_sites(false);
	calls_state.peers = false;
	fake_rank_count = 0;
}

/* ---- behind a binding ---- */

static uint32_t frame_bytes;

static __attribute__((noinline, noclone)) int binds(void)
{
	int answer = MPI_Send(0, 1, 5, 0x602);

	/* The stack pointer in the call, which is where its wrapper's frame begins, up to where this one does. */
	frame_bytes = (uint32_t)((uintptr_t)__builtin_dwarf_cfa() - atomic_load(&calls_thread.under_way->frame));
	return answer;
}

static __attribute__((noinline, noclone)) int binds_too(void)
{
	return binds() + 1;
}

void test_calls_through_a_binding_have_the_programs_place(void)
{
	uint32_t comm = make(BIND_COMM, 0x602);
	const struct source_site *s[8];

	count_sites(true);
	CHECK(binds() == 0 && binds() == 0);
	CHECK(on(comm, s, 8) == 1 && s[0]->calls == 2 && atomic_load(s[0]->frame) == 0);
	atomic_store(s[0]->frame, SITE_HERE);
	CHECK(binds() == 0 && on(comm, s, 8) == 1 && s[0]->calls == 3);
#if defined __x86_64__
	atomic_store(s[0]->frame, SITE_HERE | SITE_BINDING | SITE_FRAME(frame_bytes, 0));
	for (int i = 0; i < 4; i++)
		CHECK(binds() == 0);
	CHECK(binds_too() == 1);
	CHECK(on(comm, s, 8) == 3 && s[0]->calls == 3);
	CHECK(is(s[1], "MPI_Send", 4, 20) && is(s[2], "MPI_Send", 1, 5) && s[1]->from != s[2]->from);
#endif
	/* What can't be a frame on this stack. */
	atomic_store(s[0]->frame, SITE_HERE | SITE_BINDING | SITE_FRAME(0, 64));
	CHECK(binds() == 0 && on(comm, s, 8) >= 1 && s[0]->calls == 4);
	atomic_store(s[0]->frame, SITE_HERE | SITE_BINDING | SITE_BY_POINTER | SITE_FRAME(16, 16));
	CHECK(binds() == 0 && on(comm, s, 8) >= 1 && s[0]->calls == 5); /* no pointer is known without stacks */
	freed(BIND_COMM, 0x602, comm);
	count_sites(false);
}

/* ---- what has called that ---- */

#if defined __x86_64__
/* As the reader says it of code with frame pointers, as this is. */
#define WITH_POINTER (SITE_HERE | SITE_BY_POINTER | SITE_FRAME(16, 16))

static __attribute__((noinline, noclone)) int sends_far(int deep)
{
	int answer = deep == 0 ? MPI_Send(0, 1, 5, 0x604) : sends_far(deep - 1);

	__asm__ volatile("" ::: "memory");
	return answer;
}

static __attribute__((noinline, noclone)) int sends_from_elsewhere(void)
{
	return sends_far(0) + 1;
}

static void *calls_with_their_callers(void *unused)
{
	uint32_t comm = make(BIND_COMM, 0x604);
	const struct source_site *s[8];
	uint64_t all = 0;

	calls_state.stacks = true;
	count_sites(true);
	CHECK(sends_far(0) == 0 && on(comm, s, 8) == 1 && s[0]->of == 0 && s[0]->deeper);
	for (int i = 0; i < 3; i++) {
		look();
		for (size_t k = 1; k < told_count; k++)
			if (told[k].object == comm && i < 2)
				atomic_store(told[k].frame, WITH_POINTER);
		CHECK(sends_far(1) == 0);
	}
	/* One at the place itself; then as much of the stack as was known, of which no part counts twice. */
	CHECK(on(comm, s, 8) == 3 && s[0]->of == 0 && s[1]->of == s[0]->number && s[2]->of == s[1]->number);
	CHECK(is(s[0], "MPI_Send", 1, 5) && is(s[1], "MPI_Send", 1, 5) && is(s[2], "MPI_Send", 2, 10));
	CHECK(s[1]->from != s[0]->from && s[2]->from != s[1]->from);

	CHECK(sends_from_elsewhere() == 1 && on(comm, s, 8) == 4 && s[3]->of == s[0]->number && s[3]->from != s[1]->from);

	/* Where there is no room for more callers it counts at the last one. */
	for (int i = 0; i < 2 * (int)SITES; i++) {
		look();
		for (size_t k = 1; k < told_count; k++)
			if (told[k].object == comm)
				atomic_store(told[k].frame, WITH_POINTER);
		CHECK(sends_far(i % 14) == 0);
	}
	look();
	for (size_t i = 1; i < told_count; i++)
		if (told[i].object == comm) {
			all += told[i].calls;
			CHECK(told[i].of < told[i].number);
		}
	CHECK(all == 5 + 2 * SITES && told[0].calls == 0 && calls_thread.block->sites_used <= SITES_MOST / 2 + 1);
	freed(BIND_COMM, 0x604, comm);
	count_sites(false);
	calls_state.stacks = false;
	return unused;
}
#endif

/* In a thread, whose table has room. */
void test_calls_have_their_callers(void)
{
#if defined __x86_64__
	in_a_thread(calls_with_their_callers, NULL);
#endif
}

/* ---- bounds ---- */

static void *returns_here(void *call)
{
	call_returns(call, SENDING);
	call_counts(call, 7, 0);
	return NULL;
}

void test_what_finds_no_place_is_counted_together(void)
{
	static uint32_t numbers[SITES];
	struct call c;
	uint64_t all = 0, before;
	size_t places = 0;

	count_sites(true);
	look();
	CHECK(told[0].calls == 0);
	for (unsigned i = 0; i < SITES; i++)
		numbers[i] = make(BIND_COMM, 0x20000 + (intptr_t)i);
	for (unsigned round = 0; round < 3; round++)
		for (unsigned i = 0; i < SITES; i++)
			CHECK(MPI_Isend(0, 2, 2, 0x20000 + (intptr_t)i) == 0);
	look();
	for (size_t i = 1; i < told_count; i++)
		if (told[i].object >= numbers[0]) {
			places++;
			all += told[i].calls;
			CHECK(told[i].calls == 3 && told[i].bytes == 12);
		}
	CHECK(calls_thread.block->sites_used == SITES_MOST && places > SITES / 4 && places < SITES_MOST);
	CHECK(told[0].calls == 3 * SITES - all && told[0].bytes == 4 * told[0].calls);

	/* Counted where it began, but from where isn't known. */
	before = told[0].calls;
	CHECK(call_begins(&c, FUNCTION_MPI_Isend, BIND_COMM, 0x20000, UNORDERED, 0, __builtin_dwarf_cfa()));
	in_a_thread(returns_here, &c);
	calls_thread.mark = NULL;
	look();
	CHECK(told[0].calls == before + 1 && calls("MPI_Isend", numbers[0]) == 4);
	for (unsigned i = 0; i < SITES; i++)
		freed(BIND_COMM, 0x20000 + (intptr_t)i, numbers[i]);
	count_sites(false);
}

enum { THREADS = 4, SENDS = 20000 };

static void *sends_often(void *unused)
{
	for (int i = 0; i < SENDS; i++)
		CHECK((i % 2 == 0 ? MPI_Send(0, 1, 1, 0x603) : MPI_Irecv(0, 1, 1, 0x603)) == 0);
	return unused;
}

static uint64_t calls_on(uint32_t object)
{
	uint64_t all = 0;

	look();
	for (size_t i = 1; i < told_count; i++)
		all += told[i].object == object ? told[i].calls : 0;
	return all;
}

void test_sites_of_threads(void)
{
	uint32_t comm = make(BIND_COMM, 0x603);
	pthread_t threads[THREADS];
	uint64_t last = 0;

	count_sites(true);
	look();
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, sends_often, NULL) == 0);
	for (int i = 0; i < 100; i++) {
		uint64_t now = calls_on(comm);

		CHECK(now >= last && now <= THREADS * SENDS);
		last = now;
	}
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	CHECK(calls_on(comm) == THREADS * SENDS);
	freed(BIND_COMM, 0x603, comm);
	count_sites(false);
}
