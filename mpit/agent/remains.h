/*
 * remains.h - what freed and renamed objects have counted, merged per variable and object name.
 *
 * The agent knows no policy: it keeps sum, maximum and minimum of everything, and the exporter
 * takes what fits the variable's class (docs/internals/protocol.md, REMAINS). All of it belongs to the gate.
 */
#ifndef MPIT_REMAINS_H
#define MPIT_REMAINS_H

#include "catalogue.h"

struct remain {
	const struct variable *variable;
	int count; /* elements */
	uint64_t contributions;
	uint64_t created;                     /* realtime when the earliest began */
	uint64_t *gained, *first, *max, *min; /* count words each, one allocation */
	struct remain *next;
};

struct remains_name {
	char *name;
	struct remain *list;
	struct remains_name *next;
};

#define REMAINS_BUCKETS 256

struct remains {
	struct remains_name *buckets[REMAINS_BUCKETS];
	size_t names, most_names;
	size_t words, most_words; /* of the frame that carries them */
	size_t count;
	uint64_t lost;
	uint64_t generation;
};

/* One handle's contribution; arrays of count elements, as in SAMPLE. first, origin and excluded may be NULL. */
struct contribution {
	const struct variable *variable;
	int count;
	uint64_t created;
	const uint64_t *last, *first, *origin;
	const uint64_t *excluded; /* gained while switched off (pcontrol.h), NULL: nothing */
};

void remains_init(struct remains *r, size_t most_names, size_t most_words);
/* Adds to what objects of that name have; allocates for a new name or variable. Program's thread. */
void remains_add(struct remains *r, const char *name, const struct contribution *c);
void remains_free(struct remains *r);

/* a + b and a - b as the variable's datatype has them: of doubles, or of 64-bit integers that wrap. */
uint64_t value_plus(const struct variable *v, uint64_t a, uint64_t b);
uint64_t value_minus(const struct variable *v, uint64_t a, uint64_t b);

bool all_zero(const uint64_t *words, int count);

#endif
