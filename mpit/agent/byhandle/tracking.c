/* tracking.c - objects without attributes, from their making to their end. */
#include "tracking.h"

#include "../agent.h"
#include "../gate.h"
#include "../rank.h"
#include "../tracking.h"
#include "byhandle.h"

void tracking_handle_made(int kind, const void *address, const struct making *how, bool nested)
{
	union mpi_object mpi = { 0 };

	if (address == NULL || (nested && !byhandle_got_repeatedly(kind)) || !rank_enter())
		return;
	if (rank.session.abi->object_at(kind, address, &mpi)) {
		if (nested)
			byhandle_got(&rank.session, kind, &mpi);
		else
			byhandle_made(&rank.session, kind, &mpi, how, tracking_number(how));
	}
	/* Inside another call the program doesn't pay for a sample. */
	if (nested)
		gate_leave();
	else
		rank_leave();
}

void tracking_handle_freeing(int kind, const void *address, bool nested)
{
	union mpi_object mpi = { 0 };
	bool ended = false;

	/* An object that has gone already isn't known; of one with several references the same call would take two. */
	if (nested && byhandle_got_repeatedly(kind))
		return;
	/* rank_is_here is a system call: the program is about to free something, and what it frees in a child is not
	 * ours. */
	if (agent_state() != AGENT_RUNNING || address == NULL || gate_mine() || !rank_is_here() || !rank_enter())
		return;
	if (rank.session.abi->object_at(kind, address, &mpi))
		ended = byhandle_freed(&rank.session, kind, &mpi);
	/* Most requests that are freed are none of ours: the program doesn't pay for a sample then. */
	if (ended)
		rank_leave();
	else
		gate_leave();
}

void tracking_key_changed(intptr_t info, const char *key)
{
	union mpi_object mpi = { 0 };
	struct object *o;

	if (!rank_enter())
		return;
	rank.session.abi->object_in(BIND_INFO, info, &mpi);
	o = byhandle_find(&rank.session, BIND_INFO, &mpi);
	if (o != NULL)
		byhandle_key_changed(&rank.session, o, key);
	rank_leave();
}
