/*
 * answers.h - what the agent's thread does with a request (docs/internals/protocol.md, From the exporter).
 */
#ifndef MPIT_ANSWERS_H
#define MPIT_ANSWERS_H

#include "connection.h"
#include "frames.h"
#include "mapped.h"

/* The agent's thread's alone. */
struct answering {
	struct session *session; /* the gate's */
	bool passive;
	struct wire out;
	uint64_t *request;                  /* WIRE_REQUEST_WORDS_MAX words */
	struct agent_statistics statistics; /* as of the last sample */
	struct under_way calls;             /* as last read under the gate */
	bool comms_told;                    /* to the other end, all of them */
	struct mapped code;                 /* empty: there is no call profile */
	struct kernel kernel;
	uintptr_t unplaced;                 /* the address that it was last read anew for */
	struct source_site sites[512];      /* of a page */
	size_t looked;                      /* sites before this one have been looked at */
};

/* Waits for one request and answers it; false ends the connection: the peer has gone, or the rank has ended. */
bool answer(struct answering *a, const struct connection *c);

/* The connection has ended: so do the sessions that its other end has made. The agent's thread. */
void answers_end(struct answering *a);

#endif
