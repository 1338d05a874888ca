/*
 * pcontrol.h - what MPI_Pcontrol (MPI-4.1 section 15.2.4) does to the session: 0 switches observation off, 1 on
 * again; from FIRST_PHASE on it begins a phase (phases.h). Every level, negative ones too, is counted and shown.
 *
 * Switched off, a handle goes on counting in the library, for it is never stopped: what it shows is frozen, and what
 * it gained until it is switched on is kept beside it, to be subtracted. All of it belongs to the gate.
 */
#ifndef MPIT_PCONTROL_H
#define MPIT_PCONTROL_H

#include "session.h"

/*
 * Program's thread, in MPI_Pcontrol. It allocates at 0 (the frozen values): the program has asked for it, and
 * calls this between two parts of its work, never in a signal handler.
 */
void pcontrol_called(struct session *s, int level);

/* Nanoseconds switched off, in all. */
uint64_t pcontrol_paused_ns(const struct session *s);

#endif
