/* abi_openmpi.c - Open MPI's ABI: handles are pointers, predefined ones are data symbols. */
#define _GNU_SOURCE
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>
#include "abi.h"
#include "deny.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

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

static void *predefined(const char *symbol);

/* Looked up once, in resolve: the dynamic linker's lock is none that the gate's holder may wait for. */
static void *comm_world_handle, *comm_self_handle, *comm_null_handle, *datatype_null_handle;
/* Open MPI's own function that tells where the value of a control variable lies; NULL: it has none. */
static int (*where_is)(int, const void *, void *, const char **);

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

static void abi_learn(void)
{
	static const char *const symbols[] = {
		"ompi_mpi_comm_null", "ompi_mpi_win_null", "ompi_mpi_file_null", "ompi_mpi_datatype_null", "ompi_mpi_group_null",
		"ompi_mpi_group_empty", "ompi_mpi_op_null", "ompi_request_null", "ompi_request_empty", "ompi_mpi_info_null",
		"ompi_mpi_info_env", "ompi_mpi_errhandler_null", "ompi_mpi_errors_are_fatal", "ompi_mpi_errors_return",
		"ompi_mpi_errors_abort", "ompi_mpi_errors_throw_exceptions", "ompi_mpi_instance_null",
	};

	comm_world_handle = predefined("ompi_mpi_comm_world");
	comm_self_handle = predefined("ompi_mpi_comm_self");
	comm_null_handle = predefined("ompi_mpi_comm_null");
	datatype_null_handle = predefined("ompi_mpi_datatype_null");
	*(void **)&where_is = predefined("mca_base_var_get_value");
	untracked_count = 0;
	for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
		void *address = predefined(symbols[i]);

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

/* A copy's name is the copied one's behind "Dup ", whatever made it a copy. */
static bool abi_own_name(const char *name)
{
	return strncmp(name, "Dup ", 4) == 0;
}

static int abi_datatype(MPI_Datatype type);
static bool abi_cvar_readable(int index, bool string);
static bool abi_pvar_writable(const struct pvar_description *is);

#include "abi_template.h"

/*
 * A C program may hold these objects itself (copy relocations), and then its copy is the one that
 * the library uses too: the global scope comes before the library.
 */
static void *predefined(const char *symbol)
{
	void *address = dlsym(RTLD_DEFAULT, symbol);

	return address != NULL ? address : dlsym(library, symbol);
}

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
		handles[i] = predefined(types[i].symbol);
	known = true;
	for (size_t i = 0; i < TYPES; i++)
		if ((void *)type == handles[i])
			return types[i].ours;
	return TYPE_OTHER;
}

/*
 * Whether memory can be read, found out by the kernel: its copy fails where a load would crash. Without a descriptor: where the table is the
 * program's, it may close ours and get the number for a file of its own between any two calls. The agent's thread.
 */
static bool memory_readable(const void *address, size_t length)
{
	unsigned char bytes[sizeof(void *)];
	struct iovec to = { bytes, length }, from = { (void *)(uintptr_t)address, length };

	if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)length)
		return true;
	if (errno == EFAULT)
		return false;
	/*
	 * Containers' filters may refuse that, but hardly this one, which copies eight bytes, aligned and so of one page, before it finds that
	 * it is to do nothing with them.
	 */
	return syscall(SYS_rt_sigprocmask, -1, (uintptr_t)address & ~(uintptr_t)7, NULL, 8) == 0 || errno == EINVAL;
}

/*
 * A component that isn't used is unloaded, and a library shared by several (UCX's, in Debian's 4.1.4) leaves its
 * control variables behind, whose values then lie in no memory at all. Open MPI itself can tell where a value lies without
 * touching it. MPI_T's index is the one of its own table. Where it can't be asked, no value is read.
 */
static bool abi_cvar_readable(int index, bool string)
{
	const void *storage = NULL;
	const char *value;

	if (where_is == NULL || where_is(index, &storage, NULL, NULL) != 0 || storage == NULL)
		return false;
	if (!string)
		return memory_readable(storage, 1);
	if (!memory_readable(storage, sizeof value))
		return false;
	memcpy(&value, storage, sizeof value);
	return value == NULL || memory_readable(value, 1);
}

/*
 * What it writes it also copies into the handle's memory of the last value, which only these have (mca_base_pvar_handle_write_value): with
 * another it would write to the address zero.
 */
static bool abi_pvar_writable(const struct pvar_description *is)
{
	return !is->continuous || (is->mpi_class >= CLASS_HIGHWATERMARK && is->mpi_class <= CLASS_TIMER);
}
