/*
 * handles.h - handles of performance variables: how they are opened on an object, read, and closed when it ends.
 *
 * All of it belongs to the gate. No handle is ever stopped.
 */
#ifndef MPIT_HANDLES_H
#define MPIT_HANDLES_H

#include "session.h"

/* Opens the library's variables[from …] that are bound to an object of this kind. A source tells itself what it has
 * on which. */
void handles_open(struct session *s, struct object *o, size_t from, size_t to);

/* Makes a handle of a source's variable on one object, or on the list of handles without; allocates. Over a bound it
 * is counted. */
void handle_pair(struct session *s, struct object *o, struct variable *v);

/* The object ends, or has another name: what its handles have counted goes to the remains of its name. */
void handles_end(struct session *s, struct object *o);
void handles_split(struct session *s, struct object *o);

/*
 * A handle's values as they are to be seen now: read, or those it is frozen at. h->code says whether the reading went
 * well; where it didn't, the values are zeros.
 */
void handle_values(struct session *s, struct handle *h, uint64_t *to);
/* The same, always read. */
void handle_read(struct session *s, struct handle *h, uint64_t *to);
/* It shows these values until it is switched on again (pcontrol.h). Allocates. */
void handle_freeze(struct handle *h, const uint64_t *values);

/* Words enough for any one handle; what session_sample has read is gone. */
uint64_t *handle_scratch(struct session *s);
/* Makes s->raw large enough for a handle's elements; allocates. */
bool handle_raw(struct session *s, int count, int datatype_bytes);

#endif
