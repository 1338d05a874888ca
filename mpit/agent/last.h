/*
 * last.h - the last sample, taken to the exporter by the program's own thread.
 */
#ifndef MPIT_LAST_H
#define MPIT_LAST_H

#include "connection.h"
#include "frames.h"

#include <stdint.h>
#include <sys/types.h>

/* The connection of a last sample that an exporter may want to take further before the program goes. */
struct farewell {
	int fd; /* -1: there is nothing to wait for */
	ino_t inode;
	uint64_t deadline; /* CLOCK_MONOTONIC, ns */
};

/* Reads MPIT_AGENT_FINAL_WAIT, once, in MPI_Init. */
void last_prepare(void);

/*
 * Sends the last values read over a connection of its own, because the thread's is out of reach: HELLO and an unasked
 * answer. Waits 20 ms at most in all, or MPIT_AGENT_FINAL_WAIT milliseconds where that is more and this is not MPI_Abort;
 * allocates nothing but in MPI_Finalize. The caller holds the gate. What is returned goes to last_await.
 */
struct farewell last_send(const struct socket_paths *paths, const struct identity *id, const struct session *s, enum end_reason end);

/*
 * Waits until the exporter has closed the connection, for what is left of MPIT_AGENT_FINAL_WAIT: nothing, where that is not
 * set. Without the gate; allocates nothing and takes no lock, for exit may stand in a signal handler.
 */
void last_await(const struct farewell *f);

/*
 * Waits in MPI_Finalize until control variables and categories have been asked for, at most MPIT_AGENT_LINGER
 * milliseconds: nothing, unless `mpit-exporter list` runs the program to see them. Without the gate.
 */
void last_linger(void);

#endif
