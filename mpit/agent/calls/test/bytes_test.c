/*
 * bytes_test.c - each rule of bytes.c, in every part that a process may have. What a process must not read is
 * GARBAGE: a datatype of that name ends the test, an address of that name crashes it.
 */
#include "generated_test.h"

#define NO_COUNTS int_counts(GARBAGE)
#define GARBAGE_COUNT 1000003

static struct call call;

static const struct place
	root_of_four = { .rank = 2, .size = 4 },
	one_of_four = { .rank = 1, .size = 4 },
	/* The side of three processes of an intercommunicator, whose other side has five. */
	side_of_three = { .rank = 1, .size = 3, .remote_size = 5, .inter = true };

enum { THE_ROOT = 2 };

#define MOVED(expression, bytes_out, bytes_in)                                          \
	do {                                                                            \
		struct moved moved = expression;                                        \
		CHECK(moved.out == (bytes_out));                                        \
		CHECK(moved.in == (bytes_in));                                          \
	} while (0)

static void test_elements(void)
{
	CHECK(bytes_of(3, DOUBLE) == 24);
	CHECK(bytes_of((int64_t)3 << 40, INT) == (uint64_t)12 << 40);
	/* Of no elements the type may be anything. */
	CHECK(bytes_of(0, GARBAGE) == 0);
	CHECK(bytes_of(-1, GARBAGE) == 0);
	CHECK(is_peer(0) && is_peer(AT_ROOT) && !is_peer(PROC_NULL));
}

static void test_status(void)
{
	uint64_t known[3] = { 17 }, marked[3] = { 17, 0x7f5500000000 };
	union own_status own;

	CHECK(bytes_in_status((intptr_t)known) == 17);
	/* As Open MPI leaves it. */
	CHECK(bytes_in_status((intptr_t)marked) == 17);
	CHECK(status_or_own((intptr_t)known, &own) == (intptr_t)known);
	/* One of ours tells nothing until the library has filled it in. */
	own.words[0] = 5;
	CHECK(status_or_own(STATUS_IGNORE, &own) == (intptr_t)&own);
	CHECK(bytes_in_status((intptr_t)&own) == 0);
	CHECK(calls_abi->status_size <= sizeof own);
}

static void test_no_op(void)
{
	/* Handles of the two libraries: an int with anything above it, a pointer. */
	fake_abi(true);
	CHECK(!reads_origin(NO_OP));
	CHECK(!reads_origin((intptr_t)(0xdead00000000 | NO_OP)));
	CHECK(reads_origin(NO_OP + 1));
	fake_abi(false);
	CHECK(!reads_origin(NO_OP));
	CHECK(reads_origin((intptr_t)(0xdead00000000 | NO_OP)));
}

static void test_bcast(void)
{
	fake_place = root_of_four;
	MOVED(bytes_bcast(&call, 10, INT, THE_ROOT), 40, 0);
	fake_place = one_of_four;
	MOVED(bytes_bcast(&call, 10, INT, THE_ROOT), 0, 40);
	fake_place = side_of_three;
	MOVED(bytes_bcast(&call, 10, INT, AT_ROOT), 40, 0);
	MOVED(bytes_bcast(&call, GARBAGE_COUNT, GARBAGE, PROC_NULL), 0, 0);
	/* The root is on the other side, where its rank may be that of this process. */
	MOVED(bytes_bcast(&call, 10, INT, 1), 0, 40);
}

static void test_gather(void)
{
	fake_place = root_of_four;
	MOVED(bytes_gather(&call, 0, 6, INT, 3, DOUBLE, THE_ROOT), 24, 96);
	MOVED(bytes_gather(&call, IN_PLACE, GARBAGE_COUNT, GARBAGE, 3, DOUBLE, THE_ROOT), 24, 96);
	fake_place = one_of_four;
	MOVED(bytes_gather(&call, 0, 6, INT, GARBAGE_COUNT, GARBAGE, THE_ROOT), 24, 0);
	fake_place = side_of_three;
	MOVED(bytes_gather(&call, GARBAGE, GARBAGE_COUNT, GARBAGE, 3, DOUBLE, AT_ROOT), 0, 120);
	MOVED(bytes_gather(&call, GARBAGE, GARBAGE_COUNT, GARBAGE, GARBAGE_COUNT, GARBAGE, PROC_NULL), 0, 0);
	MOVED(bytes_gather(&call, 0, 6, INT, GARBAGE_COUNT, GARBAGE, 1), 24, 0);
}

static void test_gatherv(void)
{
	const int ints[] = { 1, 0, 5, 2 };
	const int64_t wides[] = { 1, 0, (int64_t)5 << 32, 2 }, of_five[] = { 1, 1, 1, 1, 6 };

	fake_place = root_of_four;
	MOVED(bytes_gatherv(&call, 0, 10, INT, int_counts((intptr_t)ints), DOUBLE, THE_ROOT), 40, 64);
	MOVED(bytes_gatherv(&call, IN_PLACE, GARBAGE_COUNT, GARBAGE, int_counts((intptr_t)ints), DOUBLE, THE_ROOT), 40, 64);
	MOVED(bytes_gatherv(&call, IN_PLACE, GARBAGE_COUNT, GARBAGE, wide_counts((intptr_t)wides), INT, THE_ROOT),
	      (uint64_t)20 << 32, ((uint64_t)20 << 32) + 12);
	fake_place = one_of_four;
	MOVED(bytes_gatherv(&call, 0, 10, INT, NO_COUNTS, GARBAGE, THE_ROOT), 40, 0);
	fake_place = side_of_three;
	MOVED(bytes_gatherv(&call, GARBAGE, GARBAGE_COUNT, GARBAGE, wide_counts((intptr_t)of_five), INT, AT_ROOT), 0, 40);
	MOVED(bytes_gatherv(&call, GARBAGE, GARBAGE_COUNT, GARBAGE, NO_COUNTS, GARBAGE, PROC_NULL), 0, 0);
	MOVED(bytes_gatherv(&call, 0, 10, INT, NO_COUNTS, GARBAGE, 1), 40, 0);
}

static void test_scatter(void)
{
	fake_place = root_of_four;
	MOVED(bytes_scatter(&call, 3, DOUBLE, 0, 6, INT, THE_ROOT), 96, 24);
	MOVED(bytes_scatter(&call, 3, DOUBLE, IN_PLACE, GARBAGE_COUNT, GARBAGE, THE_ROOT), 96, 24);
	fake_place = one_of_four;
	MOVED(bytes_scatter(&call, GARBAGE_COUNT, GARBAGE, 0, 6, INT, THE_ROOT), 0, 24);
	fake_place = side_of_three;
	MOVED(bytes_scatter(&call, 3, DOUBLE, GARBAGE, GARBAGE_COUNT, GARBAGE, AT_ROOT), 120, 0);
	MOVED(bytes_scatter(&call, GARBAGE_COUNT, GARBAGE, GARBAGE, GARBAGE_COUNT, GARBAGE, PROC_NULL), 0, 0);
	MOVED(bytes_scatter(&call, GARBAGE_COUNT, GARBAGE, 0, 6, INT, 1), 0, 24);
}

static void test_scatterv(void)
{
	const int ints[] = { 1, 0, 5, 2 }, of_five[] = { 1, 1, 1, 1, 6 };

	fake_place = root_of_four;
	MOVED(bytes_scatterv(&call, int_counts((intptr_t)ints), DOUBLE, 0, 10, INT, THE_ROOT), 64, 40);
	MOVED(bytes_scatterv(&call, int_counts((intptr_t)ints), DOUBLE, IN_PLACE, GARBAGE_COUNT, GARBAGE, THE_ROOT), 64, 40);
	fake_place = one_of_four;
	MOVED(bytes_scatterv(&call, NO_COUNTS, GARBAGE, 0, 10, INT, THE_ROOT), 0, 40);
	fake_place = side_of_three;
	MOVED(bytes_scatterv(&call, int_counts((intptr_t)of_five), INT, GARBAGE, GARBAGE_COUNT, GARBAGE, AT_ROOT), 40, 0);
	MOVED(bytes_scatterv(&call, NO_COUNTS, GARBAGE, GARBAGE, GARBAGE_COUNT, GARBAGE, PROC_NULL), 0, 0);
	MOVED(bytes_scatterv(&call, NO_COUNTS, GARBAGE, 0, 10, INT, 1), 0, 40);
}

static void test_allgather(void)
{
	const int ints[] = { 1, 7, 5, 2 }, of_five[] = { 1, 1, 1, 1, 6 };

	fake_place = one_of_four;
	MOVED(bytes_allgather(&call, 0, 6, INT, 3, DOUBLE), 24, 96);
	MOVED(bytes_allgather(&call, IN_PLACE, GARBAGE_COUNT, GARBAGE, 3, DOUBLE), 24, 96);
	MOVED(bytes_allgatherv(&call, 0, 14, INT, int_counts((intptr_t)ints), DOUBLE), 56, 120);
	MOVED(bytes_allgatherv(&call, IN_PLACE, GARBAGE_COUNT, GARBAGE, int_counts((intptr_t)ints), DOUBLE), 56, 120);
	/* What comes in is of the other side; one side may send nothing at all. */
	fake_place = side_of_three;
	MOVED(bytes_allgather(&call, 0, 6, INT, 3, DOUBLE), 24, 120);
	MOVED(bytes_allgather(&call, 0, 0, GARBAGE, 3, DOUBLE), 0, 120);
	MOVED(bytes_allgatherv(&call, 0, 14, INT, int_counts((intptr_t)of_five), INT), 56, 40);
}

static void test_alltoall(void)
{
	const int out[] = { 1, 0, 5, 2 }, in[] = { 0, 3, 0, 0 };
	const int64_t wide_out[] = { 1, 0, 5, 2 }, wide_in[] = { 0, (int64_t)3 << 32, 0, 0 };
	const int out_to_five[] = { 1, 1, 1, 1, 1 }, in_from_five[] = { 0, 0, 0, 0, 2 };

	fake_place = one_of_four;
	MOVED(bytes_alltoall(&call, 0, 6, INT, 3, DOUBLE), 96, 96);
	MOVED(bytes_alltoall(&call, IN_PLACE, GARBAGE_COUNT, GARBAGE, 3, DOUBLE), 96, 96);
	MOVED(bytes_alltoallv(&call, 0, int_counts((intptr_t)out), INT, int_counts((intptr_t)in), DOUBLE), 32, 24);
	MOVED(bytes_alltoallv(&call, IN_PLACE, NO_COUNTS, GARBAGE, int_counts((intptr_t)in), DOUBLE), 24, 24);
	MOVED(bytes_alltoallv(&call, 0, wide_counts((intptr_t)wide_out), INT, wide_counts((intptr_t)wide_in), INT), 32,
	      (uint64_t)12 << 32);
	fake_place = side_of_three;
	MOVED(bytes_alltoall(&call, 0, 6, INT, 3, DOUBLE), 120, 120);
	MOVED(bytes_alltoallv(&call, 0, int_counts((intptr_t)out_to_five), INT, int_counts((intptr_t)in_from_five),
			      DOUBLE), 20, 16);
}

/* Arrays of handles, of which those with nothing to exchange may be anything. */
static void test_alltoallw(void)
{
	const int out[] = { 1, 0, 5, 2 }, in[] = { 0, 3, 0, 0 };
	const int64_t wide_out[] = { 1, 0, 5, 2 };
	const int out_ints[] = { INT, -1, PAIR, DOUBLE }, in_ints[] = { -1, DOUBLE, -1, -1 };
	const intptr_t out_pointers[] = { INT, GARBAGE, PAIR, DOUBLE }, in_pointers[] = { GARBAGE, DOUBLE, GARBAGE, GARBAGE };

	fake_place = one_of_four;
	fake_abi(true);
	MOVED(bytes_alltoallw(&call, 0, int_counts((intptr_t)out), (intptr_t)out_ints, int_counts((intptr_t)in),
			      (intptr_t)in_ints), 80, 24);
	MOVED(bytes_alltoallw(&call, IN_PLACE, NO_COUNTS, GARBAGE, int_counts((intptr_t)in), (intptr_t)in_ints), 24, 24);
	fake_abi(false);
	MOVED(bytes_alltoallw(&call, 0, wide_counts((intptr_t)wide_out), (intptr_t)out_pointers,
			      int_counts((intptr_t)in), (intptr_t)in_pointers), 80, 24);
	/* With nothing to exchange at all there may be no types. */
	MOVED(bytes_alltoallw(&call, 0, int_counts((intptr_t)(const int[4]){ 0 }), GARBAGE, int_counts((intptr_t)in),
			      (intptr_t)in_pointers), 0, 24);
	fake_place = (struct place){ .rank = 0, .size = 1, .remote_size = 4, .inter = true };
	MOVED(bytes_alltoallw(&call, 0, int_counts((intptr_t)out), (intptr_t)out_pointers, int_counts((intptr_t)in),
			      (intptr_t)in_pointers), 80, 24);
}

static void test_reductions(void)
{
	const int counts[] = { 1, 7, 5, 2 };
	const int64_t wides[] = { 1, 7, 5, 2 };

	fake_place = root_of_four;
	MOVED(bytes_reduce(&call, 10, INT, THE_ROOT), 40, 40);
	fake_place = one_of_four;
	MOVED(bytes_reduce(&call, 10, INT, THE_ROOT), 40, 0);
	MOVED(bytes_allreduce(&call, 10, INT), 40, 40);
	MOVED(bytes_scan(&call, 10, INT), 40, 40);
	MOVED(bytes_reduce_scatter(&call, int_counts((intptr_t)counts), INT), 60, 28);
	MOVED(bytes_reduce_scatter(&call, wide_counts((intptr_t)wides), INT), 60, 28);
	MOVED(bytes_reduce_scatter_block(&call, 5, INT), 80, 20);
	fake_place = side_of_three;
	MOVED(bytes_reduce(&call, 10, INT, AT_ROOT), 0, 40);
	MOVED(bytes_reduce(&call, GARBAGE_COUNT, GARBAGE, PROC_NULL), 0, 0);
	MOVED(bytes_reduce(&call, 10, INT, 1), 40, 0);
	MOVED(bytes_allreduce(&call, 10, INT), 40, 40);
	/* The counts are of this side's processes. */
	MOVED(bytes_reduce_scatter(&call, int_counts((intptr_t)counts), INT), 52, 28);
	MOVED(bytes_reduce_scatter_block(&call, 5, INT), 60, 20);
}

static void test_neighbours(void)
{
	const int to[] = { 4 }, from[] = { 1, 0, 2 };
	const int64_t wide_from[] = { 1, 0, 2 };
	const intptr_t to_types[] = { PAIR }, from_types[] = { INT, GARBAGE, DOUBLE };

	fake_abi(false);
	fake_place = (struct place){ .rank = 1, .size = 4, .indegree = 3, .outdegree = 1 };
	MOVED(bytes_neighbor_allgather(&call, 2, INT, 1, DOUBLE), 8, 24);
	MOVED(bytes_neighbor_allgatherv(&call, 2, INT, int_counts((intptr_t)from), DOUBLE), 8, 24);
	MOVED(bytes_neighbor_alltoall(&call, 2, INT, 1, DOUBLE), 8, 24);
	MOVED(bytes_neighbor_alltoallv(&call, int_counts((intptr_t)to), INT, wide_counts((intptr_t)wide_from), DOUBLE),
	      16, 24);
	MOVED(bytes_neighbor_alltoallw(&call, int_counts((intptr_t)to), (intptr_t)to_types, int_counts((intptr_t)from),
				       (intptr_t)from_types), 48, 20);
	fake_place.outdegree = 2;
	MOVED(bytes_neighbor_allgather(&call, 2, INT, 1, DOUBLE), 8, 24);
	MOVED(bytes_neighbor_alltoall(&call, 2, INT, 1, DOUBLE), 16, 24);
	/* Without neighbours nothing is read. */
	fake_place = (struct place){ .rank = 1, .size = 4 };
	MOVED(bytes_neighbor_allgather(&call, GARBAGE_COUNT, GARBAGE, GARBAGE_COUNT, GARBAGE), 0, 0);
	MOVED(bytes_neighbor_allgatherv(&call, GARBAGE_COUNT, GARBAGE, NO_COUNTS, GARBAGE), 0, 0);
	MOVED(bytes_neighbor_alltoall(&call, GARBAGE_COUNT, GARBAGE, GARBAGE_COUNT, GARBAGE), 0, 0);
	MOVED(bytes_neighbor_alltoallv(&call, NO_COUNTS, GARBAGE, NO_COUNTS, GARBAGE), 0, 0);
	MOVED(bytes_neighbor_alltoallw(&call, NO_COUNTS, GARBAGE, NO_COUNTS, GARBAGE), 0, 0);
}

/* Counts that make no sense, and a communicator that can't be asked: nothing is counted, and nothing read that isn't
 * there. */
static void test_nonsense(void)
{
	const int counts[] = { -5, -1, 1 };

	fake_place = (struct place){ .rank = 0, .size = 3 };
	MOVED(bytes_allgatherv(&call, IN_PLACE, GARBAGE_COUNT, GARBAGE, int_counts((intptr_t)counts), INT), 0, 4);
	fake_place = (struct place){ .size = 0 };
	MOVED(bytes_allgatherv(&call, IN_PLACE, GARBAGE_COUNT, GARBAGE, NO_COUNTS, GARBAGE), 0, 0);
	MOVED(bytes_alltoallw(&call, 0, NO_COUNTS, GARBAGE, NO_COUNTS, GARBAGE), 0, 0);
	MOVED(bytes_reduce_scatter(&call, NO_COUNTS, GARBAGE), 0, 0);
	MOVED(bytes_reduce_scatter_block(&call, 0, GARBAGE), 0, 0);
	MOVED(bytes_neighbor_alltoallv(&call, NO_COUNTS, GARBAGE, NO_COUNTS, GARBAGE), 0, 0);
}

void test_bytes(void)
{
	fake_abi(false);
	test_elements();
	test_status();
	test_no_op();
	test_bcast();
	test_gather();
	test_gatherv();
	test_scatter();
	test_scatterv();
	test_allgather();
	test_alltoall();
	test_alltoallw();
	test_reductions();
	test_neighbours();
	test_nonsense();
}
