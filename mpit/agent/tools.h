/*
 * tools.h - MPI_T for whoever is connected (docs/protocol.md, TOOL): sessions and handles of its own, beside the
 * agent's, which none of this touches; single control variables; indices by name.
 *
 * All of it belongs to the gate. It is made by the agent's thread alone and ends with the connection, except a handle
 * on an object that ends: the program's thread closes it first, for to read a handle of a freed object is a crash.
 */
#ifndef MPIT_TOOLS_H
#define MPIT_TOOLS_H

#include "session.h"
#include "wire.h"

#define TOOL_SESSIONS 16
#define TOOL_HANDLES 4096

/* Where an operation on all handles of a session stands; zeros at its beginning. */
struct tools_progress {
	size_t next;
	bool failed;
};

/*
 * Does what a TOOL request says and appends the answer. False: a thread of the program waits for the gate; leave it,
 * and call again with the same request and progress. The agent's thread; allocates for the first session and for
 * large handles.
 */
bool tools_answer(struct wire *w, uint32_t sequence, struct session *s, struct wire_reader request, struct tools_progress *progress);

/* Frees all handles and sessions of the connection. False as above. The agent's thread, while MPI_T may be called. */
bool tools_close(struct session *s);
/* Forgets them without a call of MPI_T: after the last sample. */
void tools_forget(struct session *s);

/* Closes the handles that are bound to an object, before it ends; their numbers then are of no handle. Whoever ends
 * the object. */
void tools_object_ends(struct session *s, struct object *o);

#endif
