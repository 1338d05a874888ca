/*
 * catalogue.h - performance variables, the library's, those that count its events (events/events.h), and those of a
 * source (source.h), as the agent has found them. All of it belongs to the gate.
 */
#ifndef MPIT_CATALOGUE_H
#define MPIT_CATALOGUE_H

#include "abi.h"
#include "sources.h"

#define MAX_VARIABLES 65536
#define MAX_ENUM_ITEMS 4096

/* docs/internals/protocol.md, VARIABLES: state. */
enum variable_state {
	VARIABLE_OPEN,
	VARIABLE_DENIED,
	VARIABLE_ALLOC_FAILED,
	VARIABLE_START_FAILED,
	VARIABLE_READ_FAILED,
	VARIABLE_BAD_DATATYPE,
	VARIABLE_EXHAUSTED,
	VARIABLE_ON_REQUEST, /* nobody has requested it yet */
};

struct enumeration {
	uint32_t number;
	void *mpi;
	char *name;
	int items;
	int *values;
	char **names;
	uint64_t generation; /* the catalogue's, when it was found */
	bool named;          /* by the control variables of the page that is being written (tools/lists.c) */
};

struct variable {
	uint32_t number; /* dense from 0, never used again */
	int index;       /* MPI_T's, SOURCE_INDEX and of_source, or EVENT_INDEX (events/events.h) and the event's */
	bool event;                  /* it counts events */
	const struct source *source; /* NULL: the library's */
	size_t of_source;            /* its number there */
	bool distribution;           /* docs/internals/protocol.md, Distributions */
	struct pvar_description is;
	struct enumeration *enumeration; /* NULL: none */
	enum variable_state state;
	int code;
	bool selected;
	bool on_request; /* it costs the program something once it is open */
	bool requested;  /* and is to be opened at the next opportunity */
	size_t handles; /* open now */
	char *name, *description;
	uint64_t generation; /* the catalogue's, when it was found or last changed */
};

struct selection {
	bool beyond; /* variables that the map doesn't reach */
	size_t words;
	uint64_t map[MAX_VARIABLES / 64];
};

/* Of one kind of indices. */
struct found {
	int seen;   /* so many have been looked at */
	bool *dead; /* of those, the ones that could not be described */
};

struct catalogue {
	/* Lists (deny.h): of what is never opened, and of what has been requested from the beginning. */
	const char *deny, *open;
	struct variable **variables;
	size_t count, room;
	struct enumeration **enumerations;
	size_t enumeration_count;
	struct found pvars, events;
	bool interrupted;    /* the last refresh stopped before its end */
	uint64_t generation; /* 0: nothing found yet */
	struct selection selection; /* of those whose values are read */
};

/*
 * Looks at the indices that appeared since the last call, and with again at those that could not
 * be described before (a component may have come to life). Stops early when `stop` says so.
 * Returns how many variables are new; they are the last ones of the list.
 */
size_t catalogue_refresh(struct catalogue *c, const struct abi *abi, bool again, bool (*stop)(void));

/*
 * Adds variable i of a source, of the generation that comes next; allocates. NULL: there is no memory, or no number
 * left for it. Who has added some raises the catalogue's generation by one.
 */
struct variable *catalogue_add(struct catalogue *c, const struct source *source, size_t i);

/* The index of a variable that is none of the library's own; -1: there is none of that name and class. */
int catalogue_index(const struct catalogue *c, const char *name, int mpi_class);

/* Which variables are read, those not found yet included. map may be longer than the catalogue. */
void catalogue_select(struct catalogue *c, bool beyond, const uint64_t *map, size_t words);

/*
 * Notes what an attempt to open a variable came to; changes the generation if that is news. One that is open on
 * some object stays open: Open MPI's monitoring can be read on MPI_COMM_WORLD and nowhere else.
 */
void catalogue_note(struct catalogue *c, struct variable *v, enum variable_state state, int code);

/* True if a variable may be opened now. */
bool variable_usable(const struct variable *v);

enum number { NUMBER_SIGNED, NUMBER_UNSIGNED, NUMBER_FLOATING };
enum number number_kind(int datatype);

/* One element of a variable's datatype, extended to 64 bits as docs/internals/protocol.md, SAMPLE, says. */
uint64_t widen(const struct variable *v, const void *elements, size_t i);

/* The way back, for what a tool writes: `count` words into elements of a datatype. False: one doesn't fit. */
bool narrow(int datatype, int datatype_bytes, const uint64_t *words, size_t count, void *elements);

/* The enumeration with the library's handle, found before or described now; allocates. NULL: none, or it can't be
 * described. */
struct enumeration *catalogue_enumeration(struct catalogue *c, const struct abi *abi, void *mpi);

void catalogue_free(struct catalogue *c);

#endif
