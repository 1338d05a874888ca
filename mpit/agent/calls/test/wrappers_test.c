/*
 * wrappers_test.c - every generated wrapper: that it passes its arguments on as they are, upper halves included,
 * answers what the next function answers, and measures the call as the function and on the object that the table
 * says; and bytes of some.
 */
#include "generated_test.h"

#include "functions.h"
#include "wrappers.h"

#include <string.h>

/* ---- the MPI library: each function notes its arguments ---- */

enum { MOST = 13 };

static struct {
	const char *function;
	int count;
	intptr_t argument[MOST + 1]; /* from 1 */
} called;

static int answer;            /* what the library answers */
static uint64_t arrived;      /* what it writes into the status at that argument */
static int status_at;
static const char *missing;   /* the function that it lacks */

static int note(int count, const intptr_t *arguments)
{
	CHECK(called.count == -1);
	called.count = count;
	memcpy(&called.argument[1], arguments, (size_t)count * sizeof *arguments);
	CHECK(recorded.returned == 0);
	if (status_at != 0 && called.argument[status_at] != STATUS_IGNORE)
		memcpy((void *)called.argument[status_at], &arrived, sizeof arrived);
	return answer;
}

#define P(n) intptr_t a##n
#define NOTES(n, parameters, ...) \
	static int noted_##n parameters { return note(n, (const intptr_t[]){ __VA_ARGS__ }); }

static int noted_0(void)
{
	return note(0, &(intptr_t){ 0 });
}
NOTES(1, (P(1)), a1)
NOTES(2, (P(1), P(2)), a1, a2)
NOTES(3, (P(1), P(2), P(3)), a1, a2, a3)
NOTES(4, (P(1), P(2), P(3), P(4)), a1, a2, a3, a4)
NOTES(5, (P(1), P(2), P(3), P(4), P(5)), a1, a2, a3, a4, a5)
NOTES(6, (P(1), P(2), P(3), P(4), P(5), P(6)), a1, a2, a3, a4, a5, a6)
NOTES(7, (P(1), P(2), P(3), P(4), P(5), P(6), P(7)), a1, a2, a3, a4, a5, a6, a7)
NOTES(8, (P(1), P(2), P(3), P(4), P(5), P(6), P(7), P(8)), a1, a2, a3, a4, a5, a6, a7, a8)
NOTES(9, (P(1), P(2), P(3), P(4), P(5), P(6), P(7), P(8), P(9)), a1, a2, a3, a4, a5, a6, a7, a8, a9)
NOTES(10, (P(1), P(2), P(3), P(4), P(5), P(6), P(7), P(8), P(9), P(10)), a1, a2, a3, a4, a5, a6, a7, a8, a9, a10)
NOTES(11, (P(1), P(2), P(3), P(4), P(5), P(6), P(7), P(8), P(9), P(10), P(11)), a1, a2, a3, a4, a5, a6, a7, a8, a9,
      a10, a11)
NOTES(12, (P(1), P(2), P(3), P(4), P(5), P(6), P(7), P(8), P(9), P(10), P(11), P(12)), a1, a2, a3, a4, a5, a6, a7, a8,
      a9, a10, a11, a12)
NOTES(13, (P(1), P(2), P(3), P(4), P(5), P(6), P(7), P(8), P(9), P(10), P(11), P(12), P(13)), a1, a2, a3, a4, a5, a6,
      a7, a8, a9, a10, a11, a12, a13)

static void *const noted[] = {
	(void *)noted_0, (void *)noted_1, (void *)noted_2, (void *)noted_3, (void *)noted_4, (void *)noted_5,
	(void *)noted_6, (void *)noted_7,
	(void *)noted_8, (void *)noted_9, (void *)noted_10, (void *)noted_11, (void *)noted_12, (void *)noted_13,
};
static int arguments_of_next;

/* As next.c has it, but for where it looks. */
void *next_definition(_Atomic(void *) *known, const char *function, const void *caller)
{
	CHECK(caller != NULL);
	called.function = function;
	if (missing != NULL && strcmp(function, missing) == 0)
		return NULL;
	*known = noted[arguments_of_next];
	return *known;
}

static void forget(void)
{
	recorded = (struct recorded){ .begun = 0 };
	called.count = -1;
	called.function = NULL;
}

/* ---- every wrapper ---- */

#define PASSED(symbol, count, types, arguments, function, bind, object, status) int symbol types;
#include "passed.inc"
#undef PASSED

/* The n-th argument: both halves of the register tell which one it is. */
#define A(n) ((intptr_t)(0xabcd000080000000u | (uint64_t)(n) << 32 | (uint64_t)(n)))
#define A1 A(1)
#define A2 A(2)
#define A3 A(3)
#define A4 A(4)
#define A5 A(5)
#define A6 A(6)
#define A7 A(7)
#define A8 A(8)
#define A9 A(9)
#define A10 A(10)
#define A11 A(11)
#define A12 A(12)
#define A13 A(13)

/* A call that fails, so that no bytes are computed of such arguments. */
static void check_passed(const char *symbol, int count, unsigned function, int bind, int object, int rc, bool measured)
{
	bool as_named = called.function == NULL || strcmp(called.function, symbol) == 0;

	if (!as_named || rc != 42 || called.count != count) {
		fprintf(stderr, "%s: %s was called with %d arguments, and %d answered\n", symbol, called.function, called.count, rc);
		abort();
	}
	for (int i = 1; i <= count; i++)
		CHECK(called.argument[i] == A(i));
	CHECK(recorded.begun == 1 && recorded.frame != NULL);
	CHECK(recorded.function == function && recorded.function < function_count);
	CHECK(recorded.kind == bind && functions[function].bind == bind);
	CHECK(recorded.handle == (object == 0 ? 0 : A(object)));
	CHECK(recorded.returned == measured && recorded.counted == measured);
	CHECK(recorded.out == 0 && recorded.in == 0);
}

static void test_every_wrapper(void)
{
	int symbols = 0;

	answer = 42;
	status_at = 0;
	for (int round = 0; round < 2; round++) {
		fake_measuring = round == 1;
#define PASSED(symbol, count, types, arguments, function, bind, object, status)                         \
		forget();                                                                               \
		arguments_of_next = count;                                                              \
		check_passed(#symbol, count, function, bind, object, symbol arguments, fake_measuring); \
		symbols++;
#include "passed.inc"
#undef PASSED
	}
	CHECK(symbols > 2 * (int)function_count);
}

/* Statuses that tell what has come are the program's; where it wants none and the call is measured, the wrapper's. */
static void check_status(intptr_t given, bool measured, uint64_t bytes)
{
	CHECK(called.count > 0);
	if (given == STATUS_IGNORE && measured)
		CHECK(called.argument[status_at] != STATUS_IGNORE);
	else
		CHECK(called.argument[status_at] == given);
	CHECK(recorded.in == bytes && recorded.out == 0);
}

static void test_every_status(void)
{
	uint64_t status[3] = { 0 };
	int tried = 0;

	answer = 0;
	arrived = 77;
	for (int round = 0; round < 4; round++) {
		intptr_t given = round % 2 == 0 ? STATUS_IGNORE : (intptr_t)status;

		fake_measuring = round >= 2;
#undef A
#define A(n) ((n) == status_at ? given : (intptr_t)PROC_NULL)
#define PASSED(symbol, count, types, arguments, function, bind, object, status_position)        \
		status_at = status_position;                                                    \
		if (status_at != 0) {                                                           \
			forget();                                                               \
			arguments_of_next = count;                                              \
			status[0] = 0;                                                          \
			CHECK(symbol arguments == 0);                                           \
			check_status(given, fake_measuring, fake_measuring ? 77 : 0);           \
			CHECK(status[0] == (given == STATUS_IGNORE ? 0 : 77));                  \
			tried++;                                                                \
		}
#include "passed.inc"
#undef PASSED
	}
	CHECK(tried > 0);
	status_at = 0;
}

/* ---- bytes of some: that the right arguments get to the right place, as what they are ---- */

/* An int argument: what is above it means nothing. */
#define I(value) ((intptr_t)((uint64_t)0xfeedbeef << 32 | (uint32_t)(value)))
#define WIDE ((int64_t)3 << 32)

/* Once in a call that may have bytes, those of the larger buffer. */
static void check_size(void)
{
	const struct function *f = &functions[recorded.function];

	CHECK(recorded.sized == (f->out != NULL || f->in != NULL));
	CHECK(recorded.size == larger((struct moved){ recorded.out, recorded.in }));
}

#define COUNTED(wrapper, bytes_out, bytes_in)                                   \
	do {                                                                    \
		forget();                                                       \
		CHECK((wrapper) == 0);                                          \
		CHECK(recorded.counted == 1);                                   \
		CHECK(recorded.out == (bytes_out));                             \
		CHECK(recorded.in == (bytes_in));                               \
		check_size();                                                   \
	} while (0)

static void test_bytes_of_messages(void)
{
	uint64_t status[3] = { 0 };

	COUNTED(MPI_Send(0, I(3), DOUBLE, I(1), I(0), 0), 24, 0);
	COUNTED(PMPI_Send(0, I(3), DOUBLE, I(1), I(0), 0), 24, 0);
	COUNTED(MPI_Send_c(0, WIDE, DOUBLE, I(1), I(0), 0), (uint64_t)24 << 32, 0);
	COUNTED(MPI_Send(0, I(3), GARBAGE, I(PROC_NULL), I(0), 0), 0, 0);
	COUNTED(MPI_Irecv(0, I(3), DOUBLE, I(1), I(0), 0, 0), 0, 24);
	COUNTED(MPI_Irecv(0, I(3), GARBAGE, I(PROC_NULL), I(0), 0, 0), 0, 0);
	COUNTED(MPI_Imrecv(0, I(3), DOUBLE, 0, 0), 0, 24);
	arrived = 13;
	status_at = 12;
	COUNTED(MPI_Sendrecv(0, I(3), DOUBLE, I(1), 0, 0, I(90), GARBAGE, I(2), 0, 0, (intptr_t)status), 24, 13);
	COUNTED(MPI_Sendrecv(0, I(3), GARBAGE, I(PROC_NULL), 0, 0, I(90), GARBAGE, I(2), 0, 0, STATUS_IGNORE), 0, 13);
	status_at = 9;
	COUNTED(MPI_Sendrecv_replace(0, I(3), DOUBLE, I(1), 0, I(2), 0, 0, STATUS_IGNORE), 24, 13);
	status_at = 0;
	COUNTED(MPI_Isendrecv(0, I(3), DOUBLE, I(1), 0, 0, I(2), INT, I(2), 0, 0, 0), 24, 8);
	COUNTED(MPI_Isendrecv(0, I(3), DOUBLE, I(1), 0, 0, I(2), GARBAGE, I(PROC_NULL), 0, 0, 0), 24, 0);
	COUNTED(MPI_Send_init(GARBAGE, GARBAGE, GARBAGE, GARBAGE, GARBAGE, GARBAGE, GARBAGE), 0, 0);
	COUNTED(MPI_Wait(GARBAGE, GARBAGE), 0, 0);
}

static void test_bytes_of_collectives(void)
{
	const int counts[] = { 1, 2, 3 };
	const int64_t wides[] = { 1, 2, WIDE };
	const intptr_t types[] = { INT, INT, DOUBLE };

	fake_place = (struct place){ .rank = 1, .size = 3, .indegree = 1, .outdegree = 2 };
	COUNTED(MPI_Bcast(0, I(5), INT, I(1), 0), 20, 0);
	COUNTED(MPI_Ibcast_c(0, WIDE, INT, I(0), 0, 0), 0, (uint64_t)12 << 32);
	COUNTED(MPI_Gather(0, I(2), INT, 0, I(1), DOUBLE, I(1), 0), 8, 24);
	COUNTED(MPI_Scatterv(0, (intptr_t)counts, 0, INT, IN_PLACE, I(1), GARBAGE, I(1), 0), 24, 8);
	COUNTED(MPI_Gatherv(0, I(2), INT, 0, GARBAGE, GARBAGE, GARBAGE, I(0), 0), 8, 0);
	COUNTED(MPI_Allgatherv_c(IN_PLACE, I(2), GARBAGE, 0, (intptr_t)wides, GARBAGE, INT, 0), 8, 12 + ((uint64_t)12 << 32));
	COUNTED(MPI_Ialltoallw(0, (intptr_t)counts, 0, (intptr_t)types, 0, (intptr_t)counts, 0, (intptr_t)types, 0, 0),
		36, 36);
	COUNTED(MPI_Reduce(0, 0, I(5), INT, GARBAGE, I(1), 0), 20, 20);
	COUNTED(MPI_Reduce_scatter(0, 0, (intptr_t)counts, INT, GARBAGE, 0), 24, 8);
	COUNTED(MPI_Neighbor_alltoall(0, I(2), INT, 0, I(1), DOUBLE, 0), 16, 8);
	COUNTED(MPI_Bcast_init(GARBAGE, GARBAGE, GARBAGE, GARBAGE, 0, 0, 0), 0, 0);
	COUNTED(MPIX_Bcast_init(GARBAGE, GARBAGE, GARBAGE, GARBAGE, 0, 0, 0), 0, 0);
	COUNTED(MPI_Barrier(0), 0, 0);
}

static void test_bytes_of_windows_and_files(void)
{
	COUNTED(MPI_Put(0, I(2), INT, I(1), GARBAGE, GARBAGE, GARBAGE, 0), 8, 0);
	COUNTED(MPI_Put(0, I(2), GARBAGE, I(PROC_NULL), GARBAGE, GARBAGE, GARBAGE, 0), 0, 0);
	COUNTED(MPI_Get(0, I(2), INT, I(1), GARBAGE, GARBAGE, GARBAGE, 0), 0, 8);
	COUNTED(MPI_Get_accumulate(0, I(2), INT, 0, I(1), DOUBLE, I(1), 0, I(1), DOUBLE, 7, 0), 8, 8);
	COUNTED(MPI_Get_accumulate(GARBAGE, GARBAGE, GARBAGE, 0, I(1), DOUBLE, I(1), 0, I(1), DOUBLE, NO_OP, 0), 0, 8);
	COUNTED(MPI_Fetch_and_op(0, 0, INT, I(1), 0, 7, 0), 4, 4);
	COUNTED(MPI_Fetch_and_op(GARBAGE, 0, INT, I(1), 0, NO_OP, 0), 0, 4);
	COUNTED(MPI_Compare_and_swap(0, 0, 0, DOUBLE, I(1), 0, 0), 8, 8);
	COUNTED(MPI_Compare_and_swap(0, 0, 0, GARBAGE, I(PROC_NULL), 0, 0), 0, 0);
	COUNTED(MPI_File_write_at(0, 0, 0, I(3), INT, STATUS_IGNORE), 12, 0);
	COUNTED(MPI_File_iread(0, 0, I(3), INT, 0), 0, 12);
	COUNTED(MPI_File_write_all_begin(0, 0, I(3), INT), 12, 0);
	COUNTED(MPI_File_write_all_end(0, 0, STATUS_IGNORE), 0, 0);
	COUNTED(MPI_File_read_all_begin(0, 0, I(3), INT), 0, 0);
	arrived = 9;
	status_at = 3;
	COUNTED(MPI_File_read_all_end(0, 0, STATUS_IGNORE), 0, 9);
	status_at = 0;
}

#define SENDS(wrapper, times, rank)                                             \
	do {                                                                    \
		forget();                                                       \
		CHECK((wrapper) == answer);                                     \
		CHECK(recorded.sent == (times) && recorded.to == (rank));       \
	} while (0)

#define NAMES(call, rank, tag)                                                              \
	do {                                                                                \
		forget();                                                                   \
		CHECK((call) == answer);                                                    \
		CHECK((int)recorded.names == (rank) && (int)(recorded.names >> 32) == (tag)); \
	} while (0)

/* Whom a call names, from the lower halves of registers; of one that receives, too, whom it receives from. */
static void test_names(void)
{
	NAMES(MPI_Send(0, I(3), DOUBLE, I(7), I(8), 0), 7, 8);
	NAMES(MPI_Probe(I(-5), I(-1), 0, STATUS_IGNORE), -5, -1);
	status_at = 12;
	NAMES(MPI_Sendrecv(0, I(3), DOUBLE, I(7), I(9), 0, I(90), INT, I(2), I(6), 0, STATUS_IGNORE), 2, 6);
	status_at = 0;
	NAMES(MPI_Win_lock(I(1), I(7), I(0), 0), 7, -1);
	NAMES(MPI_Reduce(0, 0, I(1), INT, 0, I(4), 0), 4, 0);
	NAMES(MPI_Barrier(0), 0, 0);
}

/* Whatever is sent to one rank, and nothing else. */
static void test_peers(void)
{
	fake_peers = true;
	SENDS(MPI_Send(0, I(3), DOUBLE, I(7), I(0), 0), 1, 7);
	SENDS(PMPI_Send(0, I(0), GARBAGE, I(7), I(0), 0), 1, 7);
	SENDS(MPI_Irsend_c(0, WIDE, DOUBLE, I(7), I(0), 0, 0), 1, 7);
	SENDS(MPI_Send(0, I(3), GARBAGE, I(PROC_NULL), I(0), 0), 0, 0);
	status_at = 12;
	SENDS(MPI_Sendrecv(0, I(3), DOUBLE, I(7), 0, 0, I(90), GARBAGE, I(2), 0, 0, STATUS_IGNORE), 1, 7);
	status_at = 9;
	SENDS(MPI_Sendrecv_replace(0, I(3), DOUBLE, I(7), 0, I(2), 0, 0, STATUS_IGNORE), 1, 7);
	status_at = 0;
	SENDS(MPI_Isendrecv(0, I(3), DOUBLE, I(7), 0, 0, I(2), INT, I(2), 0, 0, 0), 1, 7);
	SENDS(MPI_Isendrecv_replace(0, I(3), DOUBLE, I(PROC_NULL), 0, I(2), 0, 0, 0), 0, 0);
	SENDS(MPI_Put(0, I(2), INT, I(7), GARBAGE, GARBAGE, GARBAGE, 0), 1, 7);
	SENDS(MPI_Raccumulate(0, I(2), INT, I(7), GARBAGE, GARBAGE, GARBAGE, GARBAGE, 0, 0), 1, 7);
	SENDS(MPI_Get_accumulate(0, I(2), INT, 0, I(1), DOUBLE, I(7), 0, I(1), DOUBLE, 5, 0), 1, 7);
	SENDS(MPI_Get_accumulate(0, I(2), INT, 0, I(1), DOUBLE, I(7), 0, I(1), DOUBLE, NO_OP, 0), 0, 0);
	SENDS(MPI_Compare_and_swap(0, 0, 0, DOUBLE, I(7), 0, 0), 1, 7);
	SENDS(MPI_Get(0, I(2), INT, I(7), GARBAGE, GARBAGE, GARBAGE, 0), 0, 0);
	SENDS(MPI_Irecv(0, I(3), DOUBLE, I(7), I(0), 0, 0), 0, 0);
	fake_place = (struct place){ .rank = 1, .size = 3 };
	SENDS(MPI_Bcast(0, I(5), INT, I(1), 0), 0, 0);
	SENDS(MPI_Send_init(0, I(3), DOUBLE, I(7), I(0), 0, 0), 0, 0);
	CHECK(recorded.persists == 24 && recorded.ordering == NOTED);
	SENDS(MPI_Send_init_c(0, 3, DOUBLE, I(7), I(0), 0, 0), 0, 0);
	CHECK(recorded.persists == 24);
	SENDS(MPI_Psend_init(0, I(5), 3, INT, I(7), I(0), 0, 0, 0), 0, 0);
	CHECK(recorded.persists == 60);
	SENDS(MPI_Send_init(0, I(3), GARBAGE, I(PROC_NULL), I(0), 0, 0), 0, 0);
	CHECK(recorded.persists == NO_MESSAGE);
	SENDS(MPI_Recv_init(0, I(3), GARBAGE, I(7), I(0), 0, 0), 0, 0);
	CHECK(recorded.persists == NO_MESSAGE && recorded.ordering == NOTED);
	SENDS(MPI_Bcast_init(0, I(3), GARBAGE, I(7), 0, 0, 0), 0, 0);
	CHECK(recorded.persists == NO_MESSAGE && recorded.ordering == ORDERED);
	SENDS(MPI_Start(0), 0, 0);
	CHECK(recorded.starts == 1 && recorded.started == 1);
	SENDS(MPI_Startall(I(3), 0), 0, 0);
	CHECK(recorded.starts == 3 && recorded.started == 3 && recorded.ordering == NOTED);
	answer = 5;
	SENDS(MPI_Startall(I(3), 0), 0, 0);
	CHECK(recorded.starts == 3 && recorded.started == 0);
	SENDS(MPI_Send(GARBAGE, I(3), GARBAGE, I(7), 0, 0), 0, 0);
	answer = 0;
	fake_peers = false;
	SENDS(MPI_Send(0, I(3), DOUBLE, I(7), I(0), 0), 0, 0);
}

/* In a call that has failed no argument is looked at. */
static void test_failure(void)
{
	answer = 5;
	forget();
	CHECK(MPI_Send(GARBAGE, I(3), GARBAGE, I(1), 0, 0) == 5);
	CHECK(recorded.counted == 1 && recorded.out == 0 && recorded.sized == 0);
	forget();
	CHECK(MPI_Gatherv(GARBAGE, I(3), GARBAGE, 0, GARBAGE, GARBAGE, GARBAGE, I(1), 0) == 5);
	CHECK(recorded.counted == 1 && recorded.out == 0);
	status_at = 7;
	forget();
	CHECK(MPI_Recv(GARBAGE, I(3), GARBAGE, I(1), 0, 0, STATUS_IGNORE) == 5);
	CHECK(recorded.counted == 1 && recorded.in == 0);
	status_at = 0;
	answer = 0;
}

/* What is counted on a communicator, what makes one, and of what; and which calls may be missing in other ranks. */
#define ORDERS(wrapper, is, times_made, times_failed)                                                        \
	do {                                                                                            \
		forget();                                                                               \
		CHECK((wrapper) == answer && recorded.ordering == (is));                                \
		CHECK(recorded.made == (times_made) && recorded.failed == (times_failed));              \
	} while (0)

static void test_order(void)
{
	ORDERS(MPI_Barrier(0), ORDERED, 0, 0);
	ORDERS(MPI_Ibarrier(0, 0), ORDERED, 0, 0);
	ORDERS(MPI_Barrier_init(0, 0, 0), ORDERED, 0, 0);
	ORDERS(MPI_Win_create(0, 0, 0, 0, 0, 0), ORDERED, 0, 0);
	ORDERS(MPI_Send(0, I(3), DOUBLE, I(7), I(0), 0), UNORDERED, 0, 0);
	ORDERS(MPI_Win_fence(0, 0), UNORDERED, 0, 0);
	ORDERS(MPI_Comm_spawn(0, 0, 0, 0, 0, 0, 0, 0), ORDERED, 0, 0);
	ORDERS(MPI_Comm_dup(0, 8), ORDERED, 1, 0);
	CHECK(recorded.makes == MAKES_ONE && recorded.newcomm == 8);
	ORDERS(MPI_Comm_split(0, I(5), I(6), 8), ORDERED, 1, 0);
	CHECK(recorded.makes == MAKES_COLOURS && (int)recorded.argument == 5 && recorded.newcomm == 8);
	ORDERS(MPI_Comm_create_group(0, 0, I(5), 8), MAKES, 1, 0);
	CHECK(recorded.makes == MAKES_OF_GROUP && (int)recorded.argument == 5);
	ORDERS(MPI_Intercomm_create(0, I(1), 0, I(2), I(5), 8), ORDERED, 1, 0);
	CHECK(recorded.makes == MAKES_OF_GROUPS && (int)recorded.argument == 5);
	ORDERS(MPI_Comm_create_from_group(0, 9, 0, 0, 8), MAKES, 1, 0);
	CHECK(recorded.makes == MAKES_FROM_GROUP && recorded.argument == 9);
	answer = 5;
	ORDERS(MPI_Barrier(0), ORDERED, 0, 1);
	ORDERS(MPI_Comm_dup(0, 8), ORDERED, 0, 1);
	ORDERS(MPI_Comm_create_group(0, 0, I(5), 8), MAKES, 0, 1);
	ORDERS(MPI_File_open(0, 0, 0, 0, 0), ORDERED, 0, 0); /* none of them has it */
	answer = 0;
}

/* A function that the library lacks answers an error; before any other test has found it. */
static void test_missing(void)
{
	missing = "MPI_Comm_join";
	forget();
	CHECK(MPI_Comm_join(0, 0) == NOT_THERE);
	CHECK(called.count == -1 && recorded.begun == 0);
	missing = NULL;
}

void test_wrappers(void)
{
	fake_abi(false);
	test_missing();
	test_every_wrapper();
	test_every_status();
	fake_measuring = fake_sizes = true;
	answer = 0;
	test_bytes_of_messages();
	test_bytes_of_collectives();
	test_bytes_of_windows_and_files();
	test_peers();
	test_names();
	test_order();
	test_failure();
}
