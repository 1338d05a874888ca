/*
 * types.c - sizes of datatypes.
 *
 * The library's answer costs more than all else in a call, so each thread keeps what it has been told, until any datatype is freed. The epoch
 * changes before the real MPI_Type_free: a handle names another type only after that call has given it up, so that whoever gets it anew, in
 * whatever thread, gets it after the change (the library's own allocation orders the two) and finds nothing kept. Changed after the call
 * it would leave a moment in which another thread has the new type already and the old size still. That a thread asks for the old one between the
 * change and the real call, and keeps it, would need a program that uses a datatype while it is freed.
 *
 * Predefined datatypes are never freed. What the library makes and frees for itself no thread has asked for.
 */
#include "block.h"
#include "library.h"
#include "wrappers.h"

/* Changes before a datatype is freed. By any thread. */
static _Atomic uint64_t types_epoch = 1;

static uint64_t ask(intptr_t datatype)
{
	long long bytes = 0;

	/* Arrays of datatypes may hold it where nothing is sent, and the library's answer might be to abort the program. */
	if (datatype == calls_datatype_null)
		return 0;
	return library.type_size_x(datatype, &bytes) == 0 && bytes > 0 ? (uint64_t)bytes : 0;
}

uint64_t type_bytes(intptr_t datatype)
{
	struct block *b = calls_thread.block;
	intptr_t handle = datatype & (intptr_t)calls_state.handle_mask;
	uint64_t epoch = atomic_load_explicit(&types_epoch, memory_order_acquire);
	struct type_size *known;

	if (b == NULL)
		return 0; /* the call isn't counted */
	known = &b->types[call_hash(0, handle) % TYPES];
	if (known->handle != handle || known->epoch != epoch)
		*known = (struct type_size){ .handle = handle, .epoch = epoch, .bytes = ask(handle) };
	return known->bytes;
}

typedef int frees(void *);

#define FREES_TYPE(function)                                                            \
	EXPORT int function(void *datatype);                                            \
	int function(void *datatype)                                                    \
	{                                                                               \
		NEXT(frees, function);                                                  \
		atomic_fetch_add_explicit(&types_epoch, 1, memory_order_release);       \
		return next(datatype);                                                  \
	}

FREES_TYPE(MPI_Type_free)
FREES_TYPE(PMPI_Type_free)
