/* place.h - where the process stands in a communicator. */
#ifndef MPIT_CALLS_PLACE_H
#define MPIT_CALLS_PLACE_H

#include "calls.h"

/* Asks the library, with local calls; what it doesn't tell is 0. Program's threads. */
void place_ask(intptr_t comm, struct place *out);
/* The same where rank and size are known: object_made. */
void place_complete(intptr_t comm, struct place *out);

#endif
