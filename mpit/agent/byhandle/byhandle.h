/*
 * byhandle.h - objects that are known by their handle alone, because MPI gives them no attribute that would tell of
 * their end: error handlers, files, groups, info objects, operations, persistent requests, sessions.
 *
 * Groups and error handlers may be got repeatedly: each time is one more reference, and the object ends with the
 * last. All of it belongs to the gate. Program's threads.
 */
#ifndef MPIT_BYHANDLE_H
#define MPIT_BYHANDLE_H

#include "../session.h"

/* Once, when the session opens. False: no memory. */
bool byhandle_open(struct session *s);

/* After a constructor. The object may have been known: then it has one reference more. */
void byhandle_made(struct session *s, int kind, const union mpi_object *mpi, const struct making *how, uint32_t on);
/* The same where a handle that isn't known is none of the program's. */
void byhandle_got(struct session *s, int kind, const union mpi_object *mpi);
/* Before a handle is freed. One that isn't known is none of ours. True: the object has ended. */
bool byhandle_freed(struct session *s, int kind, const union mpi_object *mpi);

bool byhandle_got_repeatedly(int kind);
struct object *byhandle_find(const struct session *s, int kind, const union mpi_object *mpi); /* NULL: not known */

/*
 * After the program has set or deleted a key of an info object. Only this key is asked for: another thread may have
 * deleted others by now, and to ask for the n-th key of fewer is an error, which is fatal.
 */
void byhandle_key_changed(struct session *s, struct object *info, const char *key);

#endif
