/*
 * interposed.h - which functions make, change and end objects without attributes: tables as in ../interposed.h.
 */
#ifndef MPIT_BYHANDLE_INTERPOSED_H
#define MPIT_BYHANDLE_INTERPOSED_H

/* MPI_COMM_WORLD's group is the same at each call: another reference. */
#define GROUPS(X)                               \
	X(Comm_group, 2, 2, 0)                  \
	X(Comm_remote_group, 2, 2, 0)           \
	X(Win_get_group, 2, 2, 0)               \
	X(File_get_group, 2, 2, 0)              \
	X(Group_union, 3, 3, 0)                 \
	X(Group_intersection, 3, 3, 0)          \
	X(Group_difference, 3, 3, 0)            \
	X(Group_incl, 4, 4, 0)                  \
	X(Group_excl, 4, 4, 0)                  \
	X(Group_range_incl, 4, 4, 0)            \
	X(Group_range_excl, 4, 4, 0)

#define GROUPS_4(X) X(Group_from_session_pset, 3, 3, 0)

/* The function's name says of what kind of object's errors. Asking for the one in use gives another reference. */
#define ERRHANDLERS(X)                          \
	X(Comm_create_errhandler, 2, 2, 0)      \
	X(Win_create_errhandler, 2, 2, 0)       \
	X(File_create_errhandler, 2, 2, 0)      \
	X(Comm_get_errhandler, 2, 2, 0)         \
	X(Win_get_errhandler, 2, 2, 0)          \
	X(File_get_errhandler, 2, 2, 0)

/* Removed from the standard in MPI-3, and still in the libraries. */
#define ERRHANDLERS_1(X)                        \
	X(Errhandler_create, 2, 2, 0)           \
	X(Errhandler_get, 2, 2, 0)

#define ERRHANDLERS_4(X)                        \
	X(Session_create_errhandler, 2, 2, 0)   \
	X(Session_get_errhandler, 2, 2, 0)

#define OPERATIONS(X) X(Op_create, 3, 3, 0)
#define OPERATIONS_4(X) X(Op_create_c, 3, 3, 0)

#define INFOS(X)                                \
	X(Info_create, 1, 1, 0)                 \
	X(Info_dup, 2, 2, 0)                    \
	X(Comm_get_info, 2, 2, 0)               \
	X(Win_get_info, 2, 2, 0)                \
	X(File_get_info, 2, 2, 0)

#define INFOS_4(X)                              \
	X(Info_create_env, 3, 3, 0)             \
	X(Session_get_info, 2, 2, 0)            \
	X(Session_get_pset_info, 3, 3, 0)

/* Persistent requests live from here to MPI_Request_free. Those of other operations are made in message calls, where
 * the agent doesn't stand. */
#define REQUESTS(X)                             \
	X(Send_init, 7, 7, 6)                   \
	X(Bsend_init, 7, 7, 6)                  \
	X(Ssend_init, 7, 7, 6)                  \
	X(Rsend_init, 7, 7, 6)                  \
	X(Recv_init, 7, 7, 6)

#define PERSISTENT_BARRIER(X) X(Barrier_init, 3, 3, 1)

#define PERSISTENT_COLLECTIVES(X)               \
	X(Allgather_init, 9, 9, 7)              \
	X(Allgatherv_init, 10, 10, 8)           \
	X(Allreduce_init, 8, 8, 6)              \
	X(Alltoall_init, 9, 9, 7)               \
	X(Alltoallv_init, 11, 11, 9)            \
	X(Alltoallw_init, 11, 11, 9)            \
	X(Bcast_init, 7, 7, 5)                  \
	X(Exscan_init, 8, 8, 6)                 \
	X(Gather_init, 10, 10, 8)               \
	X(Gatherv_init, 11, 11, 9)              \
	X(Neighbor_allgather_init, 9, 9, 7)     \
	X(Neighbor_allgatherv_init, 10, 10, 8)  \
	X(Neighbor_alltoall_init, 9, 9, 7)      \
	X(Neighbor_alltoallv_init, 11, 11, 9)   \
	X(Neighbor_alltoallw_init, 11, 11, 9)   \
	X(Reduce_init, 9, 9, 7)                 \
	X(Reduce_scatter_block_init, 8, 8, 6)   \
	X(Reduce_scatter_init, 8, 8, 6)         \
	X(Scan_init, 8, 8, 6)                   \
	X(Scatter_init, 10, 10, 8)              \
	X(Scatterv_init, 11, 11, 9)

/* MPI-4 has all of the above but Barrier_init in a form for large counts, too: with _c behind the name. */
#define REQUESTS_4(X)                           \
	X(Psend_init, 9, 9, 7)                  \
	X(Precv_init, 9, 9, 7)

/* X(name, kind): their one argument is the address of the handle, which the library overwrites. */
#define FREES(X)                                \
	X(Group_free, GROUP)                    \
	X(Errhandler_free, ERRHANDLER)          \
	X(Op_free, OP)                          \
	X(Request_free, REQUEST)                \
	X(Info_free, INFO)                      \
	X(File_close, FILE)

/* X(name, arguments): the first is an info object, the second a key of it. */
#define KEYS(X)                                 \
	X(Info_set, 3)                          \
	X(Info_delete, 2)

#endif
