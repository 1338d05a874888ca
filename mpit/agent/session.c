/* session.c - the one MPI_T session of the process. */
#include "session.h"

#include "byhandle/byhandle.h"
#include "events/events.h"
#include "handles.h"
#include "now.h"
#include "objects.h"
#include "tools/sessions.h"

#include <stdlib.h>

static void count_bound(struct session *s, const struct variable *v)
{
	if (v->is.bind < BIND_KINDS && variable_usable(v))
		s->bound[v->is.bind]++;
}

bool session_open(struct session *s, const struct abi *abi, const char *deny, const char *open, size_t most_objects)
{
	*s = (struct session){
		.abi = abi,
		.catalogue = { .deny = deny, .open = open, .selection.beyond = true },
		.most_objects = most_objects,
		.layout_generation = 1,
		.layout_words = 16,
		.pcontrol.level = 1,
		.unbound.created = realtime_ns(),
	};
	s->unbound.kind = BIND_NONE;
	s->last = &s->unbound;
	remains_init(&s->remains, most_objects, MAX_FRAME_WORDS);
	if (!byhandle_open(s) || abi->session_open(&s->mpi) != CODE_SUCCESS)
		return false;
	catalogue_refresh(&s->catalogue, abi, false, NULL);
	for (size_t i = 0; i < s->catalogue.count; i++)
		count_bound(s, s->catalogue.variables[i]);
	handles_open(s, &s->unbound, 0, s->catalogue.count);
	s->opened = s->catalogue.count;
	return true;
}

void session_select(struct session *s, bool beyond, const uint64_t *map, size_t words)
{
	catalogue_select(&s->catalogue, beyond, map, words);
	s->value_count = 0;
	for (struct object *o = &s->unbound; o != NULL; o = o->after)
		for (size_t i = 0; i < o->count; i++)
			if (o->handles[i].variable->selected)
				s->value_count += (size_t)o->handles[i].count;
	s->layout_generation++;
}

/* Opens variable i on all objects. */
static void open_variable(struct session *s, size_t i)
{
	count_bound(s, s->catalogue.variables[i]);
	for (struct object *o = &s->unbound; o != NULL; o = o->after)
		handles_open(s, o, i, i + 1);
	s->layout_generation++;
}

/* Opens the variables that the last refresh found; between any two of them a program's thread may ask for the gate. */
static bool open_new(struct session *s, bool (*stop)(void))
{
	for (; s->opened < s->catalogue.count; s->opened++) {
		struct variable *v = s->catalogue.variables[s->opened];

		if (v->source != NULL)
			continue; /* opened where it is measured */
		if (stop != NULL && stop())
			return false;
		open_variable(s, s->opened);
	}
	return true;
}

void session_request(struct session *s, const uint64_t *map, size_t words)
{
	for (size_t i = 0; i < s->catalogue.count && i / 64 < words; i++) {
		struct variable *v = s->catalogue.variables[i];

		if ((map[i / 64] >> (i % 64) & 1) != 0 && v->state == VARIABLE_ON_REQUEST)
			v->requested = s->requested = true;
	}
}

/* Opens what has been requested, in the same way. */
static bool open_requested(struct session *s, bool (*stop)(void))
{
	for (size_t i = 0; s->requested && i < s->catalogue.count; i++) {
		struct variable *v = s->catalogue.variables[i];

		if (!v->requested)
			continue;
		if (stop != NULL && stop())
			return false;
		v->requested = false;
		catalogue_note(&s->catalogue, v, VARIABLE_OPEN, CODE_SUCCESS); /* unless an attempt says otherwise */
		open_variable(s, i);
	}
	s->requested = false;
	return true;
}

uint64_t session_category_stamp(const struct session *s)
{
	int stamp = 0;

	if (s->abi->category_stamp(&stamp) != CODE_SUCCESS)
		return 0;
	return (uint64_t)(uint32_t)stamp + 1 + s->sourced.count + (uint64_t)s->catalogue.events.seen;
}

bool session_discover(struct session *s, bool (*stop)(void))
{
	catalogue_refresh(&s->catalogue, s->abi, s->again, stop);
	if (s->catalogue.interrupted || !open_new(s, stop) || !open_requested(s, stop))
		return false;
	s->again = false;
	if (!sources_discover(s, stop))
		return false;
	s->category_stamp = session_category_stamp(s);
	return true;
}

bool session_sample(struct session *s, bool (*stop)(void))
{
	uint64_t begin, *at;

	begin = monotonic_ns();
	at = s->values;
	s->sampled_layout = 0;
	for (struct object *o = &s->unbound; o != NULL; o = o->after) {
		for (size_t i = 0; i < o->count; i++) {
			if (!o->handles[i].variable->selected)
				continue;
			if (stop != NULL && stop())
				return false;
			handle_values(s, &o->handles[i], at);
			at += o->handles[i].count;
			if (o->handles[i].code != CODE_SUCCESS && o->handles[i].frozen == NULL)
				s->read_errors++;
		}
	}
	s->sampled_realtime = realtime_ns();
	s->sampled_monotonic = monotonic_ns();
	s->sample_ns = s->sampled_monotonic - begin;
	if (s->pcontrol.paused) {
		s->sampled_realtime = s->pcontrol.realtime;
		s->sampled_monotonic = s->pcontrol.monotonic;
		s->sample_ns = s->pcontrol.read_ns;
	}
	s->sampled_layout = s->layout_generation;
	s->samples++;
	return true;
}

void session_drop(struct session *s)
{
	while (s->unbound.after != NULL)
		object_freed(s, s->unbound.after);
	handles_end(s, &s->unbound);
	tools_forget(s);
	sources_drop(s);
	free(s->unbound.handles);
	free(s->buckets);
	free(s->values);
	free(s->raw);
	events_drop(&s->closed_events);
	catalogue_free(&s->catalogue);
	remains_free(&s->remains);
	*s = (struct session){ 0 };
}
