/* library.c - looks up what library.h lists. */
#include "library.h"

#include "asked.h"
#include "calls.h"

#include <stddef.h>

struct library library;

bool library_find(void *(*find)(const char *function), const char **why)
{
	const bool peers = calls_asked("peers"); /* else they may be missing: nobody's identity is known then */
	const struct {
		void **where;
		const char *name, *lacking;
		bool optional;
	} wanted[] = {
#define WANTED(field, function, optional) \
	{ (void **)&library.field, "PMPI_" #function, "the MPI library has no PMPI_" #function, optional }
		WANTED(comm_rank, Comm_rank, false),
		WANTED(comm_size, Comm_size, false),
		WANTED(comm_test_inter, Comm_test_inter, false),
		WANTED(comm_remote_size, Comm_remote_size, false),
		WANTED(comm_group, Comm_group, !peers),
		WANTED(comm_remote_group, Comm_remote_group, !peers),
		WANTED(win_get_group, Win_get_group, !peers),
		WANTED(group_size, Group_size, !peers),
		WANTED(group_range_incl, Group_range_incl, !peers),
		WANTED(group_translate_ranks, Group_translate_ranks, !peers),
		WANTED(group_free, Group_free, !peers),
		WANTED(initialized, Initialized, !peers),
		WANTED(finalized, Finalized, !peers),
		WANTED(topo_test, Topo_test, false),
		WANTED(cartdim_get, Cartdim_get, false),
		WANTED(graph_neighbors_count, Graph_neighbors_count, false),
		WANTED(dist_graph_neighbors_count, Dist_graph_neighbors_count, false),
		WANTED(type_size_x, Type_size_x, false),
		WANTED(get_count_c, Get_count_c, !calls_abi->asks_status),
	};

	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
		*wanted[i].where = find(wanted[i].name);
		if (*wanted[i].where == NULL && !wanted[i].optional) {
			*why = wanted[i].lacking;
			return false;
		}
	}
	library.has_groups = library.comm_group != NULL && library.comm_remote_group != NULL && library.group_size != NULL &&
			     library.group_range_incl != NULL && library.group_translate_ranks != NULL &&
			     library.group_free != NULL && library.initialized != NULL && library.finalized != NULL;
	return true;
}
