/*
 * world.h - which process of MPI_COMM_WORLD a rank of a communicator or window is.
 *
 * Asked of the library when the object is made, with local calls, and kept for as long as it lives: mostly as a line
 * (a duplicate, a row or column of a grid, every other process), otherwise as a table, of which there are so many and
 * no more. Objects whose ranks are the same share one. What can't be kept, or would take too long to be asked, is
 * not known.
 */
#ifndef MPIT_CALLS_WORLD_H
#define MPIT_CALLS_WORLD_H

#include "source.h"

#include <stdbool.h>
#include <stdint.h>

/* The processes that a message can be sent to: those of a window's group or a communicator's, of an
 * intercommunicator's remote one. */
struct world_ranks {
	int count;         /* 0: not known, and the rest is zeros */
	int first, stride; /* rank r is first + r * stride, unless there is a table */
	unsigned table;    /* its number; 0: none */
};

/* What isn't known, or isn't in MPI_COMM_WORLD. */
#define WORLD_NOBODY (-1)

/*
 * Once, in begin. False: there is no MPI_COMM_WORLD (the process has begun with MPI_Session_init), or the library has no
 * groups; then world_size is 0, and nothing else here is called.
 */
bool world_open(intptr_t world);
extern int world_size __attribute__((visibility("hidden")));
/* Once, after it: makes room for tables. False: no memory, and world_ranks isn't called. */
bool world_open_tables(void);

/* The gate is held, in a program's thread; kind: BIND_COMM or BIND_WIN. world_drop when the object has gone: what has
 * been looked up before by then may be wrong. */
void world_ranks(int kind, intptr_t handle, bool inter, struct world_ranks *out);
void world_drop(const struct world_ranks *ranks);

/* The communicator that a handle names is MPI_COMM_WORLD. */
bool world_is(intptr_t handle);
/*
 * Program's threads, of a communicator that the calling one has just made: the process that is rank 0 of its group, of
 * its remote group; and a hash of all of them in their order, 0: some are in no world of ours, or it would take too
 * long.
 */
int world_leader(intptr_t comm, bool remote);
uint64_t world_members(intptr_t comm, bool remote);

/* Any thread. */
int world_rank(const struct world_ranks *ranks, int rank);

#endif
