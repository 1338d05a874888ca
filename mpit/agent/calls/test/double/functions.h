/* functions.h - a table as generate/ makes it, of a few functions: what the runtime's tests count. */
#ifndef MPIT_CALLS_FUNCTIONS_H
#define MPIT_CALLS_FUNCTIONS_H

#include <stdbool.h>

struct function {
	const char *name;
	int bind;
	const char *out, *in;
	unsigned activity; /* enum activity */
	bool ordered;      /* enum ordering is ORDERED */
};

/* name, bind, direction out, direction in, activity */
#define FUNCTIONS(X)                             \
	X(MPI_Send, COMM, "sent", NULL, SENDING) \
	X(MPI_Recv, COMM, NULL, "received", WAITING) \
	X(MPI_Isend, COMM, "sent", NULL, SENDING) \
	X(MPI_Irecv, COMM, NULL, "posted", SENDING) \
	X(MPI_Sendrecv, COMM, "sent", "received", WAITING) \
	X(MPI_Barrier, COMM, NULL, NULL, IN_COLLECTIVE) \
	X(MPI_Bcast, COMM, "sent", "received", IN_COLLECTIVE) \
	X(MPI_Allreduce, COMM, "sent", "received", IN_COLLECTIVE) \
	X(MPI_Allgather, COMM, "sent", "received", IN_COLLECTIVE) \
	X(MPI_Put, WIN, "sent", NULL, SENDING) \
	X(MPI_File_write, FILE, "written", NULL, IN_FILE) \
	X(MPI_Wait, NONE, NULL, NULL, WAITING) \
	X(MPI_Test, NONE, NULL, NULL, POLLING)

enum function_number {
#define NUMBER(name, bind, out, in, activity) FUNCTION_##name,
	FUNCTIONS(NUMBER)
#undef NUMBER
	FUNCTION_COUNT
};

extern const struct function functions[];
extern const unsigned function_count;

#endif
