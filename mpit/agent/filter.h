/*
 * filter.h - whether the program has been denied system calls since MPI_Init.
 *
 * A seccomp filter may end the process for a call that it doesn't allow, and there is no asking which those are. So
 * where one has come the agent makes no connection any more: what is connected stays so.
 */
#ifndef MPIT_FILTER_H
#define MPIT_FILTER_H

#include <stdbool.h>

/* Program's thread, in MPI_Init: a container's filters were there before, and the agent has got by with them. */
void filter_begin(void);

/*
 * Whether the calling thread has more of them by now. Async-signal-safe. One system call; some more where there was a
 * filter in MPI_Init.
 */
bool filter_came(void);

#endif
