/*
 * session.h - the one MPI_T session of the process: which objects exist (objects.h), which handles are open
 * (handles.h), and the last values read. All of it belongs to the gate.
 *
 * It is open from MPI_Init to the end. No handle is ever stopped (in Open MPI that stops monitoring
 * for the whole process) and MPI_T is never finalized (libraries crash on it).
 */
#ifndef MPIT_SESSION_H
#define MPIT_SESSION_H

#include "abi.h"
#include "catalogue.h"
#include "remains.h"
#include "sources.h"

#include <stdatomic.h>

#define MAX_OBJECTS_DEFAULT 1024
#define MAX_OBJECTS_LIMIT 16384
#define MAX_VALUES 262144    /* in one sample */
#define MAX_FRAME_WORDS 500000 /* of one LAYOUT or REMAINS; a frame's limit is 524,288 */
#define OBJECT_NAME_BYTES 256

enum object_flags { OBJECT_PREDEFINED = 1, OBJECT_INTER = 2 };

struct handle {
	uint32_t number; /* never used again */
	uint32_t object; /* its number */
	struct variable *variable;
	void *mpi; /* NULL: of a source's variable */
	int count;
	/* Realtime, or of the last rename; of a source's variable the object's: it has counted since then. */
	uint64_t created;
	uint64_t *first, *origin; /* count words, or NULL: zeros; never renamed */
	uint64_t *excluded;       /* count words gained while switched off, since origin or first; NULL: nothing */
	/* Count words, while switched off: what it shows. NULL: switched on, or there was no memory. */
	uint64_t *frozen;
	int code;                 /* of the last read */
};

struct object {
	uint32_t number; /* from 1, never used again; 0: the list of handles without an object */
	int kind;        /* enum mpit_bind */
	unsigned flags;
	int rank, size;
	uint64_t created; /* realtime; of the list of handles without an object the session's */
	uint32_t on;     /* number of the communicator it was made on; 0: none, or not tracked */
	char name[OBJECT_NAME_BYTES];
	union mpi_object mpi; /* MPICH keeps its address: an object never moves */
	uint64_t *details;    /* packed as on the wire, detail_words long */
	size_t detail_count, detail_words;
	size_t references;       /* how often the program has got a handle that it may get again */
	struct object *next_alike; /* in its bucket */
	struct handle *handles;
	size_t count, room;
	unsigned tool_handles; /* how many handles of tools are bound to it (tools/sessions.h) */
	struct object *before, *after;
};

/* What the program has said with MPI_Pcontrol; pcontrol.h has the functions. */
struct pcontrol {
	bool paused;
	int level;                             /* of the last call; 1 before any */
	uint64_t calls;                        /* in all */
	uint64_t paused_ns;                    /* in the pauses that have ended */
	uint64_t realtime, monotonic, read_ns; /* of the reading at the beginning of the pause, while paused */
};

struct tools; /* tools/sessions.h */

struct session {
	const struct abi *abi;
	void *mpi;
	struct catalogue catalogue;
	size_t opened; /* variables of the catalogue whose handles have been made on all objects */
	bool again;    /* look once more at variables that could not be described */
	bool requested; /* some of those before it are requested and not open yet */

	struct object unbound; /* head of the list of objects, in the order of their making */
	struct object *last;
	size_t objects, most_objects, handles; /* the bound is each kind's */
	size_t alive[BIND_KINDS];
	size_t bound[BIND_KINDS]; /* variables opened that are bound to a kind: without one an object costs nothing more */
	struct object **buckets;  /* of objects without attributes, by kind and handle (byhandle/byhandle.h) */
	size_t bucket_count;      /* a power of two */
	uint64_t objects_over, handles_over;
	uint32_t next_object, next_handle;
	size_t layout_words; /* of the frame that carries it; handles at most */
	uint64_t layout_generation;

	struct event_count *closed_events; /* registrations that have ended (events/events.h) */
	struct sourced sourced; /* variables of another library than MPI's (sources.h) */

	struct remains remains;

	uint64_t *values; /* of the selected handles, in the order of the list */
	size_t value_count, value_room, values_in_all;
	void *raw; /* one handle's elements as the library writes them */
	size_t raw_bytes;
	uint64_t sampled_realtime, sampled_monotonic, sample_ns;
	uint64_t samples, read_errors;
	_Atomic uint64_t busy_answers, cpu_ns; /* the agent's thread writes them without the gate; cpu_ns is its own */
	uint64_t sampled_layout; /* layout generation that the values belong to */

	struct pcontrol pcontrol;
	struct phases phases;
	_Atomic uint64_t finalizing; /* CLOCK_MONOTONIC, ns: when MPI_Finalize began; 0: it hasn't. Without the gate */
	bool may_write;          /* MPIT_AGENT_ALLOW_WRITE; written once, before the agent runs */
	uint64_t category_stamp; /* session_category_stamp when last asked */
	struct tools *tools;     /* of who is connected; NULL: nobody has made a session */
};

/*
 * Opens it and every variable that needs no object. deny and open are lists (deny.h), which must live on. False:
 * nothing can be observed.
 */
bool session_open(struct session *s, const struct abi *abi, const char *deny, const char *open, size_t most_objects);

/* Which variables are read. map may be longer than the catalogue. */
void session_select(struct session *s, bool beyond, const uint64_t *map, size_t words);

/*
 * Variables that session_discover is to open: of those in the map that are opened on request only, those that are not
 * open yet. map may be longer than the catalogue. What has been opened stays so.
 */
void session_request(struct session *s, const uint64_t *map, size_t words);

/*
 * Another number when categories have changed: MPI_T_category_changed's + 1, and one for each variable of a source or
 * of events.
 * 0: the library doesn't say.
 */
uint64_t session_category_stamp(const struct session *s);

/* Finds and opens variables that have appeared or been requested; allocates. False if `stop` (may be NULL) said to
 * leave in the middle: call it again. */
bool session_discover(struct session *s, bool (*stop)(void));
/*
 * Reads every selected handle; allocates nothing. False if `stop` (may be NULL) said to leave in the middle: the
 * values then mean nothing until the next call.
 */
bool session_sample(struct session *s, bool (*stop)(void));

/* Frees the agent's memory, not the library's handles: for tests. */
void session_drop(struct session *s);

#endif
