/*
 * link.h - the agent's thread: it looks for the exporter, and answers it.
 *
 * It sleeps in connect's back-off or until a request comes; nobody asks, nothing runs. A second one sleeps until the
 * rank ends: it sends the last sample over the connection that stands, whose descriptor the program's own threads
 * can't use, and wakes the first.
 */
#ifndef MPIT_LINK_H
#define MPIT_LINK_H

#include "connection.h"
#include "identity.h"
#include "session.h"

#define SOCKET_DEFAULT "/run/mpit-exporter/agent.sock"
#define SOCKET_RUNTIME "mpit-exporter/agent.sock" /* below $XDG_RUNTIME_DIR */

/* What the thread needs of the rest; written before it starts, all of it outlives it. */
struct link {
	const struct identity *identity;
	struct session *session; /* the gate's */
	struct socket_paths paths;
};

/* Reads MPIT_SOCKET and XDG_RUNTIME_DIR. Program's thread, in MPI_Init. */
void link_paths(struct link *l);

/* Starts the threads, all signals blocked in them. False: no thread, nobody will ask. */
bool link_start(struct link *l);

/*
 * Ends the threads, after the last sample: a program whose last thread calls pthread_exit would otherwise never end.
 * Program's thread; allocates nothing, waits for nothing.
 */
void link_stop(void);

/* In a forked child: lets go of what is the parent's. Async-signal-safe. */
void link_forked(void);

#endif
