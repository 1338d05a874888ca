/* functions.h - a table as generate/ makes it, of a few functions: what the runtime's tests count. */
#ifndef MPIT_CALLS_FUNCTIONS_H
#define MPIT_CALLS_FUNCTIONS_H

struct function {
	const char *name;
	int bind;
	const char *out, *in;
};

/* name, bind, direction out, direction in */
#define FUNCTIONS(X)                             \
	X(MPI_Send, COMM, "sent", NULL)          \
	X(MPI_Recv, COMM, NULL, "received")      \
	X(MPI_Isend, COMM, "sent", NULL)         \
	X(MPI_Irecv, COMM, NULL, "posted")       \
	X(MPI_Sendrecv, COMM, "sent", "received") \
	X(MPI_Barrier, COMM, NULL, NULL)         \
	X(MPI_Bcast, COMM, "sent", "received")   \
	X(MPI_Allreduce, COMM, "sent", "received") \
	X(MPI_Allgather, COMM, "sent", "received") \
	X(MPI_Put, WIN, "sent", NULL)            \
	X(MPI_File_write, FILE, "written", NULL) \
	X(MPI_Wait, NONE, NULL, NULL)

enum function_number {
#define NUMBER(name, bind, out, in) FUNCTION_##name,
	FUNCTIONS(NUMBER)
#undef NUMBER
	FUNCTION_COUNT
};

extern const struct function functions[];
extern const unsigned function_count;

#endif
