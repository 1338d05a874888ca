/*
 * interpose_pcontrol.c - MPI_Pcontrol (MPI-4.1 section 15.2.4), under both names: Open MPI's Fortran calls PMPI_Pcontrol, MPICH's both.
 *
 * It has a level, and behind it what a tool may define. The next definition, the library's or another tool's, gets what stood in the first
 * five registers of integers and pointers; what a program passes beyond them or as floating-point numbers is lost, because there is
 * no portable way to pass on arguments of unknown number and type.
 */
#include "agent.h"
#include "lifecycle.h"
#include "locate.h"

#include <stdatomic.h>

#define EXPORT __attribute__((visibility("default"))) extern
#define CALLER __builtin_return_address(0)
#define NOT_THERE 16 /* as in interpose.c */

/* A tool between us and the library may call PMPI_Pcontrol: that is the same call. initial-exec as in gate.c. */
static __thread bool inside __attribute__((tls_model("initial-exec")));

#define R intptr_t
#define CONTROLS(function)                                                              \
	EXPORT int function(int level, R a, R b, R c, R d, R e);                        \
	int function(int level, R a, R b, R c, R d, R e)                                \
	{                                                                               \
		static _Atomic(void *) known;                                           \
		void *found = atomic_load_explicit(&known, memory_order_relaxed);       \
		bool outer = inside;                                                    \
		int (*next)(int, ...);                                                  \
		int rc;                                                                 \
		if (found == NULL) {                                                    \
			found = locate_next(#function, CALLER);                         \
			atomic_store_explicit(&known, found, memory_order_relaxed);     \
		}                                                                       \
		*(void **)&next = found;                                                \
		if (next == NULL)                                                       \
			return NOT_THERE;                                               \
		inside = true;                                                          \
		rc = next(level, a, b, c, d, e);                                        \
		inside = outer;                                                         \
		if (rc == 0 && !outer)                                                  \
			lifecycle_pcontrol(level);                                      \
		return rc;                                                              \
	}

CONTROLS(MPI_Pcontrol)
CONTROLS(PMPI_Pcontrol)
