/*
 * lists.h - control variables and categories: the lists of them, and one variable for a tool
 * (docs/internals/protocol.md, CVARS, CATEGORIES, TOOL).
 *
 * All of them call MPI_T and use the gate's buffers: the agent's thread, under the gate.
 */
#ifndef MPIT_LISTS_H
#define MPIT_LISTS_H

#include "../frames.h"

/*
 * As many control variables or categories from `first` on as fit in a part. Before control variables come the
 * enumerations that they name, which are described once and kept: allocates.
 */
void frame_cvars(struct wire *w, uint32_t sequence, struct session *s, uint64_t first);
void frame_categories(struct wire *w, uint32_t sequence, const struct session *s, uint64_t first);

/* The index of a category of the agent's own; -1: there is none of that name. */
int lists_category_index(const struct session *s, const char *name);

/* Whether all control variables and all categories have been told to somebody. Any thread. */
bool lists_told(void);

/* docs/internals/protocol.md, CVARS: kind of value. */
enum value_kind { VALUE_NONE, VALUE_WORDS, VALUE_STRING };

/* One control variable for a tool. */
struct cvar {
	int index;
	struct cvar_description is;
	union mpi_object *object; /* NULL: it is bound to none */
};

/*
 * Describes it and finds its object; returns CODE_SUCCESS or the reason. *why is set where the agent refuses by
 * itself, in all three. cvar_get leaves the value for cvar_put, until the next call here.
 */
int cvar_find(const struct session *s, uint64_t index, uint64_t object, struct cvar *out, const char **why);
int cvar_get(const struct session *s, const struct cvar *v, int *count, const char **why);
void cvar_put(struct wire *w, const struct cvar *v, int count);
/* kind and what follows it in the request: `length` words, or bytes of a string, at `value`. */
int cvar_set(const struct session *s, const struct cvar *v, uint64_t kind, const uint64_t *value, size_t length,
	     const char **why);

#endif
