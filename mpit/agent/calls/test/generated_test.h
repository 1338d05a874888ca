/* generated_test.h - what the tests of bytes.c and of the generated wrappers share: CHECK, and the runtime and the
 * MPI library that they play. */
#ifndef MPIT_CALLS_GENERATED_TEST_H
#define MPIT_CALLS_GENERATED_TEST_H

#include "bytes.h"

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                        \
	do {                                                                                    \
		if (!(condition)) {                                                             \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);         \
			abort();                                                                \
		}                                                                               \
	} while (0)

/* Constants of the library: none is a number that a test takes for a count or a rank. */
enum { PROC_NULL = -71, AT_ROOT = -72, NO_OP = 0x58000000 };
#define IN_PLACE ((intptr_t)-73)
#define STATUS_IGNORE ((intptr_t)74)

/* Datatypes: the number is the size in bytes. Asking for that of any other ends the test. */
enum { INT = 4, DOUBLE = 8, PAIR = 12 };
#define GARBAGE ((intptr_t)0x7ffffffffffffff1)

/* Whether the library's handles are ints, with anything in the upper halves of their registers, or pointers. */
void fake_abi(bool int_handles);

/* The communicator of every call. */
extern struct place fake_place;

/* What the wrappers have told the runtime. */
struct recorded {
	unsigned function;
	int kind;
	intptr_t handle;
	uint64_t names;
	const void *frame;
	int begun, returned, counted, sent;
	int to; /* if sent */
	uint64_t out, in;
	uint64_t persists;        /* bytes of each start */
	int starts, started;      /* requests */
	int sized;
	uint64_t size;
	enum ordering ordering;
	int failed, made;
	enum makes makes; /* if made */
	intptr_t argument, newcomm;
};
extern struct recorded recorded;

/* What call_begins answers. */
extern bool fake_measuring;
/* What counts_sizes and counts_peers answer. */
extern bool fake_sizes, fake_peers;

void test_bytes(void);
void test_wrappers(void);

#endif
