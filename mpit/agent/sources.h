/*
 * sources.h - the agent's side of source.h: variables that another library in the process measures, shown as the MPI
 * library's own are. There is one such library at most, and mostly none: then nothing here does anything.
 *
 * A variable of the source is one of the catalogue (catalogue.h) behind those found before it, a pair of a variable
 * and an object is a handle in the object's list. All of it belongs to the gate unless its declaration says
 * otherwise.
 */
#ifndef MPIT_SOURCES_H
#define MPIT_SOURCES_H

#include "kernel.h"
#include "phases.h"
#include "source.h"

/* What stands in for MPI_T's index of variable i of the source: far above what MPI_T may have (MAX_VARIABLES). */
#define SOURCE_INDEX 0x100000

struct session;
struct object;
struct variable;

struct source_pair {
	size_t variable;
	uint32_t object;
};

/* Of a session; zeros: there is no source. */
struct sourced {
	const struct source *source;
	struct variable **variables; /* of the catalogue, by the source's number */
	size_t count, room;
	struct source_pair *told; /* pairs that the source has told of, from `taken` on without a handle yet */
	size_t told_count, told_room, taken;
};

/*
 * Takes what the process offers, NULL: nothing; logs why it isn't shown if it is not. mpi must live on. Program's
 * thread, once, after the session is open and before an object is made; nothing is measured before agent_measure
 * says so.
 */
void sources_begin(struct session *s, source_function *offered, const struct source_mpi *mpi);

/*
 * Variables and pairs that have come up since the last call; allocates. False: `stop` (may be NULL) said to leave in
 * the middle, call it again. What finds no place is counted as other handles are.
 */
bool sources_discover(struct session *s, bool (*stop)(void));

/* Program's thread: an object has been made, and is about to end; after its last values have been taken. */
void sources_object_made(const struct session *s, const struct object *o);
void sources_object_freed(const struct session *s, const struct object *o);

/* Calls under way, as SAMPLE tells of them. */
struct under_way {
	bool known; /* false: nothing is measured, and the rest is zeros */
	struct source_calls is;
	uint64_t cpu_ns; /* of the process, at about that moment */
	uint64_t finalize_ns; /* since MPI_Finalize began; 0: it hasn't */
	struct phases phases; /* to that moment */
	struct kernel_says kernel; /* the caller's, as are the next two */
	/* Where the longest was called from: a file and an offset in it. NULL: it hasn't been looked up. */
	const char *module;
	uint64_t offset;
};
/* The gate is held; calls nothing of MPI's. */
struct under_way sources_under_way(const struct session *s);

/* Communicators: those of which anything has changed since they were told of, or all. The gate is held. */
void sources_comms(const struct session *s, bool all, source_comm_function *tell, void *context);

/* Places that the program calls MPI from: source.h, sites. The gate is held. */
size_t sources_sites(const struct session *s, size_t first, struct source_site *out, size_t *count, size_t *made);

/* Frees the agent's memory; the source is switched off. For tests. */
void sources_drop(struct session *s);

#endif
