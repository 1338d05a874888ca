
static MEASURES int measure_MPI_Gatherv(next_9 *next, const void *frame, intptr_t sendbuf, intptr_t sendcount, intptr_t sendtype, intptr_t recvbuf, intptr_t recvcounts, intptr_t displs, intptr_t recvtype, intptr_t root, intptr_t comm)
{
	struct call call;

	if (!call_begins(&call, FUNCTION_MPI_Gatherv, BIND_COMM, comm, ORDERED, call_names(root, 0), frame))
		return next(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm);
	int rc = next(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm);
	call_returns(&call, IN_COLLECTIVE);
	if (UNLIKELY(rc != 0))
		order_failed(&call, ORDERED);
	struct moved moved = NOTHING_MOVED;
	if (rc == 0)
		moved = bytes_gatherv(&call, sendbuf, (int)sendcount, sendtype, int_counts(recvcounts), recvtype, (int)root);
	call_counts(&call, moved.out, moved.in);
	if (counts_sizes() && rc == 0)
		call_size(&call, larger(moved));
	return rc;
}

EXPORT int MPI_Gatherv(intptr_t sendbuf, intptr_t sendcount, intptr_t sendtype, intptr_t recvbuf, intptr_t recvcounts, intptr_t displs, intptr_t recvtype, intptr_t root, intptr_t comm)
{
	NEXT(next_9, MPI_Gatherv);
	return measure_MPI_Gatherv(next, FRAME, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm);
}

EXPORT int PMPI_Gatherv(intptr_t sendbuf, intptr_t sendcount, intptr_t sendtype, intptr_t recvbuf, intptr_t recvcounts, intptr_t displs, intptr_t recvtype, intptr_t root, intptr_t comm)
{
	NEXT(next_9, PMPI_Gatherv);
	return measure_MPI_Gatherv(next, FRAME, sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm);
}
