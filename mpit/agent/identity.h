/*
 * identity.h - what the agent says of the process and of the job it belongs to (docs/internals/protocol.md, HELLO).
 *
 * Filled once, in MPI_Init or the first MPI_Session_init, in the program's thread; read only afterwards (but
 * sessions_only), by any thread.
 */
#ifndef MPIT_IDENTITY_H
#define MPIT_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_ATTRIBUTES 64
#define ATTRIBUTE_BYTES 256

struct attribute {
	const char *key;
	char value[ATTRIBUTE_BYTES];
};

struct identity {
	uint64_t id[2]; /* random: a pid is not unique across containers */
	long pid, ppid;
	int rank, size;
	int thread_level; /* the program's: 0 single … 3 multiple; -1: it has not called MPI_Init */
	bool passive;     /* the agent's thread may not call MPI_T */
	_Atomic bool sessions_only; /* MPI_Init hasn't been called (yet): rank and size are those of mpi://WORLD */
	bool may_write;   /* MPIT_AGENT_ALLOW_WRITE */
	uint64_t abi;
	uint64_t init_realtime;
	char library_version[512];
	char host[256];
	char executable[4096];
	struct attribute attributes[MAX_ATTRIBUTES];
	size_t attribute_count;
};

/* Everything but rank, size, thread_level, passive, may_write and abi. */
void identity_fill(struct identity *id, const char *library_version);

/*
 * What Python has been told to run, of its arguments up to `end`, each ended by a zero: a script, or "-m module" in room.
 * mpi4py's own module is left out: it runs another one. NULL: neither, as of a command.
 */
const char *identity_script(const char *argument, const char *end, char *room, size_t size);

#endif
