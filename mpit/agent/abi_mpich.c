/* abi_mpich.c - the ABI that MPICH, Intel MPI, MVAPICH and Cray MPICH share: handles are integers. */
#define _GNU_SOURCE
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define ABI_IDENTIFIER abi_mpich
#define ABI_NAME "MPICH"
#define ABI_NUMBER 2
#define HANDLE_IN(type, value) ((type)(int)(value))
#define HANDLE_PUT(object, handle) ((object)->integer = (int)(handle))
#define HANDLE_GET(type, object) ((type)(object)->integer)

static bool abi_speaks(const char *library_version)
{
	return strstr(library_version, "MPICH") != NULL || strstr(library_version, "MVAPICH") != NULL ||
	       strstr(library_version, "Intel(R) MPI") != NULL;
}

static MPI_Comm abi_comm_world(void)
{
	return MPI_COMM_WORLD;
}

static MPI_Comm abi_comm_self(void)
{
	return MPI_COMM_SELF;
}

static MPI_Comm abi_comm_null(void)
{
	return MPI_COMM_NULL;
}

static MPI_Win abi_win_null(void)
{
	return MPI_WIN_NULL;
}

static MPI_Datatype abi_datatype_null(void)
{
	return MPI_DATATYPE_NULL;
}

static int abi_datatype(MPI_Datatype type);

/* Control variables are static variables of the library itself. */
static bool abi_cvar_readable(int index, bool string)
{
	(void)index, (void)string;
	return true;
}

#include "abi_template.h"

static int abi_datatype(MPI_Datatype type)
{
	static const struct {
		MPI_Datatype mpi;
		int ours;
	} types[] = {
		{ MPI_INT, TYPE_INT },
		{ MPI_UNSIGNED, TYPE_UNSIGNED },
		{ MPI_UNSIGNED_LONG, TYPE_UNSIGNED_LONG },
		{ MPI_UNSIGNED_LONG_LONG, TYPE_UNSIGNED_LONG_LONG },
		{ MPI_COUNT, TYPE_COUNT },
		{ MPI_CHAR, TYPE_CHAR },
		{ MPI_DOUBLE, TYPE_DOUBLE },
		{ MPI_INT32_T, TYPE_INT32 },
		{ MPI_INT64_T, TYPE_INT64 },
		{ MPI_UINT32_T, TYPE_UINT32 },
		{ MPI_UINT64_T, TYPE_UINT64 },
		{ MPI_LONG, TYPE_LONG },
		{ MPI_LONG_LONG, TYPE_LONG_LONG },
		{ MPI_FLOAT, TYPE_FLOAT },
		{ MPI_C_BOOL, TYPE_BOOL },
	};

	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
		if (types[i].mpi == type)
			return types[i].ours;
	return TYPE_OTHER;
}
