/*
 * events.h - MPI_T's events (MPI-4.1 section 15.3.8), counted.
 *
 * An event type is a variable of the catalogue (catalogue.h): a COUNTER bound to what the type is bound to, opened on
 * request alone. A handle on it is a registration, whose callback adds one to a counter of its own and does nothing
 * else, in whatever thread and context the library calls it. One variable more counts the events that the library
 * says it has dropped.
 *
 * Who may call: only who holds the gate (gate.h); the callbacks excepted.
 */
#ifndef MPIT_EVENTS_H
#define MPIT_EVENTS_H

#include "../abi.h"

#include <stdatomic.h>

/* What stands in for MPI_T's index of a performance variable: this one is of the dropped events, the next ones are
 * the types. */
#define EVENT_INDEX 0x200000

/* Every type's name behind this is its variable's name. */
#define EVENT_PREFIX "mpit_event_"
#define EVENTS_DROPPED "mpit_events_dropped"
#define EVENTS_CATEGORY "mpit_events"

/* What a registration counts; the callbacks write it. */
struct event_count {
	_Atomic uint64_t raised;
	_Atomic bool freed; /* the library has said that no callback of it runs any more */
	void *registration;
	struct event_count *next; /* of those that are closed */
};

/* In all registrations of the process; the callbacks write it. */
extern _Atomic uint64_t events_dropped;

/* How many variables there are: none where the library has no events. */
int events_count(const struct abi *abi);
/* Variable i of events_count, as pvar_describe of abi.h. */
int events_describe(const struct abi *abi, int i, struct pvar_description *out, struct text *name,
		    struct text *description);
/* What there is to say of all of them, with the sources that they come from; cut to size. */
void events_about(const struct abi *abi, char *to, size_t size);

/* A handle on variable i; object: NULL for types without one; allocates. *closed: the list of handles that are closed,
 * which it may use again. */
int events_open(const struct abi *abi, struct event_count **closed, int i, union mpi_object *object, void **handle);
uint64_t events_read(const void *handle);
void events_close(const struct abi *abi, struct event_count **closed, void *handle);

/* Frees the list. For tests: the library may still be calling. */
void events_drop(struct event_count **closed);

#endif
