/*
 * locate.h - finds the MPI library in the process, without linking to any.
 *
 * Program's threads only, in an interposed function: dlsym and dlopen take the dynamic linker's lock.
 */
#ifndef MPIT_LOCATE_H
#define MPIT_LOCATE_H

#include "abi.h"
#include "source.h"

/*
 * The ABI that speaks the process's MPI, resolved; NULL: no MPI, or one whose ABI the agent doesn't know.
 * caller: an address in the code that called us, for programs whose MPI is not in the global scope.
 * version (of size bytes): first line of MPI_Get_library_version.
 */
const struct abi *locate_mpi(const void *caller, char *version, size_t size);

/* A function of the library that locate_mpi has found; NULL: it has none. */
void *locate_function(const char *function);

/* What another preloaded library offers; NULL: nothing. */
source_function *locate_source(void);

#endif
