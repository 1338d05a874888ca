/*
 * abi_template.h - the body of an abi file: MPI's functions behind struct abi.
 *
 * Included once by each abi_*.c after its description of the ABI (abi/). The including file defines
 *   ABI_IDENTIFIER, ABI_NUMBER               what it is
 *   ABI_HANDLE(constant, symbol)             a predefined handle: the constant, or the address of the library's symbol
 *   abi_speaks()                             whether a library is of this family
 *   abi_bound()                              where MPI_T is to find the handle of an object (openmpi.h)
 *   abi_cvar_readable()                      whether a control variable can be read without a crash
 *   abi_object_in(), abi_object_at()         an object out of an argument register, and out of the program's memory
 *   abi_own_name()                           whether the library has made a name up
 *   abi_learn()                              looks its own symbols up, once, in resolve
 *   abi_pvar_writable(), ABI_NEVER_STOP      what tools must not do to performance variables (struct abi)
 *   ABI_ON_REQUEST                           those that are opened only on request
 *   HANDLE_PUT(object, handle)               stores a handle in a union mpi_object
 *   HANDLE_GET(type, object)                 and takes it out
 *
 * Here are the library's functions, its constants and performance variables; abi_objects.h, byhandle/abi.h and
 * tools/abi.h have the rest.
 */
#include "abi.h"

#include "abi/functions.h"
#include "agent.h"
#include "events/events.h"
#include "openmpi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* X(ours, MPI's without MPI_, Open MPI's symbol, the type in C). */
#define KNOWN_DATATYPES(X)                                                                      \
	X(INT, INT, "ompi_mpi_int", int)                                                        \
	X(UNSIGNED, UNSIGNED, "ompi_mpi_unsigned", unsigned)                                    \
	X(UNSIGNED_LONG, UNSIGNED_LONG, "ompi_mpi_unsigned_long", unsigned long)                \
	X(UNSIGNED_LONG_LONG, UNSIGNED_LONG_LONG, "ompi_mpi_unsigned_long_long", unsigned long long) \
	X(COUNT, COUNT, "ompi_mpi_count", MPI_Count)                                            \
	X(CHAR, CHAR, "ompi_mpi_char", char)                                                    \
	X(DOUBLE, DOUBLE, "ompi_mpi_double", double)                                            \
	X(INT32, INT32_T, "ompi_mpi_int32_t", int32_t)                                          \
	X(INT64, INT64_T, "ompi_mpi_int64_t", int64_t)                                          \
	X(UINT32, UINT32_T, "ompi_mpi_uint32_t", uint32_t)                                      \
	X(UINT64, UINT64_T, "ompi_mpi_uint64_t", uint64_t)                                      \
	X(LONG, LONG, "ompi_mpi_long", long)                                                    \
	X(LONG_LONG, LONG_LONG, "ompi_mpi_long_long_int", long long)                            \
	X(FLOAT, FLOAT, "ompi_mpi_float", float)                                                \
	X(BOOL, C_BOOL, "ompi_mpi_c_bool", bool)

/* Written once by resolve, in MPI_Init, before any other function here may be called: the dynamic linker's lock is
 * none that the gate's holder may wait for. */
#define DECLARE(name, parameters) static int (*lib_##name) parameters;
LIBRARY_FUNCTIONS(DECLARE)
OPTIONAL_FUNCTIONS(DECLARE)
static void *library;
static MPI_Comm comm_world, comm_self, comm_null;
static MPI_Info info_null;
static MPI_Datatype datatype_null, datatypes[TYPE_BOOL + 1];

/* The P-names: what other tools have interposed is none of our business. */
static bool resolve(void *opened)
{
	bool complete = true;

	library = opened;
#define RESOLVE(name, parameters)                                                               \
	*(void **)&lib_##name = dlsym(opened, "P" #name);                                       \
	if (lib_##name == NULL) {                                                               \
		agent_log("the MPI library has no P%s", #name);                                 \
		complete = false;                                                               \
	}
	LIBRARY_FUNCTIONS(RESOLVE)
#define RESOLVE_OPTIONAL(name, parameters) *(void **)&lib_##name = dlsym(opened, "P" #name);
	OPTIONAL_FUNCTIONS(RESOLVE_OPTIONAL)
	comm_world = ABI_HANDLE(MPI_COMM_WORLD, "ompi_mpi_comm_world");
	comm_self = ABI_HANDLE(MPI_COMM_SELF, "ompi_mpi_comm_self");
	comm_null = ABI_HANDLE(MPI_COMM_NULL, "ompi_mpi_comm_null");
	info_null = ABI_HANDLE(MPI_INFO_NULL, "ompi_mpi_info_null");
	datatype_null = ABI_HANDLE(MPI_DATATYPE_NULL, "ompi_mpi_datatype_null");
#define LEARN(ours, name, symbol, type) datatypes[TYPE_##ours] = ABI_HANDLE(MPI_##name, symbol);
	KNOWN_DATATYPES(LEARN)
	abi_learn(opened);
	return complete;
}

/* ---- constants ---- */

static int position(const int *values, size_t count, int value, int unknown)
{
	for (size_t i = 0; i < count; i++)
		if (values[i] == value)
			return (int)i;
	return unknown;
}

#define POSITION(values, value, unknown) position(values, sizeof values / sizeof *values, value, unknown)

static int code(int rc)
{
	/* In the order of enum mpit_code. */
	static const int codes[] = {
		MPI_SUCCESS, MPI_T_ERR_MEMORY, MPI_T_ERR_NOT_INITIALIZED, MPI_T_ERR_CANNOT_INIT, MPI_T_ERR_INVALID_INDEX,
		MPI_T_ERR_INVALID_ITEM, MPI_T_ERR_INVALID_HANDLE, MPI_T_ERR_OUT_OF_HANDLES, MPI_T_ERR_OUT_OF_SESSIONS,
		MPI_T_ERR_INVALID_SESSION, MPI_T_ERR_CVAR_SET_NOT_NOW, MPI_T_ERR_CVAR_SET_NEVER, MPI_T_ERR_PVAR_NO_STARTSTOP,
		MPI_T_ERR_PVAR_NO_WRITE, MPI_T_ERR_PVAR_NO_ATOMIC, MPI_T_ERR_INVALID_NAME, MPI_T_ERR_INVALID,
		MPI_T_ERR_NOT_SUPPORTED, MPI_T_ERR_NOT_ACCESSIBLE,
	};
	_Static_assert(sizeof codes / sizeof *codes == CODE_NOT_ACCESSIBLE + 1, "one for each");

	return POSITION(codes, rc, CODE_OTHER);
}

/* The constants of most kinds are consecutive in every ABI; only where they start differs. Ours start at 0. */
static int consecutive(int value, int first, int last, int unknown)
{
	return value >= first && value <= last ? value - first : unknown;
}

/* From 1 on; 0: unknown. */
static int verbosity_of(int value)
{
	static const int values[] = {
		MPI_T_VERBOSITY_USER_BASIC,   MPI_T_VERBOSITY_USER_DETAIL,   MPI_T_VERBOSITY_USER_ALL,
		MPI_T_VERBOSITY_TUNER_BASIC,  MPI_T_VERBOSITY_TUNER_DETAIL,  MPI_T_VERBOSITY_TUNER_ALL,
		MPI_T_VERBOSITY_MPIDEV_BASIC, MPI_T_VERBOSITY_MPIDEV_DETAIL, MPI_T_VERBOSITY_MPIDEV_ALL,
	};

	return POSITION(values, value, -1) + 1;
}

static int bind_of(int value)
{
	return consecutive(value, MPI_T_BIND_NO_OBJECT, MPI_T_BIND_MPI_SESSION, BIND_UNKNOWN);
}

static const int thread_levels[] = { MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED,
				     MPI_THREAD_MULTIPLE };

static int thread_level(int value)
{
	return POSITION(thread_levels, value, -1);
}

static int thread_multiple(void)
{
	return MPI_THREAD_MULTIPLE;
}

static int program_level(void)
{
	int provided;

	return lib_MPI_Query_thread(&provided) == MPI_SUCCESS ? thread_level(provided) : -1;
}

static int tool_init(int required, int *provided)
{
	int given = -1; /* Open MPI leaves it alone when MPI_T is initialised already */
	int rc = lib_MPI_T_init_thread(thread_levels[required], &given);

	*provided = thread_level(given);
	return code(rc);
}

static void describe_type(MPI_Datatype type, int *datatype, int *bytes)
{
	/* Not MPI_Type_size: this runs in the agent's thread, too, which calls no MPI function but those of MPI_T. */
#define BYTES(ours, name, symbol, type) [TYPE_##ours] = sizeof(type),
	static const int sizes[] = { KNOWN_DATATYPES(BYTES) };

	for (*datatype = TYPE_BOOL; *datatype != TYPE_OTHER && datatypes[*datatype] != type;)
		--*datatype;
	*bytes = sizes[*datatype];
}

/* ---- MPI_T: performance variables (MPI-4.1 section 15.3.7) ---- */

/* A function of struct abi that is one of the library's. */
#define PASSED(name, parameters, function, ...)                                                         \
	static int name parameters                                                                      \
	{                                                                                               \
		return code(lib_##function(__VA_ARGS__));                                               \
	}

PASSED(pvar_count, (int *count), MPI_T_pvar_get_num, count)
PASSED(session_open, (void **session), MPI_T_pvar_session_create, (MPI_T_pvar_session *)session)
PASSED(handle_close, (void *session, void **handle), MPI_T_pvar_handle_free, session, (MPI_T_pvar_handle *)handle)
PASSED(handle_start, (void *session, void *handle), MPI_T_pvar_start, session, handle)
PASSED(handle_read, (void *session, void *handle, void *values), MPI_T_pvar_read, session, handle, values)

static int pvar_describe(int index, struct pvar_description *out, struct text *name, struct text *description)
{
	int name_length = sizeof name->bytes, description_length = sizeof description->bytes;
	int verbosity = 0, mpi_class = 0, bind = 0, readonly = 0, continuous = 0, atomic = 0, rc;
	MPI_Datatype type = datatype_null;
	MPI_T_enum enumeration = MPI_T_ENUM_NULL;

	name->bytes[0] = description->bytes[0] = '\0';
	rc = lib_MPI_T_pvar_get_info(index, name->bytes, &name_length, &verbosity, &mpi_class, &type, &enumeration,
				     description->bytes, &description_length, &bind, &readonly, &continuous, &atomic);
	if (rc != MPI_SUCCESS)
		return code(rc);
	out->mpi_class = consecutive(mpi_class, MPI_T_PVAR_CLASS_STATE, MPI_T_PVAR_CLASS_GENERIC, CLASS_UNKNOWN);
	out->verbosity = verbosity_of(verbosity);
	out->bind = bind_of(bind);
	/* MVAPICH answers 2 for yes. */
	out->readonly = readonly != 0;
	out->continuous = continuous != 0;
	out->atomic = atomic != 0;
	out->enumeration = enumeration == MPI_T_ENUM_NULL ? NULL : (void *)enumeration;
	describe_type(type, &out->datatype, &out->datatype_bytes);
	return CODE_SUCCESS;
}

static int handle_open(void *session, int index, union mpi_object *object, void **handle, int *count)
{
	struct openmpi_bound bound;

	return code(lib_MPI_T_pvar_handle_alloc(session, index, abi_bound(object, &bound), (MPI_T_pvar_handle *)handle,
						count));
}

static int enum_describe(void *enumeration, int *items, struct text *name)
{
	int length = sizeof name->bytes;

	name->bytes[0] = '\0';
	return code(lib_MPI_T_enum_get_info(enumeration, items, name->bytes, &length));
}

static int enum_item(void *enumeration, int item, int *value, struct text *name)
{
	int length = sizeof name->bytes;

	name->bytes[0] = '\0';
	return code(lib_MPI_T_enum_get_item(enumeration, item, value, name->bytes, &length));
}

#include "abi_objects.h"
#include "byhandle/abi.h"
#include "events/abi.h"
#include "tools/abi.h"

const struct abi ABI_IDENTIFIER = {
	.number = ABI_NUMBER,
	.speaks = abi_speaks,
	.resolve = resolve,
	.tools_after_init = abi_tools_after_init,
	.tool_init = tool_init,
	.thread_level = thread_level,
	.thread_multiple = thread_multiple,
	.program_level = program_level,
	.observe = observe,
	.world = world,
	.session_world = session_world,
	.watch_finalize = watch_finalize,
	.pvar_count = pvar_count,
	.pvar_describe = pvar_describe,
	.session_open = session_open,
	.handle_open = handle_open,
	.handle_close = handle_close,
	.handle_start = handle_start,
	.handle_read = handle_read,
	.session_close = session_close,
	.handle_stop = handle_stop,
	.handle_write = handle_write,
	.handle_reset = handle_reset,
	.handle_readreset = handle_readreset,
	.pvar_writable = abi_pvar_writable,
	.pvar_index = pvar_index,
	.never_stop = ABI_NEVER_STOP,
	.on_request = ABI_ON_REQUEST,
	.enum_describe = enum_describe,
	.enum_item = enum_item,
	.cvar_count = cvar_count,
	.cvar_describe = cvar_describe,
	.cvar_index = cvar_index,
	.cvar_read = cvar_read,
	.cvar_write = cvar_write,
	.event_count = event_count,
	.event_describe = event_describe,
	.event_source_count = event_source_count,
	.event_source_describe = event_source_describe,
	.event_open = event_open,
	.event_close = event_close,
	.category_count = category_count,
	.category_describe = category_describe,
	.category_index = category_index,
	.category_stamp = category_stamp,
	.category_members = category_members,
	.comm_predefined = comm_predefined,
	.object_at = abi_object_at,
	.object_in = abi_object_in,
	.object_describe = object_describe,
	.info_has = info_has,
	.object_name = object_name,
	.mark = mark,
	.marked = marked,
};
