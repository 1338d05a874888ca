/* sizes_test.c - how large the buffers of calls are. */
#define _GNU_SOURCE
#include "test.h"

#include <string.h>

static uint64_t elements[DISTRIBUTION_ELEMENTS];

/* How many calls of a function had a size; what has been counted of them stays in elements. */
static uint64_t sized(const char *function, uint32_t object)
{
	uint64_t all = 0;
	char name[64];

	snprintf(name, sizeof name, "mpit_call_size_%s", function);
	source->read(variable(name), object, elements);
	for (size_t i = 1; i < DISTRIBUTION_ELEMENTS; i++)
		all += elements[i];
	return all;
}

void test_a_size_goes_into_its_bucket(void)
{
	static const struct {
		uint64_t bytes;
		unsigned bucket;
	} sizes[] = {
		{ 0, 0 }, { 1, 0 }, { 2, 1 }, { 3, 2 }, { 4, 2 }, { 5, 3 }, { 8, 3 }, { 1024, 10 }, { 1025, 11 },
		{ (uint64_t)1 << 42, 42 }, /* 4 TiB */
		{ ((uint64_t)1 << 42) + 1, 43 }, { (uint64_t)1 << 62, 43 },
	};
	uint64_t before[DISTRIBUTION_ELEMENTS], sum = 0;

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		uint32_t comm = make(BIND_COMM, 0x100);

		CHECK(MPI_Send(0, (intptr_t)sizes[i].bytes, 1, 0x100) == 0);
		CHECK(sized("MPI_Send", comm) == 1 && elements[0] == sizes[i].bytes);
		CHECK(elements[1 + sizes[i].bucket] == 1);
		freed(BIND_COMM, 0x100, comm);
	}
	/* They add up. */
	sized("MPI_Send", 0);
	for (size_t i = 0; i < DISTRIBUTION_ELEMENTS; i++)
		before[i] = elements[i];
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		CHECK(MPI_Send(0, (intptr_t)sizes[i].bytes, 1, 0x999) == 0);
		sum += sizes[i].bytes;
	}
	sized("MPI_Send", 0);
	CHECK(elements[0] - before[0] == sum && elements[1] - before[1] == 2 && elements[1 + 43] - before[1 + 43] == 2);
}

void test_a_call_has_one_size(void)
{
	struct source_variable v;
	uint32_t comm = make(BIND_COMM, 0x100);

	/* With bytes in both directions. */
	CHECK(MPI_Sendrecv(0, 3, 8, 0x100) == 0 && sized("MPI_Sendrecv", comm) == 1 && elements[0] == 24);
	CHECK(MPI_Recv(0, 2, 8, 0x100) == 0 && sized("MPI_Recv", comm) == 1 && elements[0] == 16);
	/* Nobody knows what a call has moved that has failed. */
	fake_answer = 15;
	CHECK(MPI_Recv(0, 2, 8, 0x100) == 15 && sized("MPI_Recv", comm) == 1);
	fake_answer = 0;
	/* Calls without a buffer have no sizes. */
	CHECK(MPI_Barrier(0, 0, 0, 0x100) == 0);
	for (size_t i = variable("mpit_call_time_MPI_Barrier") + 1; i < source->count(); i++) {
		source->describe(i, &v);
		CHECK(strcmp(v.name, "mpit_call_size_MPI_Barrier") != 0);
	}
	freed(BIND_COMM, 0x100, comm);
}

void test_sizes_are_counted_if_asked_for(void)
{
	uint32_t comm = make(BIND_COMM, 0x100);

	CHECK(MPI_Send(0, 1, 1, 0x100) == 0);
	calls_state.sizes = false;
	CHECK(MPI_Send(0, 1, 1, 0x100) == 0);
	calls_state.sizes = true;
	CHECK(calls("MPI_Send", comm) == 2 && sized("MPI_Send", comm) == 1);
	freed(BIND_COMM, 0x100, comm);
}

static void *counts_here(void *call)
{
	CHECK(MPI_Send(0, 1, 1, 0x999) == 0); /* it has a block of its own */
	call_returns(call, SENDING);
	call_counts(call, 5, 0);
	call_size(call, 5);
	return NULL;
}

void test_a_size_is_counted_where_its_call_began(void)
{
	uint32_t comm = make(BIND_COMM, 0x100);
	struct call c;

	CHECK(call_begins(&c, FUNCTION_MPI_Send, BIND_COMM, 0x100, UNORDERED, 0, __builtin_dwarf_cfa()));
	in_a_thread(counts_here, &c);
	calls_thread.mark = NULL;
	CHECK(sized("MPI_Send", comm) == 1 && elements[0] == 5 && calls("MPI_Send", comm) == 1);
	/* One that got no memory has none. */
	c.cell = NULL;
	call_size(&c, 5);
	CHECK(sized("MPI_Send", comm) == 1);
	freed(BIND_COMM, 0x100, comm);
}
