/* abi_openmpi.c - Open MPI's ABI: handles are pointers, predefined ones are data symbols. */
#define _GNU_SOURCE
#include "abi.h"
#include "abi/openmpi.h"
#include "deny.h"
#include "openmpi.h"
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define ABI_IDENTIFIER abi_openmpi
#define ABI_NAME "Open MPI"
#define ABI_NUMBER 1
#define ABI_NEVER_STOP NEVER_STOP_OPENMPI
#define ABI_ON_REQUEST ON_REQUEST_OPENMPI
#define HANDLE_PUT(object, handle) ((object)->pointer = (void *)(handle))
#define HANDLE_GET(type, object) ((type)(object)->pointer)

static bool abi_speaks(const char *library_version)
{
	return strncmp(library_version, "Open MPI", 8) == 0;
}

/* Looked up once, in resolve: the dynamic linker's lock is none that the gate's holder may wait for. */
static void *comm_world_handle, *comm_self_handle, *comm_null_handle, *datatype_null_handle;

static MPI_Comm abi_comm_world(void)
{
	return comm_world_handle;
}

static MPI_Comm abi_comm_self(void)
{
	return comm_self_handle;
}

static MPI_Comm abi_comm_null(void)
{
	return comm_null_handle;
}

static MPI_Datatype abi_datatype_null(void)
{
	return datatype_null_handle;
}

/* Null handles and predefined objects that a constructor may give; those a version doesn't have are left out. */
static void *untracked[20]; /* as above */
static size_t untracked_count;

static void abi_learn(void *library)
{
	static const char *const symbols[] = {
		"ompi_mpi_comm_null", "ompi_mpi_win_null", "ompi_mpi_file_null", "ompi_mpi_datatype_null", "ompi_mpi_group_null",
		"ompi_mpi_group_empty", "ompi_mpi_op_null", "ompi_request_null", "ompi_request_empty", "ompi_mpi_info_null",
		"ompi_mpi_info_env", "ompi_mpi_errhandler_null", "ompi_mpi_errors_are_fatal", "ompi_mpi_errors_return",
		"ompi_mpi_errors_abort", "ompi_mpi_errors_throw_exceptions", "ompi_mpi_instance_null",
	};

	openmpi_find(library);
	comm_world_handle = openmpi_symbol(library, "ompi_mpi_comm_world");
	comm_self_handle = openmpi_symbol(library, "ompi_mpi_comm_self");
	comm_null_handle = openmpi_symbol(library, "ompi_mpi_comm_null");
	datatype_null_handle = openmpi_symbol(library, "ompi_mpi_datatype_null");
	untracked_count = 0;
	for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
		void *address = openmpi_symbol(library, symbols[i]);

		if (address != NULL)
			untracked[untracked_count++] = address;
	}
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
	for (size_t i = 0; i < untracked_count; i++)
		if (out->pointer == untracked[i])
			return false;
	return out->pointer != NULL;
}

static bool abi_own_name(const char *name)
{
	return openmpi_own_name(name);
}

static bool abi_cvar_readable(int index, bool string)
{
	return openmpi_cvar_readable(index, string);
}

static bool abi_pvar_writable(const struct pvar_description *is)
{
	return openmpi_pvar_writable(is);
}

static void *abi_bound(union mpi_object *object, struct openmpi_bound *room)
{
	return object == NULL ? NULL : openmpi_bound(object->pointer, room);
}

static int abi_datatype(MPI_Datatype type);

#include "abi_template.h"

static int abi_datatype(MPI_Datatype type)
{
	static const struct {
		const char *symbol;
		int ours;
	} types[] = {
		{ "ompi_mpi_int", TYPE_INT },
		{ "ompi_mpi_unsigned", TYPE_UNSIGNED },
		{ "ompi_mpi_unsigned_long", TYPE_UNSIGNED_LONG },
		{ "ompi_mpi_unsigned_long_long", TYPE_UNSIGNED_LONG_LONG },
		{ "ompi_mpi_count", TYPE_COUNT },
		{ "ompi_mpi_char", TYPE_CHAR },
		{ "ompi_mpi_double", TYPE_DOUBLE },
		{ "ompi_mpi_int32_t", TYPE_INT32 },
		{ "ompi_mpi_int64_t", TYPE_INT64 },
		{ "ompi_mpi_uint32_t", TYPE_UINT32 },
		{ "ompi_mpi_uint64_t", TYPE_UINT64 },
		{ "ompi_mpi_long", TYPE_LONG },
		{ "ompi_mpi_long_long_int", TYPE_LONG_LONG },
		{ "ompi_mpi_float", TYPE_FLOAT },
		{ "ompi_mpi_c_bool", TYPE_BOOL },
	};
	enum { TYPES = sizeof types / sizeof types[0] };
	/* Looked up once, in MPI_Init, as above. */
	static void *handles[TYPES];
	static bool known;

	for (size_t i = 0; !known && i < TYPES; i++)
		handles[i] = openmpi_symbol(library, types[i].symbol);
	known = true;
	for (size_t i = 0; i < TYPES; i++)
		if ((void *)type == handles[i])
			return types[i].ours;
	return TYPE_OTHER;
}
