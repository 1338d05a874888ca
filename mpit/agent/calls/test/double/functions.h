/* functions.h - a table as generate/ makes it, of a few functions: what the runtime's tests count. */
#ifndef MPIT_CALLS_FUNCTIONS_H
#define MPIT_CALLS_FUNCTIONS_H

#include <stdbool.h>

struct function {
	const char *name;
	int bind;
	const char *out, *in;
	unsigned activity; /* enum activity */
	unsigned names;    /* enum names */
	bool ordered;      /* enum ordering is ORDERED */
};

/* name, bind, direction out, direction in, activity, names */
#define FUNCTIONS(X)                             \
	X(MPI_Send, COMM, "sent", NULL, SENDING, NAMES_PEER) \
	X(MPI_Recv, COMM, NULL, "received", WAITING, NAMES_PEER) \
	X(MPI_Isend, COMM, "sent", NULL, SENDING, NAMES_PEER) \
	X(MPI_Irecv, COMM, NULL, "posted", SENDING, NAMES_PEER) \
	X(MPI_Sendrecv, COMM, "sent", "received", WAITING, NAMES_PEER) \
	X(MPI_Barrier, COMM, NULL, NULL, IN_COLLECTIVE, NAMES_NOBODY) \
	X(MPI_Bcast, COMM, "sent", "received", IN_COLLECTIVE, NAMES_ROOT) \
	X(MPI_Allreduce, COMM, "sent", "received", IN_COLLECTIVE, NAMES_NOBODY) \
	X(MPI_Allgather, COMM, "sent", "received", IN_COLLECTIVE, NAMES_NOBODY) \
	X(MPI_Put, WIN, "sent", NULL, SENDING, NAMES_PEER) \
	X(MPI_File_write, FILE, "written", NULL, IN_FILE, NAMES_NOBODY) \
	X(MPI_Wait, NONE, NULL, NULL, WAITING, NAMES_REQUESTS) \
	X(MPI_Test, NONE, NULL, NULL, POLLING, NAMES_REQUESTS)

enum function_number {
#define NUMBER(name, bind, out, in, activity, names) FUNCTION_##name,
	FUNCTIONS(NUMBER)
#undef NUMBER
	FUNCTION_COUNT
};

extern const struct function functions[];
extern const unsigned function_count;

#endif
