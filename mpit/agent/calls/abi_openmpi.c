/* abi_openmpi.c - Open MPI's constants. */
#define _GNU_SOURCE
#include "abi/openmpi.h"
#include "calls.h"
#include <dlfcn.h>
#include <string.h>

#define ABI_IDENTIFIER calls_abi_openmpi
#define ABI_NUMBER 1
#define ABI_ASKS_STATUS false
#define ABI_HANDLE(constant, symbol, find) predefined(symbol, find)

/* What MPI_Get_count divides by the datatype's size, in 4.x and 5.x alike. */
static uint64_t abi_status_bytes(const void *status)
{
	MPI_Status s;

	memcpy(&s, status, sizeof s);
	return s._ucount; /* what reads files doesn't set _cancelled */
}

/*
 * Predefined handles are addresses of symbols, which the program may hold itself (copy relocations): the global scope
 * comes first. A library that a plug-in has opened for itself alone is not in it.
 */
static intptr_t predefined(const char *symbol, void *(*find)(const char *symbol))
{
	void *address = dlsym(RTLD_DEFAULT, symbol);

	return (intptr_t)(address != NULL ? address : find(symbol));
}

#include "abi_template.h"
