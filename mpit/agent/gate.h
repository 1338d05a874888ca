/*
 * gate.h - the one lock of the agent.
 *
 * Who holds it may touch the agent's tables and call MPI_T on its session.
 *   - The program's threads enter it where an object is made, named or freed, and never across
 *     the program's own MPI call: a rank that hangs in MPI_Comm_dup stays readable.
 *   - The agent's thread only tries it, and answers "busy" when it is taken.
 *   - While the agent's thread holds it, it looks at gate_wanted between any two reads and leaves
 *     as soon as somebody waits: a program's thread waits for one MPI_T read at most, or for a new
 *     variable to be opened, or for the values to be copied out.
 *   - A wait is bounded all the same (GATE_PATIENCE_NS): past it the agent is given up. Time in which the whole process
 *     is stopped doesn't count; a debugger that stops the agent's thread alone, in the gate, does end observation.
 *   - It is not recursive; gate_enter refuses the thread that holds it already, which happens
 *     when an MPI library calls an interposed function from inside MPI_T.
 */
#ifndef MPIT_GATE_H
#define MPIT_GATE_H

#include <stdbool.h>
#include <stdint.h>

#define GATE_PATIENCE_NS 2000000000u

/* Program's thread, once, at the beginning: looks up what the C library has to wait with. Takes the dynamic
 * linker's lock. */
void gate_prepare(void);

/* Program's threads. False: don't touch anything, and don't call gate_leave. */
bool gate_enter(void);
/* The same with a patience of its own in nanoseconds; running out of it gives nothing up. */
bool gate_enter_within(uint64_t patience_ns);
void gate_leave(void);
/* Any thread: whether it holds the gate itself, so that what is called now is called by the agent. */
bool gate_mine(void);

/* The agent's thread. */
bool gate_try(void);
bool gate_wanted(void);

/* How often and how long (nanoseconds, in all and at most) program's threads have waited. Any thread. */
struct gate_waits {
	uint64_t count;
	uint64_t total_ns;
	uint64_t longest_ns;
};
struct gate_waits gate_waits(void);

#endif
