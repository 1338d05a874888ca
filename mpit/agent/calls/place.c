/* place.c - asks the library for what the bytes of collective operations depend on. */
#include "place.h"

#include "block.h"
#include "functions.h"
#include "library.h"

void place_complete(intptr_t comm, struct place *out)
{
	int inter = 0, topology = -1, number = 0;

	if (library.comm_test_inter(comm, &inter) == 0 && inter != 0) {
		out->inter = true;
		library.comm_remote_size(comm, &out->remote_size);
		return; /* these have no topology */
	}
	if (library.topo_test(comm, &topology) != 0)
		return;
	/* Two neighbours in each dimension, also where one of them is MPI_PROC_NULL: the buffers have room for it. */
	if (topology == calls_abi->cart && library.cartdim_get(comm, &number) == 0)
		out->indegree = out->outdegree = 2 * number;
	else if (topology == calls_abi->graph && library.graph_neighbors_count(comm, out->rank, &number) == 0)
		out->indegree = out->outdegree = number;
	else if (topology == calls_abi->dist_graph)
		library.dist_graph_neighbors_count(comm, &out->indegree, &out->outdegree, &number);
}

void place_ask(intptr_t comm, struct place *out)
{
	*out = (struct place){ .rank = -1 };
	library.comm_rank(comm, &out->rank);
	library.comm_size(comm, &out->size);
	place_complete(comm, out);
}

/*
 * Of a tracked communicator it was asked when that was made. Of another one it is asked each time, because nobody
 * says when its handle begins to stand for something else.
 */
const struct place *call_place(const struct call *c)
{
	static const struct place nowhere = { .rank = -1 };
	struct block *b = calls_thread.block;
	uint32_t number = 0;
	unsigned slot;

	if (b == NULL) /* the call isn't counted */
		return &nowhere;
	slot = registry_find(BIND_COMM, c->handle, &number);
	if (slot == 0 || !registry_place(slot, number, &b->place))
		place_ask(c->handle, &b->place);
	return &b->place;
}
