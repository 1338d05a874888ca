/*
 * frames.h - what the agent says, frame by frame (docs/internals/protocol.md).
 *
 * All of them append to a wire buffer. Those that take a session need the gate.
 */
#ifndef MPIT_FRAMES_H
#define MPIT_FRAMES_H

#include "identity.h"
#include "session.h"
#include "wire.h"

enum connection_kind { CONNECTION_STAYS = 0, CONNECTION_FINAL = 1 };
enum sample_status { SAMPLE_FRESH, SAMPLE_BUSY, SAMPLE_PASSIVE, SAMPLE_FINAL, SAMPLE_PAUSED };
enum end_reason { END_NONE, END_FINALIZE, END_EXIT, END_ABORT };

/* What the exporter has seen of a rank: the payload of its SAMPLE request. */
struct generations {
	uint64_t catalogue, layout, remains;
	bool comms; /* it has had all communicators: only what has changed since is told */
};

/* What the agent counts of itself; all but objects, level and category_stamp never fall. */
struct agent_statistics {
	uint64_t samples, busy, read_errors;
	uint64_t cpu_ns; /* of the agent's thread */
	uint64_t objects;
	int level;                       /* of the last MPI_Pcontrol, 1 before any */
	uint64_t level_calls, paused_ns; /* of MPI_Pcontrol */
	uint64_t category_stamp;         /* MPI_T_category_changed's number + 1, 0: not known */
};

/* The agent's thread, or the program's with the last sample. */
void frame_hello(struct wire *w, const struct identity *id, enum connection_kind kind);

/* ENUMS, VARIABLES, LAYOUT and REMAINS where they differ from what was seen, then SAMPLE with the last values read. */
void frame_answer(struct wire *w, uint32_t sequence, const struct session *s, struct generations seen,
		  enum sample_status status, enum end_reason end, const struct under_way *calls);

/* What the agent has counted so far. */
struct agent_statistics statistics_of(const struct session *s);

/* SAMPLE without values: the gate was taken. Needs no gate. */
void frame_busy(struct wire *w, uint32_t sequence, const struct agent_statistics *statistics,
		const struct under_way *calls);

/* ENUMS with the enumerations that a page of control variables names (enumeration.named), if there are any. */
void frame_enums_named(struct wire *w, uint32_t sequence, const struct catalogue *c);

void frame_error(struct wire *w, uint32_t sequence, enum wire_error code, const char *what);

#endif
