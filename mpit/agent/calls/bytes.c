/* bytes.c - how many bytes the buffers of collective operations hold. */
#include "bytes.h"

#include <stddef.h>

/* No call that asks can have been cancelled. Open MPI's OMPIO leaves that mark unset in what a split read ends with,
 * so that it says nothing. */
uint64_t bytes_in_status(intptr_t status)
{
	return calls_abi->status_bytes((const void *)status);
}

static bool in_place(intptr_t buffer)
{
	return (const void *)buffer == calls_abi->in_place;
}

static int64_t count_at(struct counts counts, int i)
{
	return counts.wide ? ((const int64_t *)counts.at)[i] : ((const int *)counts.at)[i];
}

/* Negative ones, which the library has let through, are none. */
static uint64_t sum(struct counts counts, int n)
{
	uint64_t all = 0;

	for (int i = 0; i < n; i++)
		if (count_at(counts, i) > 0)
			all += (uint64_t)count_at(counts, i);
	return all;
}

static uint64_t bytes_of_all(struct counts counts, int n, intptr_t type)
{
	uint64_t elements = sum(counts, n);

	return elements > 0 ? elements * type_bytes(type) : 0;
}

static intptr_t type_at(intptr_t types, int i)
{
	return calls_abi->handle_size == sizeof(int) ? ((const int *)types)[i] : ((const intptr_t *)types)[i];
}

static uint64_t bytes_of_each(struct counts counts, int n, intptr_t types)
{
	uint64_t all = 0;

	for (int i = 0; i < n; i++)
		if (count_at(counts, i) > 0)
			all += bytes_of(count_at(counts, i), type_at(types, i));
	return all;
}

/* n times as much; n may be what could not be found out, -1. */
static uint64_t times(int n, int64_t count, intptr_t type)
{
	return n > 0 ? (uint64_t)n * bytes_of(count, type) : 0;
}

/* Bytes of the block that is this process's own. */
static uint64_t bytes_of_own(struct counts counts, const struct place *place, intptr_t type)
{
	return place->rank >= 0 && place->rank < place->size ? bytes_of(count_at(counts, place->rank), type) : 0;
}

/* With how many processes each one exchanges something. */
static int partners(const struct place *place)
{
	return place->inter ? place->remote_size : place->size;
}

/* What this process is in an operation with a root. In an intercommunicator the root stands alone on its side: the
 * others there do nothing. */
enum part { BYSTANDER, ROOT, LEAF };

static enum part part(const struct place *place, int root)
{
	if (!place->inter)
		return root == place->rank ? ROOT : LEAF;
	if (root == calls_abi->root)
		return ROOT;
	return root == calls_abi->proc_null ? BYSTANDER : LEAF;
}

struct moved bytes_bcast(const struct call *call, int64_t count, intptr_t type, int root)
{
	const struct place *place = call_place(call);

	switch (part(place, root)) {
	case ROOT: return (struct moved){ .out = bytes_of(count, type) };
	case LEAF: return (struct moved){ .in = bytes_of(count, type) };
	default: return NOTHING_MOVED;
	}
}

/* A buffer at the root: as many elements for each process, or as many as `counts` says. */
struct whole {
	int64_t each;
	struct counts counts; /* at NULL: each */
	intptr_t type;
};

/*
 * Gather, which gives `out` to what goes to the root's `in`, and Scatter, of which it is the other way round. The root
 * of an intracommunicator is a leaf, too; where MPI_IN_PLACE stands for its leaf's buffer that is its own part.
 */
static struct moved gather(const struct call *call, intptr_t leaf, int64_t count, intptr_t type, struct whole all,
			   int root)
{
	const struct place *place = call_place(call);
	int n = partners(place);
	struct moved moved = NOTHING_MOVED;

	switch (part(place, root)) {
	case ROOT:
		moved.in = all.counts.at == NULL ? times(n, all.each, all.type) : bytes_of_all(all.counts, n, all.type);
		if (place->inter)
			break;
		if (!in_place(leaf))
			moved.out = bytes_of(count, type);
		else
			moved.out = all.counts.at == NULL ? bytes_of(all.each, all.type) : bytes_of_own(all.counts, place, all.type);
		break;
	case LEAF:
		moved.out = bytes_of(count, type);
		break;
	case BYSTANDER:
		break;
	}
	return moved;
}

static struct moved turned(struct moved moved)
{
	return (struct moved){ .out = moved.in, .in = moved.out };
}

struct moved bytes_gather(const struct call *call, intptr_t sendbuf, int64_t sendcount, intptr_t sendtype,
			  int64_t recvcount, intptr_t recvtype, int root)
{
	return gather(call, sendbuf, sendcount, sendtype, (struct whole){ .each = recvcount, .type = recvtype }, root);
}

struct moved bytes_gatherv(const struct call *call, intptr_t sendbuf, int64_t sendcount, intptr_t sendtype,
			   struct counts recvcounts, intptr_t recvtype, int root)
{
	return gather(call, sendbuf, sendcount, sendtype, (struct whole){ .counts = recvcounts, .type = recvtype }, root);
}

struct moved bytes_scatter(const struct call *call, int64_t sendcount, intptr_t sendtype, intptr_t recvbuf,
			   int64_t recvcount, intptr_t recvtype, int root)
{
	struct whole all = { .each = sendcount, .type = sendtype };

	return turned(gather(call, recvbuf, recvcount, recvtype, all, root));
}

struct moved bytes_scatterv(const struct call *call, struct counts sendcounts, intptr_t sendtype, intptr_t recvbuf,
			    int64_t recvcount, intptr_t recvtype, int root)
{
	struct whole all = { .counts = sendcounts, .type = sendtype };

	return turned(gather(call, recvbuf, recvcount, recvtype, all, root));
}

struct moved bytes_allgather(const struct call *call, intptr_t sendbuf, int64_t sendcount, intptr_t sendtype,
			     int64_t recvcount, intptr_t recvtype)
{
	return (struct moved){
		.out = in_place(sendbuf) ? bytes_of(recvcount, recvtype) : bytes_of(sendcount, sendtype),
		.in = times(partners(call_place(call)), recvcount, recvtype),
	};
}

struct moved bytes_allgatherv(const struct call *call, intptr_t sendbuf, int64_t sendcount, intptr_t sendtype,
			      struct counts recvcounts, intptr_t recvtype)
{
	const struct place *place = call_place(call);

	return (struct moved){
		.out = in_place(sendbuf) ? bytes_of_own(recvcounts, place, recvtype) : bytes_of(sendcount, sendtype),
		.in = bytes_of_all(recvcounts, partners(place), recvtype),
	};
}

struct moved bytes_alltoall(const struct call *call, intptr_t sendbuf, int64_t sendcount, intptr_t sendtype,
			    int64_t recvcount, intptr_t recvtype)
{
	int n = partners(call_place(call));
	uint64_t in = times(n, recvcount, recvtype);

	return (struct moved){ .out = in_place(sendbuf) ? in : times(n, sendcount, sendtype), .in = in };
}

struct moved bytes_alltoallv(const struct call *call, intptr_t sendbuf, struct counts sendcounts, intptr_t sendtype,
			     struct counts recvcounts, intptr_t recvtype)
{
	int n = partners(call_place(call));
	uint64_t in = bytes_of_all(recvcounts, n, recvtype);

	return (struct moved){ .out = in_place(sendbuf) ? in : bytes_of_all(sendcounts, n, sendtype), .in = in };
}

struct moved bytes_alltoallw(const struct call *call, intptr_t sendbuf, struct counts sendcounts, intptr_t sendtypes,
			     struct counts recvcounts, intptr_t recvtypes)
{
	int n = partners(call_place(call));
	uint64_t in = bytes_of_each(recvcounts, n, recvtypes);

	return (struct moved){ .out = in_place(sendbuf) ? in : bytes_of_each(sendcounts, n, sendtypes), .in = in };
}

struct moved bytes_reduce(const struct call *call, int64_t count, intptr_t type, int root)
{
	const struct place *place = call_place(call);

	switch (part(place, root)) {
	case ROOT: {
		uint64_t bytes = bytes_of(count, type);

		return (struct moved){ .out = place->inter ? 0 : bytes, .in = bytes };
	}
	case LEAF: return (struct moved){ .out = bytes_of(count, type) };
	default: return NOTHING_MOVED;
	}
}

struct moved bytes_allreduce(const struct call *call, int64_t count, intptr_t type)
{
	uint64_t bytes = bytes_of(count, type);

	(void)call;
	return (struct moved){ .out = bytes, .in = bytes };
}

/* In an intercommunicator the result of the other side is scattered among this side's processes. */
struct moved bytes_reduce_scatter(const struct call *call, struct counts recvcounts, intptr_t type)
{
	const struct place *place = call_place(call);

	return (struct moved){
		.out = bytes_of_all(recvcounts, place->size, type),
		.in = bytes_of_own(recvcounts, place, type),
	};
}

struct moved bytes_reduce_scatter_block(const struct call *call, int64_t recvcount, intptr_t type)
{
	return (struct moved){ .out = times(call_place(call)->size, recvcount, type), .in = bytes_of(recvcount, type) };
}

struct moved bytes_scan(const struct call *call, int64_t count, intptr_t type)
{
	return bytes_allreduce(call, count, type);
}

/* One buffer, however many neighbours get it; without any it isn't read. */
struct moved bytes_neighbor_allgather(const struct call *call, int64_t sendcount, intptr_t sendtype, int64_t recvcount,
				      intptr_t recvtype)
{
	const struct place *place = call_place(call);

	return (struct moved){
		.out = place->outdegree > 0 ? bytes_of(sendcount, sendtype) : 0,
		.in = times(place->indegree, recvcount, recvtype),
	};
}

struct moved bytes_neighbor_allgatherv(const struct call *call, int64_t sendcount, intptr_t sendtype,
				       struct counts recvcounts, intptr_t recvtype)
{
	const struct place *place = call_place(call);

	return (struct moved){
		.out = place->outdegree > 0 ? bytes_of(sendcount, sendtype) : 0,
		.in = bytes_of_all(recvcounts, place->indegree, recvtype),
	};
}

struct moved bytes_neighbor_alltoall(const struct call *call, int64_t sendcount, intptr_t sendtype, int64_t recvcount,
				     intptr_t recvtype)
{
	const struct place *place = call_place(call);

	return (struct moved){
		.out = times(place->outdegree, sendcount, sendtype),
		.in = times(place->indegree, recvcount, recvtype),
	};
}

struct moved bytes_neighbor_alltoallv(const struct call *call, struct counts sendcounts, intptr_t sendtype,
				      struct counts recvcounts, intptr_t recvtype)
{
	const struct place *place = call_place(call);

	return (struct moved){
		.out = bytes_of_all(sendcounts, place->outdegree, sendtype),
		.in = bytes_of_all(recvcounts, place->indegree, recvtype),
	};
}

struct moved bytes_neighbor_alltoallw(const struct call *call, struct counts sendcounts, intptr_t sendtypes,
				      struct counts recvcounts, intptr_t recvtypes)
{
	const struct place *place = call_place(call);

	return (struct moved){
		.out = bytes_of_each(sendcounts, place->outdegree, sendtypes),
		.in = bytes_of_each(recvcounts, place->indegree, recvtypes),
	};
}
