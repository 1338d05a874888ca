/*
 * abi_template.h - the body of an abi file: MPI's functions behind struct abi.
 *
 * Included once by each abi_*.c after its description of the ABI (abi/). The including file defines
 *   ABI_IDENTIFIER, ABI_NAME, ABI_NUMBER     what it is
 *   abi_speaks()                             whether a library is of this family
 *   abi_bound()                              where MPI_T is to find the handle of an object (openmpi.h)
 *   abi_comm_world() … abi_datatype()        its predefined handles
 *   abi_cvar_readable()                      whether a control variable can be read without a crash
 *   abi_object_in(), abi_object_at()         an object out of an argument register, and out of the program's memory
 *   abi_own_name()                           whether the library has made a name up
 *   abi_learn()                              looks its symbols up, once, in resolve
 *   abi_pvar_writable(), ABI_NEVER_STOP      what tools must not do to performance variables (struct abi)
 *   ABI_ON_REQUEST                           those that are opened only on request
 *   HANDLE_PUT(object, handle)               stores a handle in a union mpi_object
 *   HANDLE_GET(type, object)                 and takes it out
 */
#include "abi.h"

#include "abi/functions.h"
#include "agent.h"
#include "openmpi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* Written once by resolve, in MPI_Init, before any other function here may be called. */
#define DECLARE(name, parameters) static int (*lib_##name) parameters;
LIBRARY_FUNCTIONS(DECLARE)
OPTIONAL_FUNCTIONS(DECLARE)
static void *library;

/* Set in observe, in MPI_Init; invalid before. */
static int comm_keyval = MPI_KEYVAL_INVALID, win_keyval = MPI_KEYVAL_INVALID, type_keyval = MPI_KEYVAL_INVALID,
	   finalize_keyval = MPI_KEYVAL_INVALID;
static const struct abi_events *observer;

/* The P-names: what other tools have interposed is none of our business. */
static bool resolve(void *opened)
{
	bool complete = true;

	library = opened;
#define RESOLVE(name, parameters)                                      \
	*(void **)&lib_##name = dlsym(opened, "P" #name);              \
	if (lib_##name == NULL) {                                      \
		agent_log("the MPI library has no P%s", #name);        \
		complete = false;                                      \
	}
	LIBRARY_FUNCTIONS(RESOLVE)
	abi_learn(opened);
#define RESOLVE_OPTIONAL(name, parameters) *(void **)&lib_##name = dlsym(opened, "P" #name);
	OPTIONAL_FUNCTIONS(RESOLVE_OPTIONAL)
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
	case MPI_T_ERR_NOT_SUPPORTED: return CODE_NOT_SUPPORTED;
	case MPI_T_ERR_NOT_ACCESSIBLE: return CODE_NOT_ACCESSIBLE;
	default: return CODE_OTHER;
	}
}

/* The constants of most kinds are consecutive in every ABI; only where they start differs. Ours start at 0. */
static int consecutive(int value, int first, int last, int unknown)
{
	return value >= first && value <= last ? value - first : unknown;
}

static int verbosity_of(int value)
{
	static const int values[] = {
		MPI_T_VERBOSITY_USER_BASIC,   MPI_T_VERBOSITY_USER_DETAIL,   MPI_T_VERBOSITY_USER_ALL,
		MPI_T_VERBOSITY_TUNER_BASIC,  MPI_T_VERBOSITY_TUNER_DETAIL,  MPI_T_VERBOSITY_TUNER_ALL,
		MPI_T_VERBOSITY_MPIDEV_BASIC, MPI_T_VERBOSITY_MPIDEV_DETAIL, MPI_T_VERBOSITY_MPIDEV_ALL,
	};

	for (int i = 0; i < (int)(sizeof values / sizeof values[0]); i++)
		if (values[i] == value)
			return i + 1;
	return 0;
}

static int bind_of(int value)
{
	return consecutive(value, MPI_T_BIND_NO_OBJECT, MPI_T_BIND_MPI_SESSION, BIND_UNKNOWN);
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

static int type_no_copy(MPI_Datatype type, int keyval, void *extra, void *in, void *out, int *flag)
{
	(void)type, (void)keyval, (void)extra, (void)in, (void)out;
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

static int type_deleted(MPI_Datatype type, int keyval, void *mark, void *extra)
{
	(void)type, (void)keyval, (void)extra;
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

static bool observe(const struct abi_events *events)
{
	observer = events;
	return lib_MPI_Comm_create_keyval(comm_no_copy, comm_deleted, &comm_keyval, NULL) == MPI_SUCCESS &&
	       lib_MPI_Comm_create_keyval(comm_no_copy, self_deleted, &finalize_keyval, NULL) == MPI_SUCCESS &&
	       lib_MPI_Win_create_keyval(win_no_copy, win_deleted, &win_keyval, NULL) == MPI_SUCCESS &&
	       lib_MPI_Type_create_keyval(type_no_copy, type_deleted, &type_keyval, NULL) == MPI_SUCCESS;
}

static bool world(int *rank, int *size)
{
	return lib_MPI_Comm_rank(abi_comm_world(), rank) == MPI_SUCCESS && lib_MPI_Comm_size(abi_comm_world(), size) == MPI_SUCCESS;
}

static bool session_world(const union mpi_object *session, int *rank, int *size)
{
	MPI_Group group;
	bool known;

	if (lib_MPI_Group_from_session_pset == NULL ||
	    lib_MPI_Group_from_session_pset(HANDLE_GET(MPI_Session, session), "mpi://WORLD", &group) != MPI_SUCCESS)
		return false;
	known = lib_MPI_Group_rank(group, rank) == MPI_SUCCESS && lib_MPI_Group_size(group, size) == MPI_SUCCESS;
	lib_MPI_Group_free(&group);
	return known;
}

static bool watch_finalize(void)
{
	return lib_MPI_Comm_set_attr(abi_comm_self(), finalize_keyval, library) == MPI_SUCCESS;
}

static bool mark(int kind, const union mpi_object *object, void *value)
{
	switch (kind) {
	case BIND_COMM: return lib_MPI_Comm_set_attr(HANDLE_GET(MPI_Comm, object), comm_keyval, value) == MPI_SUCCESS;
	case BIND_WIN: return lib_MPI_Win_set_attr(HANDLE_GET(MPI_Win, object), win_keyval, value) == MPI_SUCCESS;
	case BIND_DATATYPE: return lib_MPI_Type_set_attr(HANDLE_GET(MPI_Datatype, object), type_keyval, value) == MPI_SUCCESS;
	default: return false;
	}
}

static void *marked(int kind, const union mpi_object *object)
{
	void *value = NULL;
	int found = 0, rc = MPI_ERR_OTHER;

	switch (kind) {
	case BIND_COMM: rc = lib_MPI_Comm_get_attr(HANDLE_GET(MPI_Comm, object), comm_keyval, &value, &found); break;
	case BIND_WIN: rc = lib_MPI_Win_get_attr(HANDLE_GET(MPI_Win, object), win_keyval, &value, &found); break;
	case BIND_DATATYPE: rc = lib_MPI_Type_get_attr(HANDLE_GET(MPI_Datatype, object), type_keyval, &value, &found); break;
	}
	return rc == MPI_SUCCESS && found ? value : NULL;
}

/* ---- objects ---- */

static bool comm_predefined(int i, union mpi_object *out)
{
	MPI_Comm comm = i == 0 ? abi_comm_world() : i == 1 ? abi_comm_self() : abi_comm_null();

	if (i == 2 && lib_MPI_Comm_get_parent(&comm) != MPI_SUCCESS)
		return false;
	HANDLE_PUT(out, comm);
	return comm != abi_comm_null();
}

static bool object_name(int kind, const union mpi_object *object, struct text *name)
{
	int length = 0, rc = MPI_ERR_OTHER;

	name->bytes[0] = '\0';
	switch (kind) {
	case BIND_COMM: rc = lib_MPI_Comm_get_name(HANDLE_GET(MPI_Comm, object), name->bytes, &length); break;
	case BIND_WIN: rc = lib_MPI_Win_get_name(HANDLE_GET(MPI_Win, object), name->bytes, &length); break;
	case BIND_DATATYPE:
		rc = lib_MPI_Type_get_name(HANDLE_GET(MPI_Datatype, object), name->bytes, &length);
		if (rc == MPI_SUCCESS && abi_own_name(name->bytes))
			return false;
		break;
	}
	return rc == MPI_SUCCESS;
}

/* ---- what the library tells of an object: docs/protocol.md, Objects ---- */

#define MAX_DIMENSIONS 64 /* of a grid whose sizes are told */

static void describe_cartesian(MPI_Comm comm, struct details *d)
{
	int dims[MAX_DIMENSIONS], periods[MAX_DIMENSIONS], coordinates[MAX_DIMENSIONS], count = 0;
	struct detail_list sizes = { 0 }, wraps = { 0 };

	details_add(d, "topology", "cart");
	/* Room for fewer than there are is an error, and an error is fatal. */
	if (lib_MPI_Cartdim_get(comm, &count) != MPI_SUCCESS || count <= 0 || count > MAX_DIMENSIONS ||
	    lib_MPI_Cart_get(comm, count, dims, periods, coordinates) != MPI_SUCCESS)
		return;
	for (int i = 0; i < count; i++) {
		list_number(&sizes, dims[i]);
		list_number(&wraps, periods[i] != 0);
	}
	details_list(d, "dims", &sizes);
	details_list(d, "periods", &wraps);
}

static void describe_topology(MPI_Comm comm, struct details *d)
{
	int topology = MPI_UNDEFINED, in = 0, out = 0, weighted = 0;

	if (lib_MPI_Topo_test(comm, &topology) != MPI_SUCCESS)
		return;
	if (topology == MPI_CART) {
		describe_cartesian(comm, d);
	} else if (topology == MPI_GRAPH) {
		details_add(d, "topology", "graph");
		if (lib_MPI_Graphdims_get(comm, &in, &out) == MPI_SUCCESS) {
			details_number(d, "nodes", in);
			details_number(d, "edges", out);
		}
	} else if (topology == MPI_DIST_GRAPH) {
		details_add(d, "topology", "dist_graph");
		if (lib_MPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted) == MPI_SUCCESS) {
			details_number(d, "indegree", in);
			details_number(d, "outdegree", out);
		}
	}
}

static bool describe_comm(MPI_Comm comm, struct object_description *out)
{
	int inter = 0, size;

	if (lib_MPI_Comm_rank(comm, &out->rank) != MPI_SUCCESS || lib_MPI_Comm_size(comm, &out->size) != MPI_SUCCESS ||
	    lib_MPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS)
		return true;
	out->inter = inter != 0;
	if (!out->inter)
		describe_topology(comm, &out->details);
	else if (lib_MPI_Comm_remote_size(comm, &size) == MPI_SUCCESS)
		details_number(&out->details, "remote_size", size);
	return true;
}

static bool describe_group(MPI_Group group, struct object_description *out)
{
	if (lib_MPI_Group_rank(group, &out->rank) != MPI_SUCCESS || out->rank < 0)
		out->rank = -1; /* this process is no member */
	if (lib_MPI_Group_size(group, &out->size) != MPI_SUCCESS)
		out->size = -1;
	return true;
}

/* An attribute of the window that the library sets itself; NULL: it doesn't. */
static void *win_attribute(MPI_Win win, int keyval)
{
	void *value = NULL;
	int found = 0;

	return lib_MPI_Win_get_attr(win, keyval, &value, &found) == MPI_SUCCESS && found ? value : NULL;
}

static bool describe_win(MPI_Win win, struct object_description *out)
{
	struct details *d = &out->details;
	const MPI_Aint *bytes = win_attribute(win, MPI_WIN_SIZE);
	const int *unit = win_attribute(win, MPI_WIN_DISP_UNIT), *flavor = win_attribute(win, MPI_WIN_CREATE_FLAVOR),
		  *model = win_attribute(win, MPI_WIN_MODEL);
	MPI_Group group;
	char base[24];

	if (lib_MPI_Win_get_group(win, &group) == MPI_SUCCESS) {
		describe_group(group, out);
		lib_MPI_Group_free(&group);
	}
	snprintf(base, sizeof base, "0x%llx", (unsigned long long)(uintptr_t)win_attribute(win, MPI_WIN_BASE));
	details_add(d, "base", base);
	if (bytes != NULL)
		details_number(d, "bytes", (long long)*bytes);
	if (unit != NULL)
		details_number(d, "disp_unit", *unit);
	if (flavor != NULL && *flavor == MPI_WIN_FLAVOR_CREATE)
		details_add(d, "flavor", "create");
	else if (flavor != NULL && *flavor == MPI_WIN_FLAVOR_ALLOCATE)
		details_add(d, "flavor", "allocate");
	else if (flavor != NULL && *flavor == MPI_WIN_FLAVOR_DYNAMIC)
		details_add(d, "flavor", "dynamic");
	else if (flavor != NULL && *flavor == MPI_WIN_FLAVOR_SHARED)
		details_add(d, "flavor", "shared");
	if (model != NULL && *model == MPI_WIN_SEPARATE)
		details_add(d, "model", "separate");
	else if (model != NULL && *model == MPI_WIN_UNIFIED)
		details_add(d, "model", "unified");
	return true;
}

static void describe_mode(int mode, struct details *d)
{
	static const struct {
		int bit;
		const char *name;
	} bits[] = {
		{ MPI_MODE_RDONLY, "rdonly" },
		{ MPI_MODE_WRONLY, "wronly" },
		{ MPI_MODE_RDWR, "rdwr" },
		{ MPI_MODE_CREATE, "create" },
		{ MPI_MODE_EXCL, "excl" },
		{ MPI_MODE_DELETE_ON_CLOSE, "delete_on_close" },
		{ MPI_MODE_UNIQUE_OPEN, "unique_open" },
		{ MPI_MODE_APPEND, "append" },
		{ MPI_MODE_SEQUENTIAL, "sequential" },
	};
	struct detail_list names = { 0 };

	for (size_t i = 0; i < sizeof bits / sizeof bits[0]; i++)
		if (mode & bits[i].bit)
			list_add(&names, bits[i].name);
	details_list(d, "mode", &names);
}

static const char *combiner_name(int combiner)
{
	switch (combiner) {
	case MPI_COMBINER_DUP: return "dup";
	case MPI_COMBINER_CONTIGUOUS: return "contiguous";
	case MPI_COMBINER_VECTOR: return "vector";
	case MPI_COMBINER_HVECTOR: return "hvector";
	case MPI_COMBINER_INDEXED: return "indexed";
	case MPI_COMBINER_HINDEXED: return "hindexed";
	case MPI_COMBINER_INDEXED_BLOCK: return "indexed_block";
	case MPI_COMBINER_HINDEXED_BLOCK: return "hindexed_block";
	case MPI_COMBINER_STRUCT: return "struct";
	case MPI_COMBINER_SUBARRAY: return "subarray";
	case MPI_COMBINER_DARRAY: return "darray";
	case MPI_COMBINER_RESIZED: return "resized";
	default: return "other"; /* of a later standard */
	}
}

static bool describe_datatype(MPI_Datatype type, struct object_description *out)
{
	MPI_Count integers, addresses, counts, types, lb, extent, bytes;
	int few[3], combiner = MPI_COMBINER_NAMED, rc;

	/* A type made with large counts can't be asked by the old function: that is an error, and an error is fatal. */
	if (lib_MPI_Type_get_envelope_c != NULL)
		rc = lib_MPI_Type_get_envelope_c(type, &integers, &addresses, &counts, &types, &combiner);
	else
		rc = lib_MPI_Type_get_envelope(type, &few[0], &few[1], &few[2], &combiner);
	/* Predefined ones may be committed too, and take no attribute. Fortran's live as long as MPI does. */
	if (rc != MPI_SUCCESS || combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
	    combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER)
		return false;
	if (lib_MPI_Type_size_x(type, &bytes) == MPI_SUCCESS)
		details_number(&out->details, "bytes", (long long)bytes);
	if (lib_MPI_Type_get_extent_x(type, &lb, &extent) == MPI_SUCCESS) {
		details_number(&out->details, "extent", (long long)extent);
		details_number(&out->details, "lb", (long long)lb);
	}
	details_add(&out->details, "combiner", combiner_name(combiner));
	return true;
}

/* Of a new one, which no other thread knows: a key that is gone meanwhile would be an error, and an error is fatal. */
static bool describe_info(MPI_Info info, struct object_description *out)
{
	char key[1024]; /* MPI_MAX_INFO_KEY is 36 (Open MPI) or 255 (MPICH); the library in the process may be a later one */
	struct detail_list keys = { 0 };
	int count = 0;

	if (lib_MPI_Info_get_nkeys(info, &count) != MPI_SUCCESS)
		return true;
	for (int i = 0; i < count && !keys.full; i++)
		if (lib_MPI_Info_get_nthkey(info, i, key) == MPI_SUCCESS)
			list_add(&keys, key);
	details_list(&out->details, "keys", &keys);
	return true;
}

static bool info_has(const union mpi_object *info, const char *key)
{
	int length, has = 0;

	return lib_MPI_Info_get_valuelen(HANDLE_GET(MPI_Info, info), key, &length, &has) == MPI_SUCCESS && has;
}

static bool describe_op(MPI_Op op, struct object_description *out)
{
	int commutes = 0;

	if (lib_MPI_Op_commutative(op, &commutes) == MPI_SUCCESS)
		details_add(&out->details, "commutative", commutes ? "true" : "false");
	return true;
}

static bool object_describe(int kind, const union mpi_object *object, const struct making *how, struct object_description *out)
{
	out->rank = out->size = -1;
	out->inter = false;
	details_reset(&out->details);
	switch (kind) {
	case BIND_COMM: return describe_comm(HANDLE_GET(MPI_Comm, object), out);
	case BIND_WIN: return describe_win(HANDLE_GET(MPI_Win, object), out);
	case BIND_DATATYPE: return describe_datatype(HANDLE_GET(MPI_Datatype, object), out);
	case BIND_GROUP: return describe_group(HANDLE_GET(MPI_Group, object), out);
	case BIND_OP: return describe_op(HANDLE_GET(MPI_Op, object), out);
	case BIND_INFO: return describe_info(HANDLE_GET(MPI_Info, object), out);
	case BIND_FILE:
		if (how != NULL)
			describe_mode(how->mode, &out->details);
		return true;
	default: return true;
	}
}

/* ---- MPI_T: performance variables (MPI-4.1 section 15.3.7) ---- */

/* Not MPI_Type_size: this runs in the agent's thread, too, which calls no MPI function but those of MPI_T. 0: not one
 * that we know. */
static int bytes_of(int datatype)
{
	switch (datatype) {
	case TYPE_INT: return sizeof(int);
	case TYPE_UNSIGNED: return sizeof(unsigned);
	case TYPE_UNSIGNED_LONG: return sizeof(unsigned long);
	case TYPE_UNSIGNED_LONG_LONG: return sizeof(unsigned long long);
	case TYPE_COUNT: return sizeof(MPI_Count);
	case TYPE_CHAR: return sizeof(char);
	case TYPE_DOUBLE: return sizeof(double);
	case TYPE_INT32: return sizeof(int32_t);
	case TYPE_INT64: return sizeof(int64_t);
	case TYPE_UINT32: return sizeof(uint32_t);
	case TYPE_UINT64: return sizeof(uint64_t);
	case TYPE_LONG: return sizeof(long);
	case TYPE_LONG_LONG: return sizeof(long long);
	case TYPE_FLOAT: return sizeof(float);
	case TYPE_BOOL: return sizeof(bool);
	default: return 0;
	}
}

static void describe_type(MPI_Datatype type, int *datatype, int *bytes)
{
	*datatype = abi_datatype(type);
	*bytes = bytes_of(*datatype);
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

static int session_open(void **session)
{
	return code(lib_MPI_T_pvar_session_create((MPI_T_pvar_session *)session));
}

static int handle_open(void *session, int index, union mpi_object *object, void **handle, int *count)
{
	struct openmpi_bound bound;

	return code(lib_MPI_T_pvar_handle_alloc((MPI_T_pvar_session)session, index, abi_bound(object, &bound),
						(MPI_T_pvar_handle *)handle, count));
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

/* ---- MPI_T: what only the sessions of tools need ---- */

#define OPTIONAL(name, arguments) (lib_##name == NULL ? CODE_NOT_SUPPORTED : code(lib_##name arguments))

static int session_close(void **session)
{
	return OPTIONAL(MPI_T_pvar_session_free, ((MPI_T_pvar_session *)session));
}

static int handle_stop(void *session, void *handle)
{
	return OPTIONAL(MPI_T_pvar_stop, ((MPI_T_pvar_session)session, (MPI_T_pvar_handle)handle));
}

static int handle_write(void *session, void *handle, const void *values)
{
	return OPTIONAL(MPI_T_pvar_write, ((MPI_T_pvar_session)session, (MPI_T_pvar_handle)handle, values));
}

static int handle_reset(void *session, void *handle)
{
	return OPTIONAL(MPI_T_pvar_reset, ((MPI_T_pvar_session)session, (MPI_T_pvar_handle)handle));
}

static int handle_readreset(void *session, void *handle, void *values)
{
	return OPTIONAL(MPI_T_pvar_readreset, ((MPI_T_pvar_session)session, (MPI_T_pvar_handle)handle, values));
}

static int pvar_index(const char *name, int mpi_class, int *index)
{
	return OPTIONAL(MPI_T_pvar_get_index, (name, MPI_T_PVAR_CLASS_STATE + mpi_class, index));
}

static int cvar_index(const char *name, int *index)
{
	return OPTIONAL(MPI_T_cvar_get_index, (name, index));
}

static int category_index(const char *name, int *index)
{
	return OPTIONAL(MPI_T_category_get_index, (name, index));
}

static int category_stamp(int *stamp)
{
	return OPTIONAL(MPI_T_category_changed, (stamp));
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

/* ---- MPI_T: control variables (15.3.6) and categories (15.3.9) ---- */

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
	out->scope = consecutive(scope, MPI_T_SCOPE_CONSTANT, MPI_T_SCOPE_ALL_EQ, 255);
	out->verbosity = verbosity_of(verbosity);
	out->bind = bind_of(bind);
	out->enumeration = enumeration == MPI_T_ENUM_NULL ? NULL : (void *)enumeration;
	describe_type(type, &out->datatype, &out->datatype_bytes);
	return CODE_SUCCESS;
}

static int cvar_read(int index, union mpi_object *object, int datatype, int datatype_bytes, void *bytes, size_t capacity, int *count)
{
	struct openmpi_bound bound;
	MPI_T_cvar_handle handle;
	int rc;

	if (!abi_cvar_readable(index, datatype == TYPE_CHAR))
		return CODE_NOT_ACCESSIBLE;
	rc = lib_MPI_T_cvar_handle_alloc(index, abi_bound(object, &bound), &handle, count);
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

static int cvar_write(int index, union mpi_object *object, int datatype, const void *bytes, int count, int *room)
{
	struct openmpi_bound bound;
	MPI_T_cvar_handle handle;
	int rc;

	if (!abi_cvar_readable(index, datatype == TYPE_CHAR))
		return CODE_NOT_ACCESSIBLE;
	if (lib_MPI_T_cvar_write == NULL)
		return CODE_NOT_SUPPORTED;
	rc = lib_MPI_T_cvar_handle_alloc(index, abi_bound(object, &bound), &handle, room);
	if (rc != MPI_SUCCESS)
		return code(rc);
	/* A string's count is the size of the buffer it is read into, which Open MPI doesn't check and MPICH only
	 * asserts. */
	if (datatype == TYPE_CHAR ? count >= *room : count != *room) {
		lib_MPI_T_cvar_handle_free(&handle);
		return CODE_MEMORY;
	}
	rc = lib_MPI_T_cvar_write(handle, bytes);
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
