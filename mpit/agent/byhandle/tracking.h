/*
 * tracking.h - objects without attributes (byhandle.h), from their making to their end, which the functions that free
 * them tell.
 *
 * Program's threads only, in an interposed function.
 */
#ifndef MPIT_BYHANDLE_TRACKING_H
#define MPIT_BYHANDLE_TRACKING_H

#include "../abi.h"

/*
 * After a constructor; address: of the new handle. nested: it was called inside another one, and a handle that isn't
 * known is the library's own.
 */
void tracking_handle_made(int kind, const void *address, const struct making *how, bool nested);

/*
 * Before a function that takes the handle away. nested: inside another call of the same function. That may be the
 * same call, passed on by a tool between us and the library, or a call of the program's own: the free function of a
 * generalized request may free another request.
 */
void tracking_handle_freeing(int kind, const void *address, bool nested);

/* After the program has set or deleted a key of an info object. */
void tracking_key_changed(intptr_t info, const char *key);

#endif
