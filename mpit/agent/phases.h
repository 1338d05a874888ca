/*
 * phases.h - the time of the program's phases: MPI_Pcontrol(n) with n from FIRST_PHASE on begins phase n, which goes on
 * to the next one or to MPI_Finalize. It may begin many times. The time is that of the thread which has initialised
 * MPI, as the source measures it; without a source there are no phases. All of it belongs to the gate.
 */
#ifndef MPIT_PHASES_H
#define MPIT_PHASES_H

#include "source.h"

#define FIRST_PHASE 3
#define PHASES 16
#define OTHER_PHASES 0 /* level of the last one, which takes those that have no room */

/* As source_thread has them: nanoseconds. */
struct phase {
	int level;
	uint64_t observed_ns, activity_ns[ACTIVITIES];
};

struct phases {
	struct phase list[PHASES];
	size_t count, now; /* now: which goes on, of count */
	struct phase begun; /* what the thread had when it began */
};

/* Program's thread, in MPI_Pcontrol; takes the microseconds of source->calls. The source may be NULL. */
void phases_begin(struct phases *p, const struct source *source, int level);

/* The phases with the one that goes on to the moment that `now` is of. */
void phases_told(const struct phases *p, const struct source_thread *now, struct phases *out);

#endif
