/* calls_test.c - what is counted of a call. This is the list of the tests, too; what they share is in test.h. */
#define _GNU_SOURCE
#include "test.h"

#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

const struct source *source;
uint32_t next_object = 1;
_Atomic bool no_memory;

void *__real_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);

void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	return atomic_load(&no_memory) ? MAP_FAILED : __real_mmap(at, bytes, protection, flags, fd, offset);
}

uint32_t make(int kind, intptr_t handle)
{
	source->object_made(kind, (uint64_t)handle, next_object, 0, 1);
	return next_object++;
}

void freed(int kind, intptr_t handle, uint32_t number)
{
	source->object_freed(kind, (uint64_t)handle, number);
}

static void nothing(void *context, size_t variable, uint32_t object)
{
	(void)context;
	(void)variable;
	(void)object;
}

static size_t find_variable(const char *name)
{
	struct source_variable v;

	for (size_t i = 0; i < source->count(); i++) {
		source->describe(i, &v);
		if (strcmp(v.name, name) == 0)
			return i;
	}
	return SIZE_MAX;
}

size_t variable(const char *name)
{
	size_t found = find_variable(name);

	if (found == SIZE_MAX) {
		source->discover(nothing, NULL);
		found = find_variable(name);
	}
	CHECK(found != SIZE_MAX);
	return found;
}

uint64_t bytes(const char *name, uint32_t object)
{
	uint64_t value = UINT64_MAX;

	source->read(variable(name), object, &value);
	return value;
}

uint64_t calls(const char *function, uint32_t object)
{
	uint64_t elements[DISTRIBUTION_ELEMENTS], all = 0;
	char name[64];

	snprintf(name, sizeof name, "mpit_call_time_%s", function);
	source->read(variable(name), object, elements);
	for (size_t i = 1; i < DISTRIBUTION_ELEMENTS; i++)
		all += elements[i];
	return all;
}

static void note(void *context, size_t variable, uint32_t object)
{
	struct told *told = context;

	CHECK(variable < source->count() && told->count < sizeof told->pairs / sizeof *told->pairs);
	told->pairs[told->count].variable = variable;
	told->pairs[told->count++].object = object;
}

void tells(struct told *told)
{
	source->discover(note, told);
}

bool tells_of(const struct told *told, const char *name, uint32_t object)
{
	size_t wanted = find_variable(name), times = 0;

	for (size_t i = 0; i < told->count; i++)
		times += told->pairs[i].variable == wanted && told->pairs[i].object == object;
	CHECK(times <= 1);
	return times == 1;
}

void in_a_thread(void *(*run)(void *), void *argument)
{
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, run, argument) == 0 && pthread_join(thread, NULL) == 0);
}

unsigned block_count(void)
{
	unsigned all = 0;

	for (struct block *b = atomic_load(&blocks); b != NULL; b = b->next)
		all++;
	return all;
}

/* ---- */

void test_calls_and_bytes(void)
{
	uint32_t comm = make(BIND_COMM, 0x100), win = make(BIND_WIN, 0x100), file = make(BIND_FILE, 0x5500000100);
	uint64_t waits = 0;

	CHECK(MPI_Send(0, 10, 8, 0x100) == 0 && PMPI_Send(0, 1, 4, 0x100) == 0);
	/* The upper half of an int's register may be anything. */
	CHECK(MPI_Send(0, 2, 8, 0x7777700000100) == 0);
	CHECK(MPI_Sendrecv(0, 3, 8, 0x100) == 0 && MPI_Barrier(0, 0, 0, 0x100) == 0);
	CHECK(MPI_Put(0, 5, 2, 0x100) == 0);
	CHECK(MPI_File_write(0, 6, 1, 0x5500000100) == 0);
	CHECK(MPI_Wait(0, 0, 0, 4711) == 0);

	CHECK(calls("MPI_Send", comm) == 3 && bytes("mpit_call_bytes_sent_MPI_Send", comm) == 100);
	CHECK(calls("MPI_Send", 0) == 0 && bytes("mpit_call_bytes_sent_MPI_Send", 0) == 0);
	CHECK(bytes("mpit_call_bytes_sent_MPI_Sendrecv", comm) == 24 &&
	      bytes("mpit_call_bytes_received_MPI_Sendrecv", comm) == 24);
	CHECK(calls("MPI_Barrier", comm) == 1);
	/* The handle is the same, the kind is not. */
	CHECK(calls("MPI_Put", win) == 1 && bytes("mpit_call_bytes_sent_MPI_Put", win) == 10 &&
	      bytes("mpit_call_bytes_sent_MPI_Put", comm) == 0);
	CHECK(calls("MPI_File_write", file) == 1 && bytes("mpit_call_bytes_written_MPI_File_write", file) == 6);
	waits = calls("MPI_Wait", 0);
	CHECK(MPI_Wait(0, 0, 0, 4712) == 0 && calls("MPI_Wait", 0) == waits + 1);
	freed(BIND_COMM, 0x100, comm);
	freed(BIND_WIN, 0x100, win);
	freed(BIND_FILE, 0x5500000100, file);
}

void test_a_failed_call_has_no_bytes(void)
{
	uint32_t comm = make(BIND_COMM, 0x100);

	fake_answer = 15;
	CHECK(MPI_Send(0, 10, 8, 0x100) == 15);
	fake_answer = 0;
	CHECK(calls("MPI_Send", comm) == 1 && bytes("mpit_call_bytes_sent_MPI_Send", comm) == 0);
	freed(BIND_COMM, 0x100, comm);
}

/* With a clock that the test turns: a unit a tick. */
void test_a_duration_goes_into_its_bucket(void)
{
	static const uint64_t durations[] = { 0, 1, 2, 3, 4, 5, 1 << 20, ((uint64_t)1 << 42) + 1 };
	uint32_t comm = make(BIND_COMM, 0x100);
	uint64_t elements[DISTRIBUTION_ELEMENTS], sum = 0;
	struct ratio before = calls_state.clock.ratio;
	struct call c;

	calls_state.clock.ratio = ratio_of(1, 1);
	for (size_t i = 0; i < sizeof durations / sizeof *durations; i++) {
		CHECK(call_begins(&c, FUNCTION_MPI_Recv, BIND_COMM, 0x100, UNORDERED, 0, __builtin_dwarf_cfa()));
		call_returns(&c, WAITING);
		c.begin = durations[i];
		call_counts(&c, 0, 7);
		sum += durations[i];
	}
	source->read(variable("mpit_call_time_MPI_Recv"), comm, elements);
	CHECK(elements[0] == sum);
	CHECK(elements[1 + 0] == 2 && elements[1 + 1] == 1 && elements[1 + 2] == 2 && elements[1 + 3] == 1);
	CHECK(elements[1 + 20] == 1 && elements[1 + 43] == 1 && calls("MPI_Recv", comm) == 8);
	CHECK(bytes("mpit_call_bytes_received_MPI_Recv", comm) == 56);
	calls_state.clock.ratio = before;

	/* A clock that runs backwards between two cores. */
	CHECK(call_begins(&c, FUNCTION_MPI_Barrier, BIND_COMM, 0x100, ORDERED, 0, __builtin_dwarf_cfa()));
	c.begin = UINT64_MAX;
	call_returns(&c, IN_COLLECTIVE);
	call_counts(&c, 0, 0);
	source->read(variable("mpit_call_time_MPI_Barrier"), comm, elements);
	CHECK(elements[0] == 0 && elements[1] == 1);
	freed(BIND_COMM, 0x100, comm);
}

static void switch_off(void)
{
	source->measure(false);
}

void test_nothing_is_counted_while_switched_off(void)
{
	uint32_t comm = make(BIND_COMM, 0x100);

	source->measure(false);
	CHECK(MPI_Send(0, 10, 8, 0x100) == 0);
	source->measure(true);
	CHECK(calls("MPI_Send", comm) == 0);
	/* What began before it is switched off is counted: it was measured. */
	fake_inside = switch_off;
	CHECK(MPI_Send(0, 10, 8, 0x100) == 0);
	fake_inside = NULL;
	source->measure(true);
	CHECK(calls("MPI_Send", comm) == 1 && MPI_Send(0, 10, 8, 0x100) == 0 && calls("MPI_Send", comm) == 2);
	freed(BIND_COMM, 0x100, comm);
}

static void *allreduces(void *unused)
{
	CHECK(MPI_Allreduce(0, 1, 1, 0x100) == 0);
	return unused;
}

void test_variables_and_pairs_are_told_of_once(void)
{
	static struct told told, later;
	struct source_variable v;
	uint32_t comm;
	size_t before;

	tells(&told);
	before = source->count();
	comm = make(BIND_COMM, 0x100);
	told.count = 0;
	tells(&told);
	CHECK(told.count == 0); /* nobody has called it */

	CHECK(MPI_Allreduce(0, 1, 1, 0x100) == 0 && MPI_Allreduce(0, 1, 1, 0x999) == 0);
	in_a_thread(allreduces, NULL); /* the same pair in another block */
	tells(&told);
	CHECK(told.count == 8 && source->count() == before + 4);
	CHECK(tells_of(&told, "mpit_call_time_MPI_Allreduce", comm) && tells_of(&told, "mpit_call_time_MPI_Allreduce", 0));
	CHECK(tells_of(&told, "mpit_call_bytes_sent_MPI_Allreduce", comm) &&
	      tells_of(&told, "mpit_call_bytes_received_MPI_Allreduce", comm) &&
	      tells_of(&told, "mpit_call_size_MPI_Allreduce", comm) && tells_of(&told, "mpit_call_size_MPI_Allreduce", 0));
	CHECK(tells_of(&told, "mpit_call_bytes_sent_MPI_Allreduce", 0) &&
	      tells_of(&told, "mpit_call_bytes_received_MPI_Allreduce", 0));
	in_a_thread(allreduces, NULL);
	tells(&later);
	CHECK(later.count == 0);

	source->describe(before, &v);
	CHECK(strcmp(v.name, "mpit_call_time_MPI_Allreduce") == 0 && v.mpi_class == 8 && v.distribution &&
	      v.bind == BIND_COMM && v.verbosity == 1);
	source->describe(before + 1, &v);
	CHECK(strcmp(v.name, "mpit_call_bytes_sent_MPI_Allreduce") == 0 && v.mpi_class == 7 && !v.distribution &&
	      v.bind == BIND_COMM);
	source->describe(before + 3, &v);
	CHECK(strcmp(v.name, "mpit_call_size_MPI_Allreduce") == 0 && v.mpi_class == 7 && v.distribution &&
	      v.bind == BIND_COMM);
	source->describe(0, &v);
	CHECK(strcmp(v.name, "mpit_call_uncounted") == 0 && v.mpi_class == 6 && !v.distribution && v.bind == BIND_NONE);

	/* The next one in the same slot is another one. */
	freed(BIND_COMM, 0x100, comm);
	comm = make(BIND_COMM, 0x100);
	CHECK(MPI_Allreduce(0, 1, 1, 0x100) == 0);
	tells(&later);
	CHECK(later.count == 4 && tells_of(&later, "mpit_call_time_MPI_Allreduce", comm));
	later.count = 0;

	/* An object that has gone before anybody has asked is told of no more. */
	freed(BIND_COMM, 0x100, comm);
	comm = make(BIND_COMM, 0x100);
	CHECK(MPI_Allreduce(0, 1, 1, 0x100) == 0);
	freed(BIND_COMM, 0x100, comm);
	tells(&later);
	CHECK(later.count == 0);
}

static uint64_t sent(intptr_t type)
{
	static uint64_t before;
	uint64_t now, gained;

	CHECK(MPI_Isend(0, 1, type, 0x999) == 0);
	now = bytes("mpit_call_bytes_sent_MPI_Isend", 0);
	gained = now - before;
	before = now;
	return gained;
}

/* As soon as the library has given the handle up another thread may have got it, for a type that is twice as large,
 * and send with it. */
static void is_made_again(void)
{
	atomic_store(&fake_type_factor, 2);
	CHECK(sent(12) == 24);
}

void test_sizes_of_types_are_kept_until_one_is_freed(void)
{
	uint64_t asked = atomic_load(&fake_types_asked);
	int type = 12;

	sent(1);
	asked = atomic_load(&fake_types_asked);
	CHECK(sent(12) == 12 && sent(12) == 12 && atomic_load(&fake_types_asked) == asked + 1);
	CHECK(sent(0x700000000c) == 12 && atomic_load(&fake_types_asked) == asked + 1); /* the upper half */
	CHECK(sent(13) == 13 && sent(12) == 12 && atomic_load(&fake_types_asked) == asked + 2);
	/* The handle is used again for a larger one. */
	fake_frees_type = is_made_again;
	CHECK(MPI_Type_free(&type) == 0);
	fake_frees_type = NULL;
	CHECK(sent(12) == 24 && sent(13) == 26);
	CHECK(sent(FAKE_NULL_TYPE) == 0 && atomic_load(&fake_types_asked) == asked + 4);
	atomic_store(&fake_type_factor, 1);
	CHECK(MPI_Type_free(&type) == 0);
}

static struct place place_in(intptr_t comm)
{
	struct place place;
	struct call c;

	CHECK(call_begins(&c, FUNCTION_MPI_Bcast, BIND_COMM, comm, ORDERED, 0, __builtin_dwarf_cfa()));
	call_returns(&c, IN_COLLECTIVE);
	place = *call_place(&c);
	call_counts(&c, 0, 0);
	return place;
}

/* ---- a type that another thread frees while this one is in a call with it ---- */

static unsigned times_freed;

static void frees_meanwhile(void)
{
	fake_inside = NULL;
	for (unsigned i = 0; i < times_freed; i++) {
		int type = 12;

		CHECK(MPI_Type_free(&type) == 0);
	}
	atomic_store(&fake_type_factor, 1000); /* what the library says of the handle then has nothing to do with the type */
}

static void *frees_it(void *unused)
{
	frees_meanwhile();
	return unused;
}

static void another_frees_it(void)
{
	fake_inside = NULL;
	in_a_thread(frees_it, NULL);
}

static uint64_t sent_while_freed(unsigned times)
{
	times_freed = times;
	fake_inside = another_frees_it;
	return sent(12);
}

#define FREES 20000

/* Rounds, in each of which one thread's call has just used the type and the other may free it. */
static _Atomic unsigned round_begun, round_ended;

static void begins_the_round(void)
{
	fake_inside = NULL;
	atomic_fetch_add(&round_begun, 1);
}

static void gives_the_handle_up(void)
{
	atomic_store(&fake_type_factor, 1000);
}

static void *frees_at_once(void *unused)
{
	int type = 12;

	for (unsigned i = 1; i <= FREES; i++) {
		while (atomic_load(&round_begun) != i)
			sched_yield();
		for (volatile unsigned wait = 0; wait < i % 64; wait++)
			;
		CHECK(MPI_Type_free(&type) == 0);
		atomic_store(&round_ended, i);
	}
	return unused;
}

/* Whichever comes first, the question or the end of the type: the answer is never what the library says afterwards. */
void test_a_type_is_freed_while_its_size_is_asked_for(void)
{
	pthread_t other;
	int type = 12;

	sent(1);
	fake_frees_type = gives_the_handle_up;
	CHECK(pthread_create(&other, NULL, frees_at_once, NULL) == 0);
	for (unsigned i = 1; i <= FREES; i++) {
		fake_inside = begins_the_round;
		CHECK(sent(12) == 12);
		while (atomic_load(&round_ended) != i)
			sched_yield();
		atomic_store(&fake_type_factor, 1);
	}
	CHECK(pthread_join(other, NULL) == 0);
	fake_frees_type = NULL;
	CHECK(MPI_Type_free(&type) == 0);
}

void test_a_type_that_is_freed_during_a_call(void)
{
	intptr_t same_place = 12;
	uint64_t uncounted;

	/* Nobody has asked before, and after the call it is too late. */
	sent(1);
	CHECK(sent_while_freed(1) == 12);
	/* From the next call on the handle stands for another type. */
	CHECK(sent(12) == 12000);
	atomic_store(&fake_type_factor, 1);
	/* Freed, made and freed again: which of the two it was, nobody knows. */
	uncounted = atomic_load(&calls_uncounted);
	CHECK(sent_while_freed(2) == 0 && atomic_load(&calls_uncounted) == uncounted + 1);
	atomic_store(&fake_type_factor, 1);
	/* Others that are freed meanwhile don't matter, nor one that is kept in the same place. */
	while (call_hash(0, ++same_place) != call_hash(0, 12))
		;
	times_freed = 1;
	fake_inside = another_frees_it;
	CHECK(sent(same_place) == 1000 * (uint64_t)same_place);
	atomic_store(&fake_type_factor, 1);
	frees_it(NULL);
	atomic_store(&fake_type_factor, 1);
	CHECK(sent(12) == 12 && sent(13) == 13);
}

void test_places(void)
{
	static const struct {
		int topology, in, out;
	} topologies[] = { { -1, 0, 0 }, { 1, 6, 6 }, { 2, 13, 13 }, { 3, 4, 5 } };
	uint64_t asked = atomic_load(&fake_places_asked);
	struct place p;
	uint32_t comm;

	for (size_t i = 0; i < sizeof topologies / sizeof *topologies; i++) {
		fake_topology = topologies[i].topology;
		source->object_made(BIND_COMM, 0x100, comm = next_object++, 3, 8);
		p = place_in(0x100);
		CHECK(p.rank == 3 && p.size == 8 && !p.inter && p.indegree == topologies[i].in && p.outdegree == topologies[i].out);
		freed(BIND_COMM, 0x100, comm);
	}
	fake_place = (struct place){ .rank = 1, .size = 2, .remote_size = 5, .inter = true };
	source->object_made(BIND_COMM, 0x100, comm = next_object++, 3, 8);
	p = place_in(0x100);
	CHECK(p.rank == 3 && p.size == 8 && p.inter && p.remote_size == 5 && p.indegree == 0);
	CHECK(atomic_load(&fake_places_asked) == asked);
	/* Of one that isn't tracked each call asks: nobody would say that the handle is another's now. */
	p = place_in(0x101);
	CHECK(p.rank == 1 && p.size == 2 && p.inter && p.remote_size == 5);
	fake_place = (struct place){ .rank = 0, .size = 4 };
	fake_topology = -1;
	p = place_in(0x101);
	CHECK(p.rank == 0 && p.size == 4 && !p.inter && p.remote_size == 0 && atomic_load(&fake_places_asked) == asked + 2);
	freed(BIND_COMM, 0x100, comm);
}

int main(void)
{
	static const struct source_mpi nobodys = { .abi = 12, .find = fake_find, .filtered = fake_filtered },
				       mpi = { .abi = 7, .find = fake_find, .filtered = fake_filtered,
					       .calls = "1,sise,sizes,peers,sites" };
	const struct timespec while_calibrating = { .tv_nsec = 30000000 };
	const char *why = NULL;

	nanosleep(&while_calibrating, NULL);
	CHECK(mpit_agent_source(SOURCE_VERSION + 1) == NULL);
	source = mpit_agent_source(SOURCE_VERSION);
	CHECK(!source->begin(&nobodys, &why) && strstr(why, "ABI") != NULL);
	CHECK(MPI_Send(0, 1, 1, 0x999) == 0); /* nobody has switched it on */
	CHECK(source->begin(&mpi, &why) && strstr(why, "\"sise\"") != NULL); /* the rest is measured */
	CHECK(calls_state.peers);
	CHECK(calls_state.sites);
	calls_state.peers = false; /* but for the tests that are about it */
	calls_state.sites = false;
	atomic_store(&calls_state.epoch_at_end, atomic_load(&calls_state.epoch));
	source->measure(true);
	CHECK(source->count() == 1);

	test_words_that_are_asked_for();
	test_buckets_end_where_they_should();
	test_buckets_of_nanoseconds_are_exact();
	test_sums_are_exact_and_never_fall();
	test_the_clocks_agree();
	test_calls_and_bytes();
	test_a_failed_call_has_no_bytes();
	test_a_duration_goes_into_its_bucket();
	test_a_size_goes_into_its_bucket();
	test_a_call_has_one_size();
	test_sizes_are_counted_if_asked_for();
	test_a_size_is_counted_where_its_call_began();
	test_nothing_is_counted_while_switched_off();
	test_variables_and_pairs_are_told_of_once();
	test_sizes_of_types_are_kept_until_one_is_freed();
	test_a_type_that_is_freed_during_a_call();
	test_a_type_is_freed_while_its_size_is_asked_for();
	test_places();
	test_only_the_outermost_call_counts();
	test_a_call_left_by_longjmp_blinds_nobody();
	test_marks_on_other_stacks();
	test_collectives_are_counted_where_they_begin();
	test_numbers_that_are_not_known();
	test_a_collective_that_is_left_is_in_doubt();
	test_what_is_made_after_finalize_has_no_identity();
	test_members_in_another_order_are_others();
	test_a_collective_before_the_world_is_known();
	test_intercommunicators_that_threads_make_at_once();
	test_communicators_are_told_of_when_they_change();
	test_identities_agree();
	test_a_handle_that_is_used_again_is_another_object();
	test_an_untracked_object_is_object_0();
	test_an_object_freed_during_a_call();
	test_objects_are_found_while_others_come_and_go();
	test_the_registry_is_bounded();
	test_cells_of_gone_objects_are_used_again();
	test_a_full_block_counts_on_object_0();
	test_threads_against_a_reader();
	test_a_handle_goes_from_thread_to_thread();
	test_counts_outlive_their_threads();
	test_calls_without_memory_are_counted();
	test_a_child_measures_nothing();
	test_a_call_under_way_is_told();
	test_time_inside_is_that_of_the_calls();
	test_time_inside_by_activity();
	test_polling();
	test_a_pause_is_not_observed();
	test_what_a_longjmp_leaves_under_way();
	test_threads_are_told_apart();
	test_whom_a_call_names();
	test_whose_requests_a_call_waits_for();
	test_requests_are_told_apart_while_they_are_noted();
	test_so_many_threads_are_told_of();
	test_a_threads_end_clears_its_call();
	test_a_call_returns_on_another_thread();
	test_calls_under_way_against_a_reader();
	test_ranks_of_the_world();
	test_tables_are_shared_and_bounded();
	test_peers_have_what_was_sent();
	test_no_place_of_a_peer_ever_falls();
	test_peers_of_threads();
	test_persistent_sends_count_at_each_start();
	test_an_object_freed_while_it_is_sent_on();
	test_calls_have_the_place_they_are_made_from();
	test_places_of_messages_have_their_peers();
	test_calls_through_a_binding_have_the_programs_place();
	test_calls_have_their_callers();
	test_sites_of_threads();
	test_what_finds_no_place_is_counted_together();
	puts("tests of the call profile's runtime: 64 passed, 0 failed");
	return 0;
}
