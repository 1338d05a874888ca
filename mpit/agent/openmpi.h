/*
 * openmpi.h - what Open MPI needs to be asked carefully for, whichever ABI the program has been built for: its own,
 * or from 6.0 the standard's.
 *
 * Who may call: only who holds the gate (gate.h), except openmpi_find, which resolve calls.
 */
#ifndef MPIT_OPENMPI_H
#define MPIT_OPENMPI_H

#include "abi.h"

/* Looks its functions up in an open library, once. */
void openmpi_find(void *library);

/* Address of one of its data symbols, NULL: it has none. Takes the dynamic linker's lock: in resolve alone. */
void *openmpi_symbol(void *library, const char *name);

/*
 * Whether reading a control variable's value would not crash. index: MPI_T's; string: its value is the address of
 * one.
 */
bool openmpi_cvar_readable(int index, bool string);

/* Whether writing a performance variable would not crash. */
bool openmpi_pvar_writable(const struct pvar_description *is);

/* abi.h, tools_after_init. */
bool openmpi_tools_after_init(const char *library_version);

/* Whether it has made a datatype's name up. */
bool openmpi_own_name(const char *name);

/*
 * Where MPI_T finds the handle of the object that a variable is bound to. 6.0 looks whether the object is valid, and
 * takes the address of its handle for the object itself (ompit_obj_invalid of 6.0.0rc2): it looks for flags 224 bytes
 * behind the handle, which must say nothing. The functions of the standard's ABI put a copy of the handle on the
 * stack, so what is behind that is the caller's frame: room is to be there, and the first in it. MPI_T keeps no
 * address.
 */
struct openmpi_bound {
	void *handle;
	unsigned char zeroes[2040];
};
void *openmpi_bound(void *handle, struct openmpi_bound *room);

#endif
