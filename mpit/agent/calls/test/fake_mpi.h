/* fake_mpi.h - the MPI library that the runtime's tests play, and the functions that the program calls, all with four
 * registers. */
#ifndef MPIT_CALLS_FAKE_MPI_H
#define MPIT_CALLS_FAKE_MPI_H

#include "calls.h"
#include "functions.h"

#include <stdint.h>

/* The wrappers: what a program calls. */
#define DECLARE(name, bind, out, in, activity, names)                                                           \
	int name(intptr_t buffer, intptr_t count, intptr_t type, intptr_t handle);                \
	int P##name(intptr_t buffer, intptr_t count, intptr_t type, intptr_t handle);             \
	int fake_##name(intptr_t buffer, intptr_t count, intptr_t type, intptr_t handle);
FUNCTIONS(DECLARE)
#undef DECLARE
int MPI_Type_free(void *type);

/* What every call does inside the library; NULL: nothing. Of the thread. */
extern __thread void (*fake_inside)(void);
/* What every call answers. */
extern int fake_answer;

/* A type's size: what the handle says, times this; how often it has been asked for. */
extern _Atomic uint64_t fake_type_factor, fake_types_asked;
/* What MPI_Type_free does, with the type's number. */
extern void (*fake_frees_type)(void);

/* Of every communicator that is asked about; how often MPI_Comm_size was called. */
extern struct place fake_place;
extern int fake_topology; /* of the ABI's numbers */
extern _Atomic uint64_t fake_places_asked;

#define FAKE_NULL_TYPE 0x3fffff

/* MPI_COMM_WORLD, and how many processes it has. */
#define FAKE_WORLD 0x77
#define FAKE_NULL 0x78
enum { FAKE_WORLD_SIZE = 4096 };
/* Of every other communicator, or its remote side, and every window: ranks in the world, FAKE_NOBODY: in no world of
 * ours; how many. */
#define FAKE_NOBODY (-32766)
extern int fake_ranks[FAKE_WORLD_SIZE], fake_rank_count;
/* The remote side of every communicator; 0: the same as its own. */
extern int fake_remote[FAKE_WORLD_SIZE], fake_remote_count;
/* MPI_Finalize has returned. */
extern int fake_finalized;
/* Where the handle is of the request that calls make; 0: they make none. */
extern intptr_t fake_request;
/* Groups that have not been freed; how many ranks have been translated into the whole world's. */
extern int fake_groups, fake_translated;

/* source_mpi.find and filtered, which says fake_filter. */
void *fake_find(const char *function);
extern bool fake_filter;
bool fake_filtered(void);

#endif
