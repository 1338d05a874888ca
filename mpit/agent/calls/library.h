/*
 * library.h - the functions of the MPI library that the call profile itself calls, by their PMPI_ names, so that no
 * tool sees them. All are local. Handles pass as registers: an int in the lower half, or a pointer.
 */
#ifndef MPIT_CALLS_LIBRARY_H
#define MPIT_CALLS_LIBRARY_H

#include "source.h"

#include <stdbool.h>
#include <stdint.h>

struct library {
	int (*comm_rank)(intptr_t comm, int *rank);
	int (*comm_size)(intptr_t comm, int *size);
	int (*comm_test_inter)(intptr_t comm, int *inter);
	int (*comm_remote_size)(intptr_t comm, int *size);
	int (*comm_group)(intptr_t comm, intptr_t *group); /* where zeros stand */
	int (*comm_remote_group)(intptr_t comm, intptr_t *group);
	int (*win_get_group)(intptr_t win, intptr_t *group);
	int (*group_size)(intptr_t group, int *size);
	int (*group_range_incl)(intptr_t group, intptr_t count, const int *ranges, intptr_t *part);
	int (*group_translate_ranks)(intptr_t group, intptr_t count, const int *ranks, intptr_t other, int *others);
	int (*group_free)(intptr_t *group);
	int (*initialized)(int *flag);
	int (*finalized)(int *flag);
	int (*topo_test)(intptr_t comm, int *topology);
	int (*cartdim_get)(intptr_t comm, int *dimensions);
	int (*graph_neighbors_count)(intptr_t comm, intptr_t rank, int *neighbors);
	int (*dist_graph_neighbors_count)(intptr_t comm, int *in, int *out, int *weighted);
	int (*type_size_x)(intptr_t datatype, long long *bytes); /* MPI_Count is 64 bits wide in every ABI */
	/* MPI-4's: may be NULL where calls_abi doesn't ask it. */
	int (*get_count_c)(intptr_t status, intptr_t datatype, long long *count);
	bool has_groups; /* all functions of groups, initialized and finalized are there */
};
/* Written in begin. */
extern struct library library __attribute__((visibility("hidden")));

/* Once, in begin, when the ABI is known. False: the library lacks one; *why says which. */
bool library_find(void *(*find)(const char *function), const char **why);

#endif
