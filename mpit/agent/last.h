/*
 * last.h - the last sample: what the program's own thread does with it, and what the agent's.
 *
 * It goes over the connection that stands where the exporter has asked for that: the program may have taken from
 * itself the right to make another one (filter.h). Where there is none, or it is busy, the program's thread makes
 * one.
 */
#ifndef MPIT_LAST_H
#define MPIT_LAST_H

#include "connection.h"
#include "frames.h"

#include <stdint.h>

/* The connection of a last sample that an exporter may want to take further before the program goes. */
struct farewell {
	struct connection c; /* its descriptor is -1: none of its own */
	bool handed_over;    /* the connection that stands */
	uint64_t deadline;   /* CLOCK_MONOTONIC, ns */
};

/* Reads MPIT_AGENT_FINAL_WAIT, once, in MPI_Init, before the agent's threads exist. */
void last_prepare(void);

/*
 * Sends the last values read: as the answer to FINAL, or over a connection of its own HELLO and the same.
 * Waits 20 ms at most in all, or MPIT_AGENT_FINAL_WAIT milliseconds where that is more and this is not MPI_Abort;
 * allocates nothing but in MPI_Finalize. The caller holds the gate. What is returned goes to last_await.
 */
struct farewell last_send(const struct socket_paths *paths, const struct identity *id, const struct session *s,
			  enum end_reason end);

/*
 * Waits until the exporter has closed the connection, for what is left of MPIT_AGENT_FINAL_WAIT: nothing, where that
 * is not set. Without the gate; allocates nothing and takes no lock, for exit may stand in a signal handler.
 */
void last_await(const struct farewell *f);

/* The agent's thread: FINAL has come; the connection has ended. */
void last_asked(void);
void last_unasked(void);

/* The agent's other thread, when the rank has ended: sends what has been left to it, and waits where the program
 * waits. */
void last_deliver(const struct connection *c);

/*
 * Waits in MPI_Finalize until control variables and categories have been asked for, at most MPIT_AGENT_LINGER
 * milliseconds: nothing, unless `mpit-exporter list` runs the program to see them. Without the gate.
 */
void last_linger(void);

#endif
