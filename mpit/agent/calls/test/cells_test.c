/* cells_test.c - cells are finite. */
#define _GNU_SOURCE
#include "test.h"

void test_cells_of_gone_objects_are_used_again(void)
{
	uint32_t stays = make(BIND_COMM, 0x500);
	uint64_t unnamed = 0, sizes[DISTRIBUTION_ELEMENTS];

	CHECK(MPI_Send(0, 1, 1, 0x599) == 0);
	unnamed = calls("MPI_Send", 0);
	for (unsigned i = 0; i < 20 * CELLS; i++) {
		uint32_t passes = make(BIND_COMM, 0x501);

		CHECK(MPI_Send(0, 1, i, 0x501) == 0 && MPI_Barrier(0, 0, 0, 0x501) == 0 && MPI_Send(0, 1, 1, 0x500) == 0);
		/* From zero, whatever the cell held. */
		CHECK(calls("MPI_Send", passes) == 1 && bytes("mpit_call_bytes_sent_MPI_Send", passes) == i &&
		      calls("MPI_Barrier", passes) == 1);
		source->read(variable("mpit_call_size_MPI_Send"), passes, sizes);
		CHECK(sizes[0] == i && sizes[1] == (i <= 1) && sizes[2] == (i == 2));
		freed(BIND_COMM, 0x501, passes);
	}
	CHECK(calls("MPI_Send", stays) == 20 * CELLS && calls("MPI_Send", 0) == unnamed);
	/* Memory stays near what lives. */
	CHECK(atomic_load(&calls_thread.block->used) < CELLS / 2);
	freed(BIND_COMM, 0x500, stays);
}

void test_a_full_block_counts_on_object_0(void)
{
	static uint32_t numbers[2 * CELLS];
	uint64_t before, named = 0;

	CHECK(MPI_Isend(0, 1, 1, 0x599) == 0);
	before = calls("MPI_Isend", 0);
	for (unsigned i = 0; i < 2 * CELLS; i++)
		numbers[i] = make(BIND_COMM, 0x10000 + (intptr_t)i);
	for (unsigned round = 0; round < 2; round++)
		for (unsigned i = 0; i < 2 * CELLS; i++)
			CHECK(MPI_Isend(0, 1, 3, 0x10000 + (intptr_t)i) == 0);
	for (unsigned i = 0; i < 2 * CELLS; i++)
		named += calls("MPI_Isend", numbers[i]);
	/* All that could have one have one, and nothing is lost. */
	CHECK(named == 2 * (CELLS - 1) && calls("MPI_Isend", 0) == before + 4 * CELLS - named);
	/* As soon as one goes there is room for another. */
	CHECK(calls("MPI_Isend", numbers[0]) == 2 && calls("MPI_Isend", numbers[2 * CELLS - 1]) == 0);
	freed(BIND_COMM, 0x10000, numbers[0]);
	CHECK(MPI_Isend(0, 1, 3, 0x10000 + 2 * CELLS - 1) == 0 && calls("MPI_Isend", numbers[2 * CELLS - 1]) == 1);
	CHECK(calls("MPI_Isend", numbers[1]) == 2);
	for (unsigned i = 1; i < 2 * CELLS; i++)
		freed(BIND_COMM, 0x10000 + (intptr_t)i, numbers[i]);
}
