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

/* The agent's thread's alone. */
struct connection {
	int fd;       /* -1: none */
	bool private; /* in a descriptor table of the thread's own */
	ino_t inode;  /* of the socket: a shared number may be somebody else's by now */
};

/* A connected non-blocking socket; -1 with errno, EAGAIN for an exporter that is there and has no time. Any thread. */
int dial_any(const struct socket_paths *paths);

bool connection_open(struct connection *c, const struct socket_paths *paths);
void connection_close(struct connection *c);
/* All of it or false. Sending waits ten seconds at most. */
bool connection_send(const struct connection *c, const struct wire *w);
bool connection_receive(const struct connection *c, void *to, size_t length);

/* Program's thread: ends a connection whose descriptor is shared, so that the agent's thread wakes up. */
void connection_shut_shared(void);
/* In a forked child: lets go of a shared descriptor. Async-signal-safe. */
void connection_forked(void);

#endif
