/*
 * interpose_pcontrol.c - MPI_Pcontrol (MPI-4.1 section 15.2.4), under both names: Open MPI's Fortran calls
 * PMPI_Pcontrol, MPICH's both.
 *
 * It has a level, and behind it what a tool may define. The next definition, the library's or another tool's, gets
 * what stood in the first five registers of integers and pointers; what a program passes beyond them or as
 * floating-point numbers is lost, because there is no portable way to pass on arguments of unknown number and type.
 */
#include "interpose.h"

#include "lifecycle.h"

/* The level counts where the library takes it, and once: a tool between us and the library may call PMPI_Pcontrol. */
static const char pcontrol[] = "Pcontrol";

#define CONTROLS(function)                                                              \
	EXPORT int function(int level, R a, R b, R c, R d, R e);                        \
	int function(int level, R a, R b, R c, R d, R e)                                \
	{                                                                               \
		NEXT(int (int, ...), function);                                         \
		const char *outer = inside_call;                                        \
		inside_call = pcontrol;                                                 \
		int rc = next(level, a, b, c, d, e);                                    \
		inside_call = outer;                                                    \
		if (rc == 0 && outer != pcontrol)                                       \
			lifecycle_pcontrol(level);                                      \
		return rc;                                                              \
	}

CONTROLS(MPI_Pcontrol)
CONTROLS(PMPI_Pcontrol)
