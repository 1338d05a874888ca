/*
 * descriptions.c - what is compared of an ABI: compiled with our description of it (abi/) and with a library's mpi.h,
 * and what the two print must be the same (test/descriptions). With mpi.h, functions that abi/functions.h has
 * otherwise are an error of the compiler.
 *
 * DESCRIBED  our description
 * FACTS      FACT(name) for each constant in it, MISSING(name) for those that the mpi.h is too old for
 */
#ifdef DESCRIBED
#include DESCRIBED
#else
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#if MPI_VERSION < 4
#ifndef MPI_SESSION_NULL
typedef MPI_Info MPI_Session;
#endif
typedef struct event_instance *MPI_T_event_instance;
typedef struct event_registration *MPI_T_event_registration;
typedef int MPI_T_cb_safety, MPI_T_source_order;
#endif
#endif
#include "abi/functions.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define SAME(name, parameters) \
	int name parameters;   \
	int P##name parameters;
LIBRARY_FUNCTIONS(SAME)
OPTIONAL_FUNCTIONS(SAME)

#define FACT(name) printf("%s %llx\n", #name, (unsigned long long)(intptr_t)(name));
#define MISSING(name) puts(#name " missing");
#define SIZE(type) printf("size of %s %zu\n", #type, sizeof(type));
#define OFFSET(member) printf("offset of %s %zu\n", #member, offsetof(MPI_Status, member));

int main(void)
{
#include FACTS
	SIZE(MPI_Aint)
	SIZE(MPI_Count)
	SIZE(MPI_Comm)
	SIZE(MPI_Datatype)
	SIZE(MPI_File)
	SIZE(MPI_Group)
	SIZE(MPI_Info)
	SIZE(MPI_Op)
	SIZE(MPI_Request)
	SIZE(MPI_Session)
	SIZE(MPI_Win)
	SIZE(MPI_T_enum)
	SIZE(MPI_T_cvar_handle)
	SIZE(MPI_T_pvar_handle)
	SIZE(MPI_T_pvar_session)
	SIZE(MPI_T_event_instance)
	SIZE(MPI_T_event_registration)
	SIZE(MPI_T_cb_safety)
	SIZE(MPI_T_source_order)
	SIZE(MPI_Status)
	OFFSET(MPI_SOURCE)
	OFFSET(MPI_TAG)
	OFFSET(MPI_ERROR)
#ifdef OPENMPI
	OFFSET(_cancelled)
	OFFSET(_ucount)
#elif defined MPICH
	OFFSET(count_lo)
	OFFSET(count_hi_and_cancelled)
#elif defined STANDARD
	OFFSET(MPI_internal)
	SIZE(((MPI_Status *)0)->MPI_internal)
#endif
	return 0;
}
