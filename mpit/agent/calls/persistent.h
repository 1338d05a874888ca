/*
 * persistent.h - persistent requests: what MPI_Start sends, and to whom. Only where peers are counted.
 *
 * A table of all that has been made, also while nothing is measured: a request lives long, and its handle stands for it
 * alone. 320 kB of which memory is used by the page as it is touched. A handle's entry is written by the call that makes
 * the request, before the program can start it, and stays until the handle stands for another persistent one.
 */
#ifndef MPIT_CALLS_PERSISTENT_H
#define MPIT_CALLS_PERSISTENT_H

#include <stdbool.h>

/* Once, in begin. False: no memory; then nothing else here is called. */
bool persistent_open(void);

#endif
