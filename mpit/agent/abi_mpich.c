/* abi_mpich.c - the ABI that MPICH, Intel MPI, MVAPICH and Cray MPICH share: handles are integers. */
#define _GNU_SOURCE
#include "abi.h"
#include "abi/mpich.h"
#include "openmpi.h"
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define ABI_IDENTIFIER abi_mpich
#define ABI_NUMBER 2
#define ABI_NEVER_STOP ""
#define ABI_ON_REQUEST ""
#define ABI_HANDLE(constant, symbol) (constant)
#define HANDLE_PUT(object, handle) ((object)->integer = (int)(handle))
#define HANDLE_GET(type, object) ((type)(object)->integer)

static bool abi_speaks(const char *library_version)
{
	return strstr(library_version, "MPICH") != NULL || strstr(library_version, "MVAPICH") != NULL ||
	       strstr(library_version, "Intel(R) MPI") != NULL;
}

/* A file's handle is a pointer. */
static void abi_object_in(int kind, intptr_t value, union mpi_object *out)
{
	*out = (union mpi_object){ .pointer = NULL };
	if (kind == BIND_FILE)
		out->pointer = (void *)value;
	else
		out->integer = (int)value;
}

static bool abi_object_at(int kind, const void *address, union mpi_object *out)
{
	intptr_t value = 0;

	memcpy(&value, address, kind == BIND_FILE ? sizeof(void *) : sizeof(int));
	abi_object_in(kind, value, out);
	/* In an integer handle the upper two bits say what it is: 0 null, 1 predefined. */
	return kind == BIND_FILE ? value != 0 : (unsigned)out->integer >> 30 > 1;
}

#define abi_tools_after_init NULL
#define abi_own_name(name) false
#define abi_learn(library) ((void)(library))
/* Control variables are static variables of the library itself. */
#define abi_cvar_readable(index, string) ((void)(string), true)

/* Keeps the address. */
static void *abi_bound(union mpi_object *object, struct openmpi_bound *room)
{
	(void)room;
	return object;
}

/* It says itself what it can't write. */
static bool abi_pvar_writable(const struct pvar_description *is)
{
	(void)is;
	return true;
}

#include "abi_template.h"
