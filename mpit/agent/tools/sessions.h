/*
 * sessions.h - MPI_T sessions and handles of the tools that are connected, beside the agent's own, which none of this
 * touches.
 *
 * All of it belongs to the gate. It is made by the agent's thread alone and ends with the connection, except a handle
 * on an object that ends: the program's thread closes it first, for to read a handle of a freed object is a crash.
 *
 * Places are used again, numbers never: the number of what is in place p for the n-th time is p + 1 + n * places. So
 * a number leads to its place, and one that has gone leads to none.
 */
#ifndef MPIT_TOOLS_SESSIONS_H
#define MPIT_TOOLS_SESSIONS_H

#include "../session.h"

#define TOOL_SESSIONS 16
#define TOOL_HANDLES 4096

struct tool_session {
	uint32_t uses;
	bool open;
	void *mpi;
};

struct tool_handle {
	uint32_t uses;
	struct tool_session *session;
	struct variable *variable; /* NULL: the place is free */
	struct object *object;     /* NULL: bound to none */
	void *mpi;
	int count;
	bool started; /* not of a continuous one */
};

struct tools {
	struct tool_session sessions[TOOL_SESSIONS];
	struct tool_handle handles[TOOL_HANDLES];
	size_t most; /* places below this have been used */
};

/* By number, NULL: there is none. t may be NULL. */
struct tool_session *tool_session_find(struct tools *t, uint64_t number);
struct tool_handle *tool_handle_find(struct tools *t, const struct tool_session *session, uint64_t number);

/* The first session allocates. *why is set where the agent refuses by itself. */
int tool_session_create(struct session *s, uint64_t *number, const char **why);
int tool_session_close(struct session *s, struct tool_session *session);

/* A free place for a handle, NULL: there is none; what is put there gets a number. */
struct tool_handle *tool_handle_place(struct tools *t);
uint32_t tool_handle_put(struct tools *t, struct tool_handle *place, const struct tool_handle *made);
int tool_handle_close(struct session *s, struct tool_handle *h);

/* Closes the handles of a session, or of all (NULL). False: a thread of the program waits for the gate; leave it, and
 * call again. */
bool tools_close_handles(struct session *s, const struct tool_session *session);
/* Frees all handles and sessions of the connection. False as above. The agent's thread, while MPI_T may be called. */
bool tools_close(struct session *s);
/* Forgets them without a call of MPI_T: after the last sample. */
void tools_forget(struct session *s);

/* Closes the handles that are bound to an object, before it ends; their numbers then are of no handle. Whoever ends
 * the object. */
void tools_object_ends(struct session *s, struct object *o);

#endif
