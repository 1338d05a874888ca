/*
 * last.h - the last sample, taken to the exporter by the program's own thread.
 */
#ifndef MPIT_LAST_H
#define MPIT_LAST_H

#include "connection.h"
#include "frames.h"

/*
 * Sends the last values read over a connection of its own, because the thread's is out of reach: HELLO and an unasked
 * answer. Waits 20 ms at most in all, and allocates nothing but in MPI_Finalize. The caller holds the gate.
 */
void last_send(const struct socket_paths *paths, const struct identity *id, const struct session *s, enum end_reason end);

/*
 * Waits in MPI_Finalize until control variables and categories have been asked for, at most MPIT_AGENT_LINGER
 * milliseconds: nothing, unless `mpit-exporter list` runs the program to see them. Without the gate.
 */
void last_linger(void);

#endif
