/*
 * connection.h - the socket to the exporter, in somebody else's process.
 *
 * Its descriptor is in a table of the agent's thread's own, where the program can neither close, leak nor use it up;
 * where the kernel refuses that, it is a shared one with a high number, checked before each use.
 */
#ifndef MPIT_CONNECTION_H
#define MPIT_CONNECTION_H

#include "wire.h"

#include <stdbool.h>
#include <sys/types.h>

#define SOCKET_PATH_BYTES 108

/* Where to look for the exporter, in turn; empty ones are skipped. */
struct socket_paths {
	char path[2][SOCKET_PATH_BYTES];
};

/* Written in the agent's thread's turn; it sleeps in connection_receive without one. */
struct connection {
	int fd;       /* -1: none */
	bool private; /* in a descriptor table of the thread's own */
	ino_t inode;  /* of the socket: a shared number may be somebody else's by now */
};

/* Program's thread, before the agent's exist. */
void connection_prepare(void);

/* A connected non-blocking socket; -1 with errno, EAGAIN for an exporter that is there and has no time. Any thread. */
int dial_any(const struct socket_paths *paths);

/*
 * Whose turn it is on the connection that stands: the agent's thread's while it answers, and where it makes and
 * closes the connection; the other one's for the last sample. Agent's threads only.
 */
void connection_enter(void);
bool connection_enter_before(uint64_t deadline);
/* The same when the rank has ended and the last sample is on its way: ends what is still being sent to an exporter
 * that doesn't read. */
void connection_enter_over(void);
void connection_leave(void);

bool connection_open(struct connection *c, const struct socket_paths *paths);
void connection_close(struct connection *c);
/* All of it or false. It waits ten seconds at most for the exporter to read some more. */
bool connection_send(const struct connection *c, const struct wire *w);
/* The same by a deadline (CLOCK_MONOTONIC, ns); it tries at least once. Any thread, async-signal-safe. */
bool connection_send_before(const struct connection *c, const void *bytes, size_t length, uint64_t deadline);
/* Returns when the other side has closed it, or at the deadline. As above. */
void connection_await_end(const struct connection *c, uint64_t deadline);
/* Ends what is received and sent on it: the agent's thread wakes up. */
void connection_shut(const struct connection *c);
/* Closes it, if the number is still its own; nothing else of it is touched. */
void connection_let_go(const struct connection *c);
bool connection_receive(const struct connection *c, void *to, size_t length);

/* In a forked child: lets go of a shared descriptor. Async-signal-safe. */
void connection_forked(void);

#endif
