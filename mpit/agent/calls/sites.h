/*
 * sites.h - from where in the program MPI is called: calls, ticks and bytes by function, object and the address that the
 * call returns to. Only where it is asked for; otherwise nothing here does anything but sites_open, and what a call
 * during which an object has come or gone needs in any case.
 *
 * Each thread counts in a table of its block (block.h), in which a site stays. Sites of all threads have numbers, in the
 * order in which they have come. Number 0 is all calls whose site has found no place.
 *
 * Behind the bindings of Fortran the address is the binding's own, the same for all calls of a function. Once the reader
 * has said how large the frame is that is there (source.h, source_site), calls are counted at what has called it. Where
 * stacks are asked for, what has called that is a site, too, and so on: one call is counted once, at the last one known.
 */
#ifndef MPIT_CALLS_SITES_H
#define MPIT_CALLS_SITES_H

#include "block.h"

#ifndef SITES
#define SITES 1024u /* places of a thread's table, a power of two */
#endif
#define SITES_MOST (SITES / 4 * 3) /* that are used: one that isn't there is soon missed */
#define SITES_OF_ALL 16384u        /* threads */

/* Once, in begin, before the first block is made: decides whether calls_state.sites. */
void sites_open(void);

/* source.h, sites, but that time_ns is in ticks. The gate is held. */
size_t sites_read(size_t first, struct source_site *out, size_t *count, size_t *made);

#endif
