/*
 * abi_template.h - the body of an abi file: MPI's functions behind struct abi.
 *
 * Included once by each abi_*.c after that family's mpi.h. The including file defines
 *   ABI_IDENTIFIER, ABI_NAME, ABI_NUMBER     what it is
 *   abi_speaks()                             whether a library is of this family
 *   abi_comm_world() … abi_datatype()        its predefined handles
 *   abi_cvar_readable()                      whether a control variable can be read without a crash
 *   HANDLE_IN(type, value)                   a handle out of an argument register
 *   HANDLE_PUT(object, handle)               stores a handle in a union mpi_object
 *   HANDLE_GET(type, object)                 and takes it out
 */
#include "abi.h"

#include "agent.h"

#include <dlfcn.h>
#include <string.h>

#define LIBRARY_FUNCTIONS(X)          \
	X(MPI_T_init_thread)          \
	X(MPI_T_pvar_get_num)         \
	X(MPI_T_pvar_get_info)        \
	X(MPI_T_pvar_session_create)  \
	X(MPI_T_pvar_handle_alloc)    \
	X(MPI_T_pvar_handle_free)     \
	X(MPI_T_pvar_start)           \
	X(MPI_T_pvar_read)            \
	X(MPI_T_enum_get_info)        \
	X(MPI_T_enum_get_item)        \
	X(MPI_T_cvar_get_num)         \
	X(MPI_T_cvar_get_info)        \
	X(MPI_T_cvar_handle_alloc)    \
	X(MPI_T_cvar_handle_free)     \
	X(MPI_T_cvar_read)            \
	X(MPI_T_category_get_num)     \
	X(MPI_T_category_get_info)    \
	X(MPI_T_category_get_pvars)   \
	X(MPI_T_category_get_cvars)   \
	X(MPI_T_category_get_categories) \
	X(MPI_Comm_rank)              \
	X(MPI_Comm_size)              \
	X(MPI_Comm_test_inter)        \
	X(MPI_Comm_get_parent)        \
	X(MPI_Comm_get_name)          \
	X(MPI_Comm_create_keyval)     \
	X(MPI_Comm_set_attr)          \
	X(MPI_Comm_get_attr)          \
	X(MPI_Win_get_name)           \
	X(MPI_Win_create_keyval)      \
	X(MPI_Win_set_attr)           \
	X(MPI_Win_get_attr)           \
	X(MPI_Win_get_group)          \
	X(MPI_Group_rank)             \
	X(MPI_Group_size)             \
	X(MPI_Group_free)             \
	X(MPI_Type_size)

/* Written once by resolve, in MPI_Init, before any other function here may be called. */
#define DECLARE(name) static __typeof__(&name) lib_##name;
LIBRARY_FUNCTIONS(DECLARE)
static void *library;

/* Set in observe, in MPI_Init; invalid before. */
static int comm_keyval = MPI_KEYVAL_INVALID, win_keyval = MPI_KEYVAL_INVALID, finalize_keyval = MPI_KEYVAL_INVALID;
static const struct abi_events *observer;

/* The P-names: what other tools have interposed is none of our business. */
static bool resolve(void *opened)
{
	bool complete = true;

	library = opened;
#define RESOLVE(name)                                                  \
	*(void **)&lib_##name = dlsym(opened, "P" #name);              \
	if (lib_##name == NULL) {                                      \
		agent_log("the MPI library has no P%s", #name);        \
		complete = false;                                      \
	}
	LIBRARY_FUNCTIONS(RESOLVE)
	return complete;
}

static int code(int rc)
{
	switch (rc) {
	case MPI_SUCCESS: return CODE_SUCCESS;
	case MPI_T_ERR_MEMORY: return CODE_MEMORY;
	case MPI_T_ERR_NOT_INITIALIZED: return CODE_NOT_INITIALIZED;
	case MPI_T_ERR_CANNOT_INIT: return CODE_CANNOT_INIT;
	case MPI_T_ERR_INVALID_INDEX: return CODE_INVALID_INDEX;
	case MPI_T_ERR_INVALID_ITEM: return CODE_INVALID_ITEM;
	case MPI_T_ERR_INVALID_HANDLE: return CODE_INVALID_HANDLE;
	case MPI_T_ERR_OUT_OF_HANDLES: return CODE_OUT_OF_HANDLES;
	case MPI_T_ERR_OUT_OF_SESSIONS: return CODE_OUT_OF_SESSIONS;
	case MPI_T_ERR_INVALID_SESSION: return CODE_INVALID_SESSION;
	case MPI_T_ERR_CVAR_SET_NOT_NOW: return CODE_CVAR_SET_NOT_NOW;
	case MPI_T_ERR_CVAR_SET_NEVER: return CODE_CVAR_SET_NEVER;
	case MPI_T_ERR_PVAR_NO_STARTSTOP: return CODE_PVAR_NO_STARTSTOP;
	case MPI_T_ERR_PVAR_NO_WRITE: return CODE_PVAR_NO_WRITE;
	case MPI_T_ERR_PVAR_NO_ATOMIC: return CODE_PVAR_NO_ATOMIC;
	case MPI_T_ERR_INVALID_NAME: return CODE_INVALID_NAME;
	case MPI_T_ERR_INVALID: return CODE_INVALID;
#ifdef MPI_T_ERR_NOT_SUPPORTED
	case MPI_T_ERR_NOT_SUPPORTED: return CODE_NOT_SUPPORTED;
#endif
#ifdef MPI_T_ERR_NOT_ACCESSIBLE
	case MPI_T_ERR_NOT_ACCESSIBLE: return CODE_NOT_ACCESSIBLE;
#endif
	default: return CODE_OTHER;
	}
}

/* The constants of each kind are consecutive in every library seen; only where they start differs. */
static int consecutive(int value, int first, int count, int base, int unknown)
{
	return value >= first && value - first < count ? value - first + base : unknown;
}

static int verbosity_of(int value)
{
	return consecutive(value, MPI_T_VERBOSITY_USER_BASIC, 9, 1, 0);
}

static int bind_of(int value)
{
	return consecutive(value, MPI_T_BIND_NO_OBJECT, 12, 0, BIND_UNKNOWN);
}

static int thread_level(int value)
{
	if (value == MPI_THREAD_MULTIPLE)
		return 3;
	if (value == MPI_THREAD_SERIALIZED)
		return 2;
	if (value == MPI_THREAD_FUNNELED)
		return 1;
	return value == MPI_THREAD_SINGLE ? 0 : -1;
}

static int thread_multiple(void)
{
	return MPI_THREAD_MULTIPLE;
}

static int tool_init(int *level)
{
	int provided = -1; /* Open MPI leaves it alone when MPI_T is initialised already */
	int rc = lib_MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided);

	*level = thread_level(provided);
	return code(rc);
}

/* ---- attributes: how the agent learns that an object ends ---- */

static int comm_no_copy(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag)
{
	(void)comm, (void)keyval, (void)extra, (void)in, (void)out;
	*flag = 0;
	return MPI_SUCCESS;
}

static int win_no_copy(MPI_Win win, int keyval, void *extra, void *in, void *out, int *flag)
{
	(void)win, (void)keyval, (void)extra, (void)in, (void)out;
	*flag = 0;
	return MPI_SUCCESS;
}

static int comm_deleted(MPI_Comm comm, int keyval, void *mark, void *extra)
{
	(void)comm, (void)keyval, (void)extra;
	observer->freed(mark);
	return MPI_SUCCESS;
}

static int win_deleted(MPI_Win win, int keyval, void *mark, void *extra)
{
	(void)win, (void)keyval, (void)extra;
	observer->freed(mark);
	return MPI_SUCCESS;
}

/* Attributes of MPI_COMM_SELF go first in MPI_Finalize (MPI-4.1 section 11.2.4). */
static int self_deleted(MPI_Comm comm, int keyval, void *mark, void *extra)
{
	(void)comm, (void)keyval, (void)mark, (void)extra;
	observer->finalizing();
	return MPI_SUCCESS;
}

static bool observe(const struct abi_events *events, int *rank, int *size)
{
	observer = events;
	return lib_MPI_Comm_create_keyval(comm_no_copy, comm_deleted, &comm_keyval, NULL) == MPI_SUCCESS &&
	       lib_MPI_Comm_create_keyval(comm_no_copy, self_deleted, &finalize_keyval, NULL) == MPI_SUCCESS &&
	       lib_MPI_Win_create_keyval(win_no_copy, win_deleted, &win_keyval, NULL) == MPI_SUCCESS &&
	       lib_MPI_Comm_rank(abi_comm_world(), rank) == MPI_SUCCESS &&
	       lib_MPI_Comm_size(abi_comm_world(), size) == MPI_SUCCESS;
}

static bool watch_finalize(void)
{
	return lib_MPI_Comm_set_attr(abi_comm_self(), finalize_keyval, library) == MPI_SUCCESS;
}

static bool comm_mark(const union mpi_object *comm, void *mark)
{
	return lib_MPI_Comm_set_attr(HANDLE_GET(MPI_Comm, comm), comm_keyval, mark) == MPI_SUCCESS;
}

static bool win_mark(const union mpi_object *win, void *mark)
{
	return lib_MPI_Win_set_attr(HANDLE_GET(MPI_Win, win), win_keyval, mark) == MPI_SUCCESS;
}

static void *comm_marked(const union mpi_object *comm)
{
	void *mark = NULL;
	int found = 0;

	if (lib_MPI_Comm_get_attr(HANDLE_GET(MPI_Comm, comm), comm_keyval, &mark, &found) != MPI_SUCCESS || !found)
		return NULL;
	return mark;
}

static void *win_marked(const union mpi_object *win)
{
	void *mark = NULL;
	int found = 0;

	if (lib_MPI_Win_get_attr(HANDLE_GET(MPI_Win, win), win_keyval, &mark, &found) != MPI_SUCCESS || !found)
		return NULL;
	return mark;
}

/* ---- objects ---- */

static bool comm_world(union mpi_object *out)
{
	HANDLE_PUT(out, abi_comm_world());
	return true;
}

static bool comm_self(union mpi_object *out)
{
	HANDLE_PUT(out, abi_comm_self());
	return true;
}

static bool comm_parent(union mpi_object *out)
{
	MPI_Comm parent = abi_comm_null();

	if (lib_MPI_Comm_get_parent(&parent) != MPI_SUCCESS || parent == abi_comm_null())
		return false;
	HANDLE_PUT(out, parent);
	return true;
}

static bool comm_at(const void *address, union mpi_object *out)
{
	MPI_Comm comm;

	memcpy(&comm, address, sizeof comm);
	HANDLE_PUT(out, comm);
	return comm != abi_comm_null();
}

static bool win_at(const void *address, union mpi_object *out)
{
	MPI_Win win;

	memcpy(&win, address, sizeof win);
	HANDLE_PUT(out, win);
	return win != abi_win_null();
}

static void comm_in(intptr_t value, union mpi_object *out)
{
	HANDLE_PUT(out, HANDLE_IN(MPI_Comm, value));
}

static void win_in(intptr_t value, union mpi_object *out)
{
	HANDLE_PUT(out, HANDLE_IN(MPI_Win, value));
}

static bool comm_shape(const union mpi_object *comm, int *rank, int *size, bool *inter)
{
	int flag = 0;

	if (lib_MPI_Comm_rank(HANDLE_GET(MPI_Comm, comm), rank) != MPI_SUCCESS ||
	    lib_MPI_Comm_size(HANDLE_GET(MPI_Comm, comm), size) != MPI_SUCCESS ||
	    lib_MPI_Comm_test_inter(HANDLE_GET(MPI_Comm, comm), &flag) != MPI_SUCCESS)
		return false;
	*inter = flag != 0;
	return true;
}

static bool win_shape(const union mpi_object *win, int *rank, int *size)
{
	MPI_Group group;
	bool known;

	if (lib_MPI_Win_get_group(HANDLE_GET(MPI_Win, win), &group) != MPI_SUCCESS)
		return false;
	known = lib_MPI_Group_rank(group, rank) == MPI_SUCCESS && lib_MPI_Group_size(group, size) == MPI_SUCCESS;
	lib_MPI_Group_free(&group);
	return known;
}

static bool comm_name(const union mpi_object *comm, struct text *name)
{
	int length;

	name->bytes[0] = '\0';
	return lib_MPI_Comm_get_name(HANDLE_GET(MPI_Comm, comm), name->bytes, &length) == MPI_SUCCESS;
}

static bool win_name(const union mpi_object *win, struct text *name)
{
	int length;

	name->bytes[0] = '\0';
	return lib_MPI_Win_get_name(HANDLE_GET(MPI_Win, win), name->bytes, &length) == MPI_SUCCESS;
}

/* ---- MPI_T: performance variables (MPI-4.1 section 15.3.7) ---- */

static void describe_type(MPI_Datatype type, int *datatype, int *bytes)
{
	*datatype = abi_datatype(type);
	/* One that we don't know may be MPI_DATATYPE_NULL, which Open MPI leaves there for types it doesn't know itself: asking its size aborts. */
	if (*datatype == TYPE_OTHER || lib_MPI_Type_size(type, bytes) != MPI_SUCCESS)
		*bytes = 0;
}

static int pvar_count(int *count)
{
	return code(lib_MPI_T_pvar_get_num(count));
}

static int pvar_describe(int index, struct pvar_description *out, struct text *name, struct text *description)
{
	int name_length = sizeof name->bytes, description_length = sizeof description->bytes;
	int verbosity = 0, mpi_class = 0, bind = 0, readonly = 0, continuous = 0, atomic = 0, rc;
	MPI_Datatype type = abi_datatype_null();
	MPI_T_enum enumeration = MPI_T_ENUM_NULL;

	name->bytes[0] = description->bytes[0] = '\0';
	rc = lib_MPI_T_pvar_get_info(index, name->bytes, &name_length, &verbosity, &mpi_class, &type, &enumeration,
				     description->bytes, &description_length, &bind, &readonly, &continuous, &atomic);
	if (rc != MPI_SUCCESS)
		return code(rc);
	out->mpi_class = consecutive(mpi_class, MPI_T_PVAR_CLASS_STATE, 10, 0, CLASS_UNKNOWN);
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

static int session_open(void **session)
{
	return code(lib_MPI_T_pvar_session_create((MPI_T_pvar_session *)session));
}

static int handle_open(void *session, int index, union mpi_object *object, void **handle, int *count)
{
	return code(lib_MPI_T_pvar_handle_alloc((MPI_T_pvar_session)session, index, object, (MPI_T_pvar_handle *)handle, count));
}

static int handle_close(void *session, void **handle)
{
	return code(lib_MPI_T_pvar_handle_free((MPI_T_pvar_session)session, (MPI_T_pvar_handle *)handle));
}

static int handle_start(void *session, void *handle)
{
	return code(lib_MPI_T_pvar_start((MPI_T_pvar_session)session, (MPI_T_pvar_handle)handle));
}

static int handle_read(void *session, void *handle, void *values)
{
	return code(lib_MPI_T_pvar_read((MPI_T_pvar_session)session, (MPI_T_pvar_handle)handle, values));
}

static int enum_describe(void *enumeration, int *items, struct text *name)
{
	int length = sizeof name->bytes;

	name->bytes[0] = '\0';
	return code(lib_MPI_T_enum_get_info((MPI_T_enum)enumeration, items, name->bytes, &length));
}

static int enum_item(void *enumeration, int item, int *value, struct text *name)
{
	int length = sizeof name->bytes;

	name->bytes[0] = '\0';
	return code(lib_MPI_T_enum_get_item((MPI_T_enum)enumeration, item, value, name->bytes, &length));
}

/* ---- MPI_T: control variables (15.3.6) and categories (15.3.8) ---- */

static int cvar_count(int *count)
{
	return code(lib_MPI_T_cvar_get_num(count));
}

static int cvar_describe(int index, struct cvar_description *out, struct text *name, struct text *description)
{
	int name_length = sizeof name->bytes, description_length = sizeof description->bytes;
	int verbosity = 0, bind = 0, scope = 0, rc;
	MPI_Datatype type = abi_datatype_null();
	MPI_T_enum enumeration = MPI_T_ENUM_NULL;

	name->bytes[0] = description->bytes[0] = '\0';
	rc = lib_MPI_T_cvar_get_info(index, name->bytes, &name_length, &verbosity, &type, &enumeration, description->bytes,
				     &description_length, &bind, &scope);
	if (rc != MPI_SUCCESS)
		return code(rc);
	out->scope = consecutive(scope, MPI_T_SCOPE_CONSTANT, 7, 0, 255);
	out->verbosity = verbosity_of(verbosity);
	out->bind = bind_of(bind);
	out->enumeration = enumeration == MPI_T_ENUM_NULL ? NULL : (void *)enumeration;
	describe_type(type, &out->datatype, &out->datatype_bytes);
	return CODE_SUCCESS;
}

static int cvar_read(int index, int datatype, int datatype_bytes, void *bytes, size_t capacity, int *count)
{
	MPI_T_cvar_handle handle;
	int rc;

	if (!abi_cvar_readable(index, datatype == TYPE_CHAR))
		return CODE_NOT_ACCESSIBLE;
	rc = lib_MPI_T_cvar_handle_alloc(index, NULL, &handle, count);
	if (rc != MPI_SUCCESS)
		return code(rc);
	if (*count < 0 || datatype_bytes <= 0 || (size_t)*count > capacity / (size_t)datatype_bytes) {
		lib_MPI_T_cvar_handle_free(&handle);
		return CODE_MEMORY;
	}
	rc = lib_MPI_T_cvar_read(handle, bytes);
	lib_MPI_T_cvar_handle_free(&handle);
	return code(rc);
}

static int category_count(int *count)
{
	return code(lib_MPI_T_category_get_num(count));
}

static int category_describe(int index, int *pvars, int *cvars, int *categories, struct text *name, struct text *description)
{
	int name_length = sizeof name->bytes, description_length = sizeof description->bytes;

	name->bytes[0] = description->bytes[0] = '\0';
	return code(lib_MPI_T_category_get_info(index, name->bytes, &name_length, description->bytes, &description_length,
						cvars, pvars, categories));
}

static int category_members(int index, int pvars, int *pvar, int cvars, int *cvar, int categories, int *category)
{
	int rc = lib_MPI_T_category_get_pvars(index, pvars, pvar);

	if (rc == MPI_SUCCESS)
		rc = lib_MPI_T_category_get_cvars(index, cvars, cvar);
	if (rc == MPI_SUCCESS)
		rc = lib_MPI_T_category_get_categories(index, categories, category);
	return code(rc);
}

const struct abi ABI_IDENTIFIER = {
	.name = ABI_NAME,
	.number = ABI_NUMBER,
	.speaks = abi_speaks,
	.resolve = resolve,
	.tool_init = tool_init,
	.thread_level = thread_level,
	.thread_multiple = thread_multiple,
	.observe = observe,
	.watch_finalize = watch_finalize,
	.pvar_count = pvar_count,
	.pvar_describe = pvar_describe,
	.session_open = session_open,
	.handle_open = handle_open,
	.handle_close = handle_close,
	.handle_start = handle_start,
	.handle_read = handle_read,
	.enum_describe = enum_describe,
	.enum_item = enum_item,
	.cvar_count = cvar_count,
	.cvar_describe = cvar_describe,
	.cvar_read = cvar_read,
	.category_count = category_count,
	.category_describe = category_describe,
	.category_members = category_members,
	.comm_world = comm_world,
	.comm_self = comm_self,
	.comm_parent = comm_parent,
	.comm_at = comm_at,
	.win_at = win_at,
	.comm_in = comm_in,
	.win_in = win_in,
	.comm_shape = comm_shape,
	.win_shape = win_shape,
	.comm_name = comm_name,
	.win_name = win_name,
	.comm_mark = comm_mark,
	.win_mark = win_mark,
	.comm_marked = comm_marked,
	.win_marked = win_marked,
};
