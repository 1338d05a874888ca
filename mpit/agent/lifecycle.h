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

/*
 * Before the real MPI_Init (for_world) or MPI_Session_init. True: the caller is the first, and says below what came of
 * it.
 */
bool lifecycle_prepare(const void *caller, bool for_world);
/* After the real MPI_Init. */
void lifecycle_world_begun(bool first, bool succeeded);
/* After the real MPI_Session_init; session: the address of the new handle, NULL: it has failed. */
void lifecycle_session_begun(bool first, const void *session);
/* Before the real MPI_Session_finalize: the last one takes the last sample, unless MPI_Finalize will. */
void lifecycle_session_ending(const void *session);

/*
 * The program's MPI_T_init_thread. The library's lock follows the last caller, so that the level which is asked of the
 * real one never falls below the agent's.
 */
typedef int tool_init(int required, int *provided);
int lifecycle_tool_init(tool_init *next, const void *caller, int required, int *provided);

/* After MPI_Pcontrol. */
void lifecycle_pcontrol(int level);

/* Before and after the real MPI_Finalize, of a tool's too: what is called inside is no longer the program's. */
void lifecycle_finalizing(void);
void lifecycle_finalized(void);

/* Takes and sends the last sample. Called again it does nothing. */
void lifecycle_end(enum end_reason reason);

#endif
