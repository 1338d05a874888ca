/*
 * abi_objects.h - a part of abi_template.h: the predefined communicators; how the agent learns that a communicator, a
 * window or a datatype ends; what the library tells of them (docs/internals/protocol.md, Objects).
 */

/* X(kind, MPI's word for it in its functions' names, the type). */
#define MARKED_KINDS(X)                                                                                         \
	X(BIND_COMM, Comm, MPI_Comm)                                                                            \
	X(BIND_WIN, Win, MPI_Win)                                                                               \
	X(BIND_DATATYPE, Type, MPI_Datatype)

/* Set in observe, in MPI_Init. */
static const struct abi_events *observer;

/* ---- attributes ---- */

#define ATTRIBUTE(kind, Kind, type)                                                                             \
	static int Kind##_keyval = MPI_KEYVAL_INVALID;                                                          \
                                                                                                                \
	static int Kind##_no_copy(type object, int keyval, void *extra, void *in, void *out, int *flag)         \
	{                                                                                                       \
		(void)object, (void)keyval, (void)extra, (void)in, (void)out;                                   \
		*flag = 0;                                                                                      \
		return MPI_SUCCESS;                                                                             \
	}                                                                                                       \
                                                                                                                \
	static int Kind##_deleted(type object, int keyval, void *mark, void *extra)                             \
	{                                                                                                       \
		(void)object, (void)keyval, (void)extra;                                                        \
		observer->freed(mark);                                                                          \
		return MPI_SUCCESS;                                                                             \
	}
MARKED_KINDS(ATTRIBUTE)

static int finalize_keyval = MPI_KEYVAL_INVALID;

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
#define CREATE(kind, Kind, type)                                                                                \
	if (lib_MPI_##Kind##_create_keyval(Kind##_no_copy, Kind##_deleted, &Kind##_keyval, NULL) != MPI_SUCCESS) \
		return false;
	MARKED_KINDS(CREATE)
	return lib_MPI_Comm_create_keyval(Comm_no_copy, self_deleted, &finalize_keyval, NULL) == MPI_SUCCESS;
}

static bool watch_finalize(void)
{
	return lib_MPI_Comm_set_attr(comm_self, finalize_keyval, library) == MPI_SUCCESS;
}

static bool mark(int kind, const union mpi_object *object, void *value)
{
#define MARK(kind, Kind, type)                                                                                  \
	case kind: return lib_MPI_##Kind##_set_attr(HANDLE_GET(type, object), Kind##_keyval, value) == MPI_SUCCESS;
	switch (kind) {
	MARKED_KINDS(MARK)
	default: return false;
	}
}

static void *marked(int kind, const union mpi_object *object)
{
	void *value = NULL;
	int found = 0, rc = MPI_ERR_OTHER;

#define MARKED(kind, Kind, type)                                                                                \
	case kind: rc = lib_MPI_##Kind##_get_attr(HANDLE_GET(type, object), Kind##_keyval, &value, &found); break;
	switch (kind) {
	MARKED_KINDS(MARKED)
	}
	return rc == MPI_SUCCESS && found ? value : NULL;
}

/* ---- places and names ---- */

static bool world(int *rank, int *size)
{
	return lib_MPI_Comm_rank(comm_world, rank) == MPI_SUCCESS && lib_MPI_Comm_size(comm_world, size) == MPI_SUCCESS;
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

static bool comm_predefined(int i, union mpi_object *out)
{
	MPI_Comm comm = i == 0 ? comm_world : i == 1 ? comm_self : comm_null;

	if (i == 2 && lib_MPI_Comm_get_parent(&comm) != MPI_SUCCESS)
		return false;
	HANDLE_PUT(out, comm);
	return comm != comm_null;
}

static bool object_name(int kind, const union mpi_object *object, struct text *name)
{
	int length = 0, rc = MPI_ERR_OTHER;

	name->bytes[0] = '\0';
#define NAME(kind, Kind, type)                                                                                  \
	case kind: rc = lib_MPI_##Kind##_get_name(HANDLE_GET(type, object), name->bytes, &length); break;
	switch (kind) {
	MARKED_KINDS(NAME)
	}
	return rc == MPI_SUCCESS && (kind != BIND_DATATYPE || !abi_own_name(name->bytes));
}

/* ---- what the library tells ---- */

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
