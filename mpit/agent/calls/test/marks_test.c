/* marks_test.c - which call is the outermost one. */
#define _GNU_SOURCE
#include "test.h"

#include <setjmp.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

static void calls_inside(void)
{
	void (*outer)(void) = fake_inside;

	/* As MPI_File_write_all calls MPI_Bcast. */
	fake_inside = NULL;
	CHECK(MPI_Bcast(0, 1, 8, 0x100) == 0 && PMPI_Bcast(0, 1, 8, 0x100) == 0);
	fake_inside = outer;
}

void test_only_the_outermost_call_counts(void)
{
	uint32_t comm = make(BIND_COMM, 0x100);

	fake_inside = calls_inside;
	CHECK(MPI_Allgather(0, 1, 8, 0x100) == 0 && MPI_Allgather(0, 1, 8, 0x100) == 0);
	fake_inside = NULL;
	CHECK(calls("MPI_Allgather", comm) == 2 && calls("MPI_Bcast", comm) == 0 && calls_thread.mark == NULL);
	calls_inside();
	CHECK(calls("MPI_Bcast", comm) == 2);
	freed(BIND_COMM, 0x100, comm);
}

static jmp_buf out;

static void leaves(void)
{
	fake_inside = NULL;
	longjmp(out, 1);
}

/* Through so many frames of this size, whose memory is written to, as a program's mostly is: without a sanitizer's
 * zones between. */
static __attribute__((noinline, no_sanitize("address"))) void deep(int frames, void (*then)(void))
{
	volatile char room[256];

	memset((char *)room, 0x5a, sizeof room);
	if (frames > 0)
		deep(frames - 1, then);
	else
		then();
	room[0] = room[1];
}

static void is_left(void)
{
	fake_inside = leaves;
	MPI_Barrier(0, 0, 0, 0x100);
}

static void sends(void)
{
	CHECK(MPI_Send(0, 1, 1, 0x100) == 0);
}

static void gathers(void)
{
	fake_inside = calls_inside;
	CHECK(MPI_Allgather(0, 1, 8, 0x100) == 0);
	fake_inside = NULL;
}

static void *longjmps(void *unused)
{
	static const struct {
		int left_at, next_at;
	} depths[] = { { 0, 0 }, { 5, 0 }, { 5, 5 }, { 5, 4 }, { 5, 6 }, { 0, 20 }, { 1, 2 } };
	uint32_t comm = make(BIND_COMM, 0x100);

	for (size_t i = 0; i < sizeof depths / sizeof *depths; i++) {
		if (setjmp(out) == 0)
			deep(depths[i].left_at, is_left);
		deep(depths[i].next_at, sends);
		CHECK(calls("MPI_Send", comm) == i + 1);
		/* And what is inside that one is inside. */
		if (setjmp(out) == 0)
			deep(depths[i].left_at, is_left);
		deep(depths[i].next_at, gathers);
		CHECK(calls("MPI_Allgather", comm) == i + 1 && calls("MPI_Bcast", comm) == 0);
	}
	/* One that is left is not counted. */
	CHECK(calls("MPI_Barrier", comm) == 0 || block_cell(calls_thread.block, FUNCTION_MPI_Barrier, comm) != NULL);
	freed(BIND_COMM, 0x100, comm);
	return unused;
}

void test_a_call_left_by_longjmp_blinds_nobody(void)
{
	longjmps(NULL);
	in_a_thread(longjmps, NULL);
}

/* ---- a program that switches stacks: nothing crashes, and the thread's own stack is never blinded ---- */

static ucontext_t here, there;

static void leaves_the_stack(void)
{
	fake_inside = NULL;
	swapcontext(&there, &here); /* for good */
}

static void on_the_other_stack(void)
{
	fake_inside = leaves_the_stack;
	MPI_Barrier(0, 0, 0, 0x100);
}

/* other: a stack of its own, gone afterwards. */
static void leaves_a_call_on(char *other, size_t room)
{
	CHECK(getcontext(&there) == 0);
	there.uc_stack.ss_sp = other;
	there.uc_stack.ss_size = room;
	there.uc_link = &here;
	makecontext(&there, on_the_other_stack, 0);
	CHECK(swapcontext(&here, &there) == 0);
	CHECK(munmap(other, room) == 0);
}

#define ROOM ((size_t)1 << 20)

static void *switches(void *other)
{
	uint32_t comm = make(BIND_COMM, 0x100);

	sends(); /* so that it has a block */
	leaves_a_call_on(other, ROOM);
	sends();
	deep(10, sends);
	gathers();
	CHECK(calls("MPI_Send", comm) == 3 && calls("MPI_Allgather", comm) == 1 && calls("MPI_Bcast", comm) == 0);
	freed(BIND_COMM, 0x100, comm);
	return NULL;
}

static char *map(size_t bytes)
{
	char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(at != MAP_FAILED);
	return at;
}

void test_marks_on_other_stacks(void)
{
	char *both = map(8 * ROOM); /* with so much between that valgrind takes the one for another */
	pthread_attr_t attributes;
	pthread_t thread;

	/* One below the thread's own, and one above it. */
	switches(map(ROOM));
	CHECK(pthread_attr_init(&attributes) == 0 && pthread_attr_setstack(&attributes, both, ROOM) == 0);
	CHECK(pthread_create(&thread, &attributes, switches, both + 7 * ROOM) == 0 && pthread_join(thread, NULL) == 0);
	pthread_attr_destroy(&attributes);
	CHECK(munmap(both, 7 * ROOM) == 0);
}
