/*
 * requests.h - whose requests a call waits for. Only where peers are counted.
 *
 * A table that all threads write without a lock, 256 kB of which memory is used by the page as it is touched. It
 * forgets: of two requests whose handles fall on one place it knows the later one. It never says of a handle what
 * belongs to another: each entry's words are checked against the handle, whoever else is writing them.
 *
 * A handle stays in it after its end, until it stands for another request, which is noted by whatever function has
 * made it. While measuring is off nothing is noted, so all is forgotten when that ends. What a library has completed at
 * once may share one handle with others; whoever waits for it is not in that call for long.
 */
#ifndef MPIT_CALLS_REQUESTS_H
#define MPIT_CALLS_REQUESTS_H

#include "block.h"

/* Once, in begin. False: no memory; then nothing else here is called. */
bool requests_open(void);
/* Any thread, signal handlers too. */
void requests_forget(void);

/* ---- the program's threads ---- */

/* The handle in memory of the program's, or of a copy of it. */
uint64_t requests_handle(const void *array, size_t i);
/* That handle stands for what this call has begun; names: its call_names, or its call_number. */
void requests_note(uint64_t handle, uint64_t key, uint64_t names);

/* ---- the reader: the gate is held; not in a call of MPI's that the program waits in ---- */

/* Whom a call's request names, and the key of the call that has made it (block.h). */
struct requested {
	uint64_t key, names;
};
/*
 * The requests of a call under way that have not been set to null, from its names: how many are in out, which has room
 * for REQUESTS_MOST; -1: one isn't known, or the call has ended.
 */
int requests_of(const struct block *b, const struct moment_inside *m, struct requested *out);

#endif
