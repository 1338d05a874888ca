/*
 * abi_template.h - the body of an abi file: the ABI's constants behind struct calls_abi.
 *
 * Included once by each abi_*.c after its description of the ABI (../abi). The including file defines ABI_IDENTIFIER,
 * ABI_NUMBER, ABI_ASKS_STATUS, abi_status_bytes() and ABI_HANDLE(), a predefined handle
 * by its constant or by Open MPI's symbol for it.
 */
_Static_assert(sizeof(MPI_Count) == sizeof(long long), "library.h takes MPI_Count for a long long");
_Static_assert(sizeof(MPI_Datatype) == sizeof(MPI_Comm), "one handle_size for all");
_Static_assert(sizeof(MPI_Datatype) == sizeof(MPI_Request), "one handle_size for all");

static intptr_t datatype_null(void *(*find)(const char *symbol))
{
	return ABI_HANDLE(MPI_DATATYPE_NULL, "ompi_mpi_datatype_null", find);
}

static intptr_t no_op(void *(*find)(const char *symbol))
{
	return ABI_HANDLE(MPI_NO_OP, "ompi_mpi_op_no_op", find);
}

static intptr_t comm_world(void *(*find)(const char *symbol))
{
	return ABI_HANDLE(MPI_COMM_WORLD, "ompi_mpi_comm_world", find);
}

static intptr_t comm_null(void *(*find)(const char *symbol))
{
	return ABI_HANDLE(MPI_COMM_NULL, "ompi_mpi_comm_null", find);
}

static intptr_t request_null(void *(*find)(const char *symbol))
{
	return ABI_HANDLE(MPI_REQUEST_NULL, "ompi_request_null", find);
}

const struct calls_abi ABI_IDENTIFIER = {
	.number = ABI_NUMBER,
	.in_place = MPI_IN_PLACE,
	.status_ignore = MPI_STATUS_IGNORE,
	.proc_null = MPI_PROC_NULL,
	.root = MPI_ROOT,
	.any_source = MPI_ANY_SOURCE,
	.cart = MPI_CART,
	.graph = MPI_GRAPH,
	.dist_graph = MPI_DIST_GRAPH,
	.handle_size = sizeof(MPI_Datatype),
	.handle_mask = sizeof(MPI_Comm) == 8 ? UINT64_MAX : UINT32_MAX,
	.asks_status = ABI_ASKS_STATUS,
	.status_bytes = abi_status_bytes,
	.datatype_null = datatype_null,
	.no_op = no_op,
	.comm_world = comm_world,
	.comm_null = comm_null,
	.request_null = request_null,
};
