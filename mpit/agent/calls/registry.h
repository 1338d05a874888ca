/*
 * registry.h - which object a handle names.
 *
 * Objects are entered and removed by who holds the agent's gate, one at a time, and looked up by all threads in the
 * middle of their calls, without a lock. Each has a slot for as long as it lives. An object's number is never used
 * again; a handle and a slot are.
 */
#ifndef MPIT_CALLS_REGISTRY_H
#define MPIT_CALLS_REGISTRY_H

#include "calls.h"

#include <stdbool.h>
#include <stdint.h>

#define REGISTRY_SLOTS 0xfff0u /* of at most 3 * 16384 objects that the agent tracks */
#define MOST_FUNCTIONS 512u

/* Once, in begin. False: no memory. */
bool registry_open(void);

/* The gate is held. place: of a communicator; of a window, its world. False: there is no slot, and the object isn't
 * known. */
bool registry_add(int kind, intptr_t handle, uint32_t number, const struct place *place);
/* The gate is held. False: it isn't there. */
bool registry_remove(int kind, intptr_t handle, uint32_t number);

/* Any thread: the slot (from 1) of the object that a handle names, and its number; 0: none that is known. */
unsigned registry_find(int kind, intptr_t handle, uint32_t *number);
/*
 * Any thread: whether the object of a slot is still this one. If not, it has been freed after the last read of all
 * that is counted on it, and what the reader has read then came before what the caller does now.
 */
bool registry_alive(unsigned slot, uint32_t number);
/* Any thread: a communicator's place; false: it isn't this object's slot any more. */
bool registry_place(unsigned slot, uint32_t number, struct place *out);

/* Any thread: what is known of the collectives on a slot's communicator. The slot's, so that it never moves. */
struct order *registry_order(unsigned slot);
/* The gate is held: the number of slots that have ever been used, from 1 on. */
unsigned registry_slots(void);
/* The gate is held: the communicator of a slot; 0: it has none. `told` is the reader's, and 0 at first. */
uint32_t registry_comm(unsigned slot, uint64_t **told);

/* The gate is held: whether the reader has been told of a function's calls on the object of a slot; marks it. Slot 0:
 * on object 0. */
bool registry_told(unsigned slot, unsigned function);

#endif
