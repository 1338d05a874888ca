/*
 * tools.h - MPI_T for whoever is connected (docs/internals/protocol.md, TOOL): sessions and handles of its own
 * (sessions.h), single control variables (lists.h), indices by name.
 *
 * Begin reading at tools_answer. The agent's thread, under the gate.
 */
#ifndef MPIT_TOOLS_H
#define MPIT_TOOLS_H

#include "../session.h"
#include "../wire.h"

/* Where an operation on all handles of a session stands; zeros at its beginning. */
struct tools_progress {
	size_t next;
	bool failed;
};

/*
 * Does what a TOOL request says and appends the answer. False: a thread of the program waits for the gate; leave it,
 * and call again with the same request and progress. Allocates for the first session and for large handles.
 */
bool tools_answer(struct wire *w, uint32_t sequence, struct session *s, struct wire_reader request,
		  struct tools_progress *progress);

#endif
