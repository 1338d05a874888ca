/*
 * asked.h - what more than counts and times is to be measured: MPIT_CALLS, the words that exec --calls=WORDS puts there.
 *
 * A list with commas. Words: sizes, peers, sites, stacks; light is the exporter's, which shows less on /metrics; 1 and 0
 * are the command's own (they say whether this library is loaded) and ask for nothing here.
 */
#ifndef MPIT_CALLS_ASKED_H
#define MPIT_CALLS_ASKED_H

#include <stdbool.h>

/* The list, which must stay; NULL: none. What of it takes effect does so in begin. */
void calls_ask(const char *list);

/* Is this word in the list? */
bool calls_asked(const char *word);

/* A sentence about the first word that nobody knows, for the agent's log (static storage); NULL: all are known. In
 * begin. */
const char *calls_asked_unknown(void);

#endif
