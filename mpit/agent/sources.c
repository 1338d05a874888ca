/* sources.c - variables that another library in the process measures. */
#include "sources.h"

#include "agent.h"
#include "handles.h"
#include "now.h"

#include <stdlib.h>
#include <string.h>

void sources_begin(struct session *s, source_function *offered, const struct source_mpi *mpi)
{
	const struct source *source = offered == NULL ? NULL : offered(SOURCE_VERSION);
	const char *why = NULL;

	if (offered == NULL)
		return;
	if (source == NULL || source->version != SOURCE_VERSION) {
		agent_log(SOURCE_SYMBOL " is of another version than this agent's %d: what it measures is not shown",
			  SOURCE_VERSION);
		return;
	}
	if (!source->begin(mpi, &why)) {
		agent_log("%s can't be measured: %s", source->category, why == NULL ? "it doesn't say why" : why);
		return;
	}
	s->sourced.source = source;
	agent_measures_by(source->measure);
	agent_log("%s is measured in this process%s%s", source->category, why == NULL ? "" : "; ", why == NULL ? "" : why);
}

/* ---- variables ---- */

/* Without room they are tried again at the next call; pairs that are told of meanwhile are over the bound. */
static void add_variables(struct session *s)
{
	struct sourced *d = &s->sourced;
	size_t count = d->source->count(), before = d->count;

	for (; d->count < count; d->count++) {
		struct variable **variables = array_with_room(d->variables, d->count, &d->room, sizeof *variables);
		struct variable *v = variables == NULL ? NULL : catalogue_add(&s->catalogue, d->source, d->count);

		if (variables != NULL)
			d->variables = variables;
		if (v == NULL)
			break;
		variables[d->count] = v;
	}
	if (d->count != before)
		s->catalogue.generation++;
}

/* ---- pairs ---- */

/* Called by the source, which may be in the middle of its own tables: it is only noted. */
static void told(void *context, size_t variable, uint32_t object)
{
	struct session *s = context;
	struct sourced *d = &s->sourced;
	struct source_pair *pairs = array_with_room(d->told, d->told_count, &d->told_room, sizeof *pairs);

	if (pairs == NULL) {
		s->handles_over++;
		return;
	}
	d->told = pairs;
	d->told[d->told_count++] = (struct source_pair){ .variable = variable, .object = object };
}

/*
 * The object with a number (0: the head of the list), looked for from another one on, because the list is in the
 * order of numbers and pairs mostly come by object. NULL: it has gone.
 */
static struct object *near(struct object *from, uint32_t number)
{
	while (from->number > number)
		from = from->before;
	while (from->after != NULL && from->after->number <= number)
		from = from->after;
	return from->number == number ? from : NULL;
}

/* Between any two of them a program's thread may ask for the gate. */
static bool open_told(struct session *s, bool (*stop)(void))
{
	struct sourced *d = &s->sourced;
	struct object *last = &s->unbound;

	for (; d->taken < d->told_count; d->taken++) {
		const struct source_pair *p = &d->told[d->taken];
		struct object *o;

		if (stop != NULL && stop())
			return false;
		if (p->variable >= d->count) {
			s->handles_over++;
			s->layout_generation++;
			continue;
		}
		if (!variable_usable(d->variables[p->variable]))
			continue;
		o = near(last, p->object);
		if (o != NULL) {
			handle_pair(s, o, d->variables[p->variable]);
			last = o;
		} else {
			/* Its object ended before the call did: what it counted has no place any more. */
			s->remains.lost++;
			s->remains.generation++;
		}
	}
	d->taken = d->told_count = 0;
	return true;
}

bool sources_discover(struct session *s, bool (*stop)(void))
{
	if (s->sourced.source == NULL)
		return true;
	s->sourced.source->discover(told, s); /* behind what the last call may have left */
	add_variables(s);                     /* after it: all that pairs have named are there */
	return open_told(s, stop);
}

/* ---- objects ---- */

/* Those that calls name. */
static bool concerns(const struct session *s, const struct object *o)
{
	return s->sourced.source != NULL && (o->kind == BIND_COMM || o->kind == BIND_WIN || o->kind == BIND_FILE);
}

/* An int's unused bytes are zero (abi.h). */
static uint64_t handle_of(const struct object *o)
{
	return (uint64_t)(uintptr_t)o->mpi.pointer;
}

void sources_object_made(const struct session *s, const struct object *o)
{
	if (concerns(s, o))
		s->sourced.source->object_made(o->kind, handle_of(o), o->number, o->rank, o->size);
}

void sources_object_freed(const struct session *s, const struct object *o)
{
	if (concerns(s, o))
		s->sourced.source->object_freed(o->kind, handle_of(o), o->number);
}

/* ---- calls under way ---- */

struct under_way sources_under_way(const struct session *s)
{
	struct under_way u = { 0 };
	uint64_t finalizing = atomic_load(&s->finalizing);

	u.known = s->sourced.source != NULL && s->sourced.source->calls(&u.is);
	if (!u.known)
		return u;
	phases_told(&s->phases, &u.is.threads[0], &u.phases);
	u.cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	if (finalizing != 0)
		u.finalize_ns = monotonic_ns() - finalizing + 1; /* 0 is another thing */
	return u;
}

void sources_comms(const struct session *s, bool all, source_comm_function *tell, void *context)
{
	if (s->sourced.source != NULL)
		s->sourced.source->comms(all, tell, context);
}

size_t sources_sites(const struct session *s, size_t first, struct source_site *out, size_t *count, size_t *made)
{
	if (s->sourced.source != NULL && s->sourced.source->sites != NULL)
		return s->sourced.source->sites(first, out, count, made);
	*count = *made = 0;
	return first;
}

void sources_drop(struct session *s)
{
	agent_measure(false);
	agent_measures_by(NULL);
	free(s->sourced.variables);
	free(s->sourced.told);
	s->sourced = (struct sourced){ 0 };
}
