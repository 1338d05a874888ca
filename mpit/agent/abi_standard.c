/*
 * abi_standard.c - the ABI of the standard itself (MPI-5.0): handles are pointers, predefined ones are small numbers.
 * Which library implements it makes a difference where Open MPI must be treated with care (openmpi.h).
 */
#define _GNU_SOURCE
#include "abi.h"
#include "abi/standard.h"
#include "deny.h"
#include "openmpi.h"
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define ABI_IDENTIFIER abi_standard
#define ABI_NUMBER 3
#define ABI_NEVER_STOP NEVER_STOP_OPENMPI
#define ABI_ON_REQUEST ON_REQUEST_OPENMPI
#define ABI_HANDLE(constant, symbol) (constant)
#define HANDLE_PUT(object, handle) ((object)->pointer = (void *)(handle))
#define HANDLE_GET(type, object) ((type)(object)->pointer)

/* It is no library's native ABI: locate_mpi asks whether a library has it. */
#define abi_speaks NULL
/* Open MPI has it from 6.0 on. */
#define abi_tools_after_init NULL

/* What Open MPI itself has for these two; NULL: the library is another one. Written once, in resolve. */
static void *openmpi_world, *openmpi_self;

static void abi_learn(void *opened)
{
	openmpi_world = dlsym(opened, "ompi_mpi_comm_world");
	openmpi_self = dlsym(opened, "ompi_mpi_comm_self");
	if (openmpi_world != NULL)
		openmpi_find(opened);
}

static void abi_object_in(int kind, intptr_t value, union mpi_object *out)
{
	(void)kind;
	out->pointer = (void *)value;
}

static bool abi_object_at(int kind, const void *address, union mpi_object *out)
{
	(void)kind;
	memcpy(&out->pointer, address, sizeof out->pointer);
	return (uintptr_t)out->pointer >= PREDEFINED_HANDLES;
}

static bool abi_own_name(const char *name)
{
	return openmpi_world != NULL && openmpi_own_name(name);
}

static bool abi_cvar_readable(int index, bool string)
{
	return openmpi_world == NULL || openmpi_cvar_readable(index, string);
}

static bool abi_pvar_writable(const struct pvar_description *is)
{
	return openmpi_world == NULL || openmpi_pvar_writable(is);
}

/*
 * Open MPI's MPI_T gets its own handle: not all of its versions translate the standard's, and a predefined one would
 * be an address to it. What the program has made has the same handle in both. Others keep the address.
 */
static void *abi_bound(union mpi_object *object, struct openmpi_bound *room)
{
	if (object == NULL || openmpi_world == NULL)
		return object;
	if (object->pointer == MPI_COMM_WORLD)
		return openmpi_bound(openmpi_world, room);
	if (object->pointer == MPI_COMM_SELF)
		return openmpi_bound(openmpi_self, room);
	return openmpi_bound(object->pointer, room);
}

#include "abi_template.h"
