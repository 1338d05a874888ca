/*
 * interposed.h - which functions make and name communicators, windows and datatypes, and where in their arguments the
 * object stands. byhandle/interposed.h has the other kinds.
 *
 * One table for the code (interpose_objects.c) and for the test that compares it with each library's mpi.h
 * (test/prototypes.cpp): a wrong position would corrupt a program. X(name, arguments, object, communicator): how many
 * arguments, the position of the address where the library puts the object's handle, and of the communicator that the
 * object is made on (0: none); positions count from 1. Functions of MPI-4 stand in tables of their own, because older
 * libraries don't have them.
 */
#ifndef MPIT_INTERPOSED_H
#define MPIT_INTERPOSED_H

#define COMMUNICATORS(X)                        \
	X(Comm_dup, 2, 2, 0)                    \
	X(Comm_dup_with_info, 3, 3, 0)          \
	X(Comm_split, 4, 4, 0)                  \
	X(Comm_split_type, 5, 5, 0)             \
	X(Comm_create, 3, 3, 0)                 \
	X(Comm_create_group, 4, 4, 0)           \
	X(Intercomm_create, 6, 6, 0)            \
	X(Intercomm_merge, 3, 3, 0)             \
	X(Cart_create, 6, 6, 0)                 \
	X(Cart_sub, 3, 3, 0)                    \
	X(Graph_create, 6, 6, 0)                \
	X(Dist_graph_create, 9, 9, 0)           \
	X(Dist_graph_create_adjacent, 10, 10, 0) \
	X(Comm_spawn, 8, 7, 0)                  \
	X(Comm_spawn_multiple, 9, 8, 0)         \
	X(Comm_accept, 5, 5, 0)                 \
	X(Comm_connect, 5, 5, 0)                \
	X(Comm_join, 2, 2, 0)

#define COMMUNICATORS_4(X)                      \
	X(Comm_create_from_group, 5, 5, 0)      \
	X(Intercomm_create_from_groups, 8, 8, 0)

#define WINDOWS(X)                              \
	X(Win_create, 6, 6, 5)                  \
	X(Win_allocate, 6, 6, 4)                \
	X(Win_allocate_shared, 6, 6, 4)         \
	X(Win_create_dynamic, 3, 3, 2)

#define WINDOWS_4(X)                            \
	X(Win_create_c, 6, 6, 5)                \
	X(Win_allocate_c, 6, 6, 4)              \
	X(Win_allocate_shared_c, 6, 6, 4)

/* The handle stands at the address already. Committing one twice is allowed. */
#define DATATYPES(X) X(Type_commit, 1, 1, 0)

/* X(name, kind, arguments): the first argument is the object's handle. */
#define NAMES(X)                                \
	X(Comm_set_name, COMM, 2)               \
	X(Win_set_name, WIN, 2)                 \
	X(Type_set_name, DATATYPE, 2)

#endif
