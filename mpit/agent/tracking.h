/*
 * tracking.h - communicators, windows and datatypes, from their making to their end, which an attribute tells
 * (abi.h, mark). byhandle/tracking.h has the other kinds.
 *
 * Program's threads only, in an interposed function or in an attribute's deletion.
 */
#ifndef MPIT_TRACKING_H
#define MPIT_TRACKING_H

#include "abi.h"

/* After a constructor; address: of the new handle. nested: called inside another one, by the library itself. */
void tracking_made(int kind, const void *address, const struct making *how, bool nested);
/* After the program named an object. The handle as it was passed. */
void tracking_named(int kind, intptr_t handle);

/* An object's mark is being deleted, from inside the library, in MPI_*_free: the object is still whole. */
void tracking_freed(void *mark);

/* The predefined communicators. The gate is held. */
void tracking_predefined(void);
/* Number of the communicator that an object is made on, 0: none that is tracked. The gate is held. */
uint32_t tracking_number(const struct making *how);

#endif
