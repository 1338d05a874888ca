/*
 * lifecycle.h - from MPI_Init to the last sample: what the interposed functions tell the agent.
 *
 * Program's threads only. None of these waits longer than gate.h allows, and none fails: at worst
 * the program runs on unobserved.
 */
#ifndef MPIT_LIFECYCLE_H
#define MPIT_LIFECYCLE_H

#include "frames.h"

#include <stdbool.h>
#include <stdint.h>

/* Before the real MPI_Init. True: the caller is the first and calls lifecycle_begin after a success. */
bool lifecycle_prepare(const void *caller);
void lifecycle_begin(void);

/*
 * What to ask of the real MPI_T_init_thread when the program asks for `required`, and what to answer it: the
 * library's lock follows the last caller, so the level must never fall below the agent's.
 */
bool lifecycle_uses_tools(const void *caller); /* false: pass the call on as it is */
int lifecycle_tool_required(void);
int lifecycle_tool_provided(int required, int provided);

void lifecycle_comm_made(const void *comm);
void lifecycle_win_made(const void *win);
void lifecycle_comm_named(intptr_t comm);
void lifecycle_win_named(intptr_t win);

/* Takes and sends the last sample. Called again it does nothing. */
void lifecycle_end(enum end_reason reason);

#endif
