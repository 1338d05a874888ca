/*
 * order.h - numbers of collectives, and which communicator is which in all its members.
 *
 * The members of a communicator begin the same collectives on it in the same order. So it is enough that each counts
 * them: the n-th that one has begun is the n-th of all. It is counted where a call begins (calls.h), also while nothing
 * is measured. Where something may be missing in the count, the number isn't known from then on.
 *
 * An identity is made without a message, of what all members know: of MPI_COMM_WORLD it is the same everywhere, of a
 * communicator made by a collective it follows from the identity of that one's communicator and from the collective's
 * number there. Where one collective makes several, what tells them apart is added. Where a communicator is made by
 * fewer than all members of another one, its processes in the world, a tag, and how many such ones came before it stand in
 * place of the number. Of processes that are in another world, or in none, nobody knows.
 */
#ifndef MPIT_CALLS_ORDER_H
#define MPIT_CALLS_ORDER_H

#include "calls.h"

#include <stdbool.h>
#include <stdint.h>

/* Once, in begin, when world_open has been called. */
void order_open(void);
/* The gate is held: an object has been entered in the registry. */
void order_object_made(int kind, intptr_t handle);

/* Any thread: whether collectives are counted. If not, it is noted that one has been missed. */
bool order_begun(void);
/* Any thread: the number of collectives on that communicator isn't known any more. */
void order_unknown(intptr_t handle);
/* Any thread: a communicator of fewer than all members of another one may have been made, and not been counted. */
void order_lost(void);

/* ---- the reader ---- */

/* The gate is held: source.h, comms. */
void order_tell(bool all, source_comm_function *tell, void *context);
/* Any thread: how many collectives have been begun on the object of a slot; 0: none, or it isn't known. */
uint64_t order_number(unsigned slot, uint32_t object);

/* Another value for each pair, and never 0. */
static inline uint64_t order_mix(uint64_t a, uint64_t b)
{
	uint64_t x = (a ^ 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;

	x = (x ^ x >> 32) + b;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	x ^= x >> 31;
	return x == 0 ? 1 : x;
}

#endif
