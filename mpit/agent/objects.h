/*
 * objects.h - the list of objects that exist, as LAYOUT tells of them. All of it belongs to the gate.
 *
 * Communicators, windows and datatypes are found by their mark (abi.h), objects of the other kinds by byhandle/.
 */
#ifndef MPIT_OBJECTS_H
#define MPIT_OBJECTS_H

#include "session.h"

/*
 * Program's thread, after a constructor. mpi is copied; how may be NULL, on is the number of its communicator or 0.
 * NULL: over the bound, counted, or an object that is not to be tracked.
 */
struct object *object_made(struct session *s, int kind, const union mpi_object *mpi, unsigned flags,
			   const struct making *how, uint32_t on);
/* Program's thread, before the object goes: takes its last values and closes its handles. */
void object_freed(struct session *s, struct object *o);
/* Program's thread: what was counted so far stays under the old name. */
void object_named(struct session *s, struct object *o, const char *name);
/* Other properties in the place of those told before; without room for them those stay. */
void object_changed(struct session *s, struct object *o, const struct details *details);

/* The object with a number, NULL: there is none. */
struct object *object_numbered(const struct session *s, uint64_t number);

#endif
