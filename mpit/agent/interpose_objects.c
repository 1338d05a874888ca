/*
 * interpose_objects.c - the functions that make and name communicators, windows and datatypes: those of interposed.h,
 * each also under its PMPI_ name. Their end an attribute tells. byhandle/interpose.c has the other kinds.
 *
 * A constructor calls the next definition first and tells the agent afterwards. No lock of ours is held across a call
 * of the library's.
 */
#include "interpose.h"

#include "interposed.h"
#include "tracking.h"

#define MAKES_COMM(name, n, object, on) MAKES_BOTH(BIND_COMM, name, n, object, on, tracking_made)
COMMUNICATORS(MAKES_COMM)
COMMUNICATORS_4(MAKES_COMM)

#define MAKES_WIN(name, n, object, on) MAKES_BOTH(BIND_WIN, name, n, object, on, tracking_made)
WINDOWS(MAKES_WIN)
WINDOWS_4(MAKES_WIN)

#define MAKES_DATATYPE(name, n, object, on) MAKES_BOTH(BIND_DATATYPE, name, n, object, on, tracking_made)
DATATYPES(MAKES_DATATYPE)

#define NAMES_BOTH(name, kind, n)                                                       \
	TELLS(MPI_##name, n, tracking_named(BIND_##kind, a1))                           \
	TELLS(PMPI_##name, n, tracking_named(BIND_##kind, a1))
NAMES(NAMES_BOTH)
