/* rank.c - what there is one of in a rank. */
#define _GNU_SOURCE
#include "rank.h"

#include "agent.h"
#include "gate.h"

#include <unistd.h>

struct rank rank;

bool rank_is_here(void)
{
	return getpid() == rank.identity.pid;
}

bool rank_enter(void)
{
	if (agent_state() != AGENT_RUNNING || !gate_enter())
		return false;
	if (agent_state() == AGENT_RUNNING)
		return true;
	gate_leave();
	return false;
}

void rank_leave(void)
{
	if (rank.identity.passive && session_discover(&rank.session, NULL))
		session_sample(&rank.session, NULL);
	gate_leave();
}
