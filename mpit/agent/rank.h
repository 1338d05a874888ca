/*
 * rank.h - what there is one of in a rank, and how the program's threads get at it. Program's threads only.
 */
#ifndef MPIT_RANK_H
#define MPIT_RANK_H

#include "identity.h"
#include "session.h"

struct rank {
	struct session session;   /* the gate's, once the agent runs */
	struct identity identity; /* written before the agent runs */
};
extern struct rank rank;

/* False: the process is a child made by _Fork or clone, which hasn't run the handlers of pthread_atfork: not the rank,
 * whatever the state says. A system call. */
bool rank_is_here(void);

/* Takes the gate. False: don't look, the agent isn't running, or it is the agent itself that calls. */
bool rank_enter(void);
/* Leaves it. A passive agent's thread can't read, so the program's does, whenever it is here anyway. */
void rank_leave(void);

#endif
