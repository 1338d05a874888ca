/*
 * bytes.h - how many bytes the buffers of a call hold, from its arguments: what the generated wrappers compute after
 * a call that has succeeded, outside of the time that is measured.
 *
 * Arguments come as the registers that they are (interpose.h of the agent); counts and ranks already as what they
 * are. Nothing is read that MPI itself wouldn't read: what isn't significant in this process, or in a call with
 * MPI_IN_PLACE, may be anything. What a buffer would hold that MPI_IN_PLACE stands for counts as if it were there.
 * Program's threads; no lock, nothing allocated here.
 */
#ifndef MPIT_CALLS_BYTES_H
#define MPIT_CALLS_BYTES_H

#include "calls.h"

#include <stdbool.h>
#include <stdint.h>

/* Bytes of the buffers that go out (sent, written) and come in (received, posted, read). */
struct moved {
	uint64_t out, in;
};

#define NOTHING_MOVED ((struct moved){ 0, 0 })

/* The size of a call: what an operation moves may stand in one buffer or in both, and at a root in all blocks of one. */
static inline uint64_t larger(struct moved moved)
{
	return moved.out > moved.in ? moved.out : moved.in;
}

/* An array of counts: ints, or MPI_Counts (8 bytes) in a form for large counts. */
struct counts {
	const void *at;
	bool wide;
};

static inline struct counts int_counts(intptr_t argument)
{
	return (struct counts){ (const void *)argument, false };
}

static inline struct counts wide_counts(intptr_t argument)
{
	return (struct counts){ (const void *)argument, true };
}

/* Bytes of `count` elements. Of none the datatype is not looked at: it may be MPI_DATATYPE_NULL. */
static inline uint64_t bytes_of(int64_t count, intptr_t datatype)
{
	return count > 0 ? (uint64_t)count * type_bytes(datatype) : 0;
}

/* False: MPI_PROC_NULL, with which nothing is exchanged. */
static inline bool is_peer(int rank)
{
	return rank != calls_abi->proc_null;
}

/* False: MPI_NO_OP, with which nothing goes to the target, and the arguments of what would are not looked at. */
static inline bool reads_origin(intptr_t op)
{
	return (((uint64_t)op ^ (uint64_t)calls_no_op) & calls_abi->handle_mask) != 0;
}

/* Where the library puts a status that the program doesn't want and that tells how much has come. Larger than any
 * ABI's (32 bytes). */
union own_status {
	uint64_t words[8];
};

/* The status to give to the library: the program's, or our own where it has given MPI_STATUS_IGNORE. */
static inline intptr_t status_or_own(intptr_t status, union own_status *own)
{
	if ((const void *)status != calls_abi->status_ignore)
		return status;
	*own = (union own_status){ { 0 } };
	return (intptr_t)own;
}

/* How much has come, by the status of a blocking receive or read. */
uint64_t bytes_in_status(intptr_t status);

/*
 * Collective operations, blocking or not, on the communicator of the call. Parameters are those of MPI's functions
 * that the bytes depend on, in their order.
 */
struct moved bytes_bcast(const struct call *call, int64_t count, intptr_t type, int root);
struct moved bytes_gather(const struct call *call, intptr_t sendbuf, int64_t sendcount, intptr_t sendtype,
			  int64_t recvcount, intptr_t recvtype, int root);
struct moved bytes_gatherv(const struct call *call, intptr_t sendbuf, int64_t sendcount, intptr_t sendtype,
			   struct counts recvcounts, intptr_t recvtype, int root);
struct moved bytes_scatter(const struct call *call, int64_t sendcount, intptr_t sendtype, intptr_t recvbuf,
			   int64_t recvcount, intptr_t recvtype, int root);
struct moved bytes_scatterv(const struct call *call, struct counts sendcounts, intptr_t sendtype, intptr_t recvbuf,
			    int64_t recvcount, intptr_t recvtype, int root);
struct moved bytes_allgather(const struct call *call, intptr_t sendbuf, int64_t sendcount, intptr_t sendtype,
			     int64_t recvcount, intptr_t recvtype);
struct moved bytes_allgatherv(const struct call *call, intptr_t sendbuf, int64_t sendcount, intptr_t sendtype,
			      struct counts recvcounts, intptr_t recvtype);
struct moved bytes_alltoall(const struct call *call, intptr_t sendbuf, int64_t sendcount, intptr_t sendtype,
			    int64_t recvcount, intptr_t recvtype);
struct moved bytes_alltoallv(const struct call *call, intptr_t sendbuf, struct counts sendcounts, intptr_t sendtype,
			     struct counts recvcounts, intptr_t recvtype);
/* The types: addresses of arrays of handles. */
struct moved bytes_alltoallw(const struct call *call, intptr_t sendbuf, struct counts sendcounts, intptr_t sendtypes,
			     struct counts recvcounts, intptr_t recvtypes);
struct moved bytes_reduce(const struct call *call, int64_t count, intptr_t type, int root);
struct moved bytes_allreduce(const struct call *call, int64_t count, intptr_t type);
struct moved bytes_reduce_scatter(const struct call *call, struct counts recvcounts, intptr_t type);
struct moved bytes_reduce_scatter_block(const struct call *call, int64_t recvcount, intptr_t type);
/* And Exscan, of the first process's receive buffer too. */
struct moved bytes_scan(const struct call *call, int64_t count, intptr_t type);

/* With the neighbours of the communicator's topology. */
struct moved bytes_neighbor_allgather(const struct call *call, int64_t sendcount, intptr_t sendtype, int64_t recvcount,
				      intptr_t recvtype);
struct moved bytes_neighbor_allgatherv(const struct call *call, int64_t sendcount, intptr_t sendtype,
				       struct counts recvcounts, intptr_t recvtype);
struct moved bytes_neighbor_alltoall(const struct call *call, int64_t sendcount, intptr_t sendtype, int64_t recvcount,
				     intptr_t recvtype);
struct moved bytes_neighbor_alltoallv(const struct call *call, struct counts sendcounts, intptr_t sendtype,
				      struct counts recvcounts, intptr_t recvtype);
struct moved bytes_neighbor_alltoallw(const struct call *call, struct counts sendcounts, intptr_t sendtypes,
				      struct counts recvcounts, intptr_t recvtypes);

#endif
