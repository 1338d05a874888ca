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
#define ABI_NUMBER 1
#define ABI_NEVER_STOP NEVER_STOP_OPENMPI
#define ABI_ON_REQUEST ON_REQUEST_OPENMPI
#define ABI_HANDLE(constant, symbol) openmpi_symbol(library, symbol)
#define HANDLE_PUT(object, handle) ((object)->pointer = (void *)(handle))
#define HANDLE_GET(type, object) ((type)(object)->pointer)

static bool abi_speaks(const char *library_version)
{
	return strncmp(library_version, "Open MPI", 8) == 0;
}

/* Null handles and predefined objects that a constructor may give; those a version doesn't have are left out. */
static void *untracked[20]; /* written in resolve */
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

#define abi_tools_after_init openmpi_tools_after_init
#define abi_own_name openmpi_own_name
#define abi_cvar_readable openmpi_cvar_readable
#define abi_pvar_writable openmpi_pvar_writable

static void *abi_bound(union mpi_object *object, struct openmpi_bound *room)
{
	return object == NULL ? NULL : openmpi_bound(object->pointer, room);
}

#include "abi_template.h"
