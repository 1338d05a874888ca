
static MEASURES int measure_MPI_Recv(next_7 *next, const void *frame, intptr_t buf, intptr_t count, intptr_t type, intptr_t source, intptr_t tag, intptr_t comm, intptr_t status)
{
	struct call call;
	union own_status own;

	if (!call_begins(&call, FUNCTION_MPI_Recv, BIND_COMM, comm, UNORDERED, call_names(source, tag), frame))
		return next(buf, count, type, source, tag, comm, status);
	intptr_t seen = status_or_own(status, &own);
	int rc = next(buf, count, type, source, tag, comm, seen);
	call_returns(&call, WAITING);
	struct moved moved = NOTHING_MOVED;
	if (rc == 0)
		moved = (struct moved){ .in = bytes_in_status(seen) };
	call_counts(&call, moved.out, moved.in);
	if (counts_sizes() && rc == 0)
		call_size(&call, larger(moved));
	return rc;
}

EXPORT int MPI_Recv(intptr_t buf, intptr_t count, intptr_t type, intptr_t source, intptr_t tag, intptr_t comm, intptr_t status)
{
	NEXT(next_7, MPI_Recv);
	return measure_MPI_Recv(next, FRAME, buf, count, type, source, tag, comm, status);
}

EXPORT int PMPI_Recv(intptr_t buf, intptr_t count, intptr_t type, intptr_t source, intptr_t tag, intptr_t comm, intptr_t status)
{
	NEXT(next_7, PMPI_Recv);
	return measure_MPI_Recv(next, FRAME, buf, count, type, source, tag, comm, status);
}
