/*
 * link.h - the agent's thread and its connection to the exporter.
 *
 * The thread sleeps in connect's back-off or until a request comes; nobody asks, nothing runs. Its descriptor is
 * in a table of its own (unshare(CLONE_FILES)), where the program can neither close, leak nor use
 * it up; where that is refused, a shared descriptor is guarded as well as can be.
 */
#ifndef MPIT_LINK_H
#define MPIT_LINK_H

#include "frames.h"

#define BLOB_BYTES 65536
#define SOCKET_DEFAULT "/run/mpit-exporter/agent.sock"
#define SOCKET_RUNTIME "mpit-exporter/agent.sock" /* below $XDG_RUNTIME_DIR */

/* What the thread needs of the rest; all of it outlives the thread. */
struct link {
	const struct identity *identity;
	struct session *session; /* the gate's */
	bool passive;
	enum end_reason end; /* the gate's; set with the last sample */
	/* Paths to try in turn; empty ones are skipped. Written before the thread starts. */
	char paths[2][108];
};

/* Reads MPIT_SOCKET and XDG_RUNTIME_DIR. Program's thread, in MPI_Init. */
void link_paths(struct link *l);

/* Starts the thread, all signals blocked in it. False: no thread, nobody will ask. */
bool link_start(struct link *l);

/*
 * Takes the last values read to the exporter over a connection of its own, because the thread's is out of
 * reach: HELLO and an unasked answer. Program's thread; waits 20 ms at most in all. The caller holds the gate.
 */
void link_send_final(struct link *l);

/*
 * Waits in MPI_Finalize until control variables and categories have been asked for, at most MPIT_AGENT_LINGER
 * milliseconds: nothing, unless `mpit-exporter list` runs the program to see them. Program's thread, without the gate.
 */
void link_linger(void);

/*
 * Ends the thread, after the last sample: a program whose last thread calls pthread_exit would otherwise never end.
 * Program's thread; allocates nothing, waits for nothing.
 */
void link_stop(void);

/* In a forked child: lets go of a shared descriptor. Async-signal-safe. */
void link_forked(void);

#endif
