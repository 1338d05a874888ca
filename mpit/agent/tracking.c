/* tracking.c - communicators, windows and datatypes, from their making to their end. */
#include "tracking.h"

#include "agent.h"
#include "gate.h"
#include "objects.h"
#include "rank.h"

void tracking_freed(void *mark)
{
	if (agent_state() != AGENT_RUNNING || !rank_is_here())
		return;
	if (!gate_enter()) {
		/* Its handles must never be read again, and without the gate they can't be closed. */
		agent_give_up("an object was freed while the agent could not look");
		return;
	}
	if (agent_state() == AGENT_RUNNING)
		object_freed(&rank.session, mark);
	rank_leave();
}

/* The gate is held. */
static void take_name(int kind, const union mpi_object *mpi, struct object *o)
{
	static struct text name; /* the gate's */

	/* Asked back, because Fortran's names come with blanks and libraries cut long ones. */
	if (rank.session.abi->object_name(kind, mpi, &name))
		object_named(&rank.session, o, name.bytes);
}

/* The gate is held. */
static void track(int kind, const union mpi_object *mpi, unsigned flags, const struct making *how, uint32_t on)
{
	struct session *s = &rank.session;
	struct object *o;

	/* A datatype may be committed twice. */
	if (s->abi->marked(kind, mpi) != NULL)
		return;
	o = object_made(s, kind, mpi, flags, how, on);
	if (o == NULL)
		return;
	if (!s->abi->mark(kind, mpi, o)) {
		/* We would not hear of its end, and a handle on a freed object crashes. */
		object_freed(s, o);
		s->objects_over++;
		return;
	}
	/* Libraries name new communicators themselves; datatypes may be named before they are committed. */
	if (flags & OBJECT_PREDEFINED || kind == BIND_DATATYPE)
		take_name(kind, mpi, o);
}

void tracking_predefined(void)
{
	static const struct making nothing;
	union mpi_object mpi = { 0 };

	for (int i = 0; i < 3; i++)
		if (rank.session.abi->comm_predefined(i, &mpi))
			track(BIND_COMM, &mpi, OBJECT_PREDEFINED, &nothing, 0);
}

uint32_t tracking_number(const struct making *how)
{
	union mpi_object comm = { 0 };
	const struct object *o;

	if (how->communicator == NULL)
		return 0;
	rank.session.abi->object_in(BIND_COMM, *how->communicator, &comm);
	o = rank.session.abi->marked(BIND_COMM, &comm);
	return o == NULL ? 0 : o->number;
}

void tracking_made(int kind, const void *address, const struct making *how, bool nested)
{
	union mpi_object mpi = { 0 };

	if (nested || address == NULL || !rank_enter())
		return;
	if (rank.session.abi->object_at(kind, address, &mpi))
		track(kind, &mpi, 0, how, tracking_number(how));
	rank_leave();
}

void tracking_named(int kind, intptr_t handle)
{
	union mpi_object mpi = { 0 };
	struct object *o;

	if (!rank_enter())
		return;
	rank.session.abi->object_in(kind, handle, &mpi);
	o = rank.session.abi->marked(kind, &mpi);
	if (o != NULL)
		take_name(kind, &mpi, o);
	rank_leave();
}
