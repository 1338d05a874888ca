/* handles.c - handles of performance variables. */
#include "handles.h"

#include "agent.h"
#include "events/events.h"
#include "now.h"

#include <stdlib.h>
#include <string.h>

#define RAW_SLACK 64 /* a library that writes an element too many must not hit our heap */

/* Upper bound of a handle's record in LAYOUT: a source's variable counts from zero and has no first. */
static size_t handle_words(const struct variable *v, int count)
{
	return 8 + (v->source != NULL ? 2 : 3) * (size_t)count;
}

void handle_read(struct session *s, struct handle *h, uint64_t *to)
{
	const struct variable *v = h->variable;

	if (v->source != NULL) {
		v->source->read(v->of_source, h->object, to);
		h->code = CODE_SUCCESS;
		return;
	}
	if (v->event) {
		to[0] = events_read(h->mpi);
		h->code = CODE_SUCCESS;
		return;
	}
	h->code = s->abi->handle_read(s->mpi, h->mpi, s->raw);
	if (h->code != CODE_SUCCESS) {
		memset(to, 0, (size_t)h->count * sizeof *to);
		return;
	}
	for (int i = 0; i < h->count; i++)
		to[i] = widen(v, s->raw, (size_t)i);
}

void handle_values(struct session *s, struct handle *h, uint64_t *to)
{
	if (h->frozen != NULL)
		memcpy(to, h->frozen, (size_t)h->count * sizeof *to);
	else
		handle_read(s, h, to);
}

void handle_freeze(struct handle *h, const uint64_t *values)
{
	h->frozen = malloc((size_t)h->count * sizeof *h->frozen);
	if (h->frozen != NULL) /* otherwise it goes on being read */
		memcpy(h->frozen, values, (size_t)h->count * sizeof *h->frozen);
}

bool handle_raw(struct session *s, int count, int datatype_bytes)
{
	size_t raw = (size_t)count * (size_t)datatype_bytes + RAW_SLACK;
	void *grown;

	if (raw <= s->raw_bytes)
		return true;
	grown = realloc(s->raw, 2 * raw);
	if (grown == NULL)
		return false;
	s->raw = grown;
	s->raw_bytes = 2 * raw;
	return true;
}

/* Room for one more handle of the object, and for its values in every buffer; allocates. */
static bool make_room(struct session *s, struct object *o, const struct variable *v, int count)
{
	struct handle *handles = array_with_room(o->handles, o->count, &o->room, sizeof *handles);
	size_t values = s->values_in_all + (size_t)count;

	if (handles == NULL)
		return false;
	o->handles = handles;
	if (!handle_raw(s, count, v->is.datatype_bytes))
		return false;
	if (values > s->value_room) {
		uint64_t *grown = realloc(s->values, 2 * values * sizeof *grown);

		if (grown == NULL)
			return false;
		s->values = grown;
		s->value_room = 2 * values;
	}
	return true;
}

/* Whether one more may be opened: within the bounds, which is counted, and with memory, which is noted. */
static bool admit(struct session *s, struct object *o, struct variable *v, int count)
{
	if (s->values_in_all + (size_t)count > MAX_VALUES || s->layout_words + handle_words(v, count) > MAX_FRAME_WORDS) {
		s->handles_over++;
		return false;
	}
	if (make_room(s, o, v, count))
		return true;
	catalogue_note(&s->catalogue, v, VARIABLE_EXHAUSTED, CODE_MEMORY);
	return false;
}

/* Into the object's list, where admit has made room. */
static void add_handle(struct session *s, struct object *o, struct handle *h)
{
	struct variable *v = h->variable;

	h->number = s->next_handle++;
	h->object = o->number;
	s->handles++;
	s->values_in_all += (size_t)h->count;
	s->layout_words += handle_words(v, h->count);
	if (v->selected)
		s->value_count += (size_t)h->count;
	v->handles++;
	catalogue_note(&s->catalogue, v, VARIABLE_OPEN, CODE_SUCCESS);
	o->handles[o->count++] = *h;
}

/* Of the library's variables and of those that count its events. */
static int open_mpi(struct session *s, const struct variable *v, union mpi_object *bound, struct handle *h)
{
	if (!v->event)
		return s->abi->handle_open(s->mpi, v->index, bound, &h->mpi, &h->count);
	h->count = 1;
	return events_open(s->abi, &s->closed_events, v->index - EVENT_INDEX, bound, &h->mpi);
}

static void close_mpi(struct session *s, const struct variable *v, struct handle *h)
{
	if (v->event)
		events_close(s->abi, &s->closed_events, h->mpi);
	else
		s->abi->handle_close(s->mpi, &h->mpi);
}

static void open_handle(struct session *s, struct object *o, struct variable *v)
{
	struct catalogue *c = &s->catalogue;
	struct handle h = { .variable = v, .created = realtime_ns() };
	union mpi_object *bound = o->number == 0 ? NULL : &o->mpi;
	int code = open_mpi(s, v, bound, &h);

	if (code != CODE_SUCCESS) {
		catalogue_note(c, v, VARIABLE_ALLOC_FAILED, code);
		return;
	}
	if (h.count <= 0) /* nothing of it on this object (Open MPI's monitoring outside MPI_COMM_WORLD) */
		goto close;
	if (!admit(s, o, v, h.count))
		goto close;
	/* A continuous variable is never started: MVAPICH2 aborts the program for it. */
	if (!v->is.continuous) {
		code = s->abi->handle_start(s->mpi, h.mpi);
		if (code != CODE_SUCCESS && code != CODE_PVAR_NO_STARTSTOP) {
			catalogue_note(c, v, VARIABLE_START_FAILED, code);
			goto close;
		}
	}
	h.first = malloc((size_t)h.count * sizeof *h.first);
	if (h.first == NULL) {
		catalogue_note(c, v, VARIABLE_EXHAUSTED, CODE_MEMORY);
		goto close;
	}
	handle_read(s, &h, h.first);
	if (h.code != CODE_SUCCESS) {
		catalogue_note(c, v, VARIABLE_READ_FAILED, h.code);
		free(h.first);
		goto close;
	}
	if (s->pcontrol.paused)
		handle_freeze(&h, h.first);
	if (all_zero(h.first, h.count)) {
		free(h.first);
		h.first = NULL;
	}
	add_handle(s, o, &h);
	return;
close:
	close_mpi(s, v, &h);
}

void handle_pair(struct session *s, struct object *o, struct variable *v)
{
	struct handle h = {
		.object = o->number,
		.variable = v,
		.created = o->created,
		.count = v->distribution ? DISTRIBUTION_ELEMENTS : 1,
	};

	s->layout_generation++; /* also where it is only counted */
	if (!admit(s, o, v, h.count))
		return;
	/* It was told of while switched off, by a call that had begun before: so that is where it stands. */
	if (s->pcontrol.paused) {
		uint64_t *now = handle_scratch(s);

		handle_read(s, &h, now);
		handle_freeze(&h, now);
	}
	add_handle(s, o, &h);
}

static void close_handle(struct session *s, struct handle *h)
{
	if (h->variable->source == NULL)
		close_mpi(s, h->variable, h);
	s->handles--;
	s->values_in_all -= (size_t)h->count;
	s->layout_words -= handle_words(h->variable, h->count);
	h->variable->handles--;
	if (h->variable->selected)
		s->value_count -= (size_t)h->count;
	free(h->first);
	free(h->origin);
	free(h->excluded);
	free(h->frozen);
}

void handles_open(struct session *s, struct object *o, size_t from, size_t to)
{
	if (s->bound[o->kind] == 0)
		return;
	for (size_t i = from; i < to; i++) {
		struct variable *v = s->catalogue.variables[i];

		if (v->source == NULL && v->is.bind == o->kind && variable_usable(v))
			open_handle(s, o, v);
	}
}

uint64_t *handle_scratch(struct session *s)
{
	s->sampled_layout = 0; /* the values of the next sample go there anew */
	return s->values;
}

/*
 * What a handle counted since its making or the last rename goes to the remains of its object's name.
 * With split, what it counts from now on is another contribution. Both end where it is frozen, if it is.
 */
static void contribute(struct session *s, const struct object *o, struct handle *h, bool split)
{
	uint64_t *last = handle_scratch(s), *origin = NULL;

	handle_values(s, h, last);
	if (h->code == CODE_SUCCESS && split && h->first == NULL && h->origin == NULL && h->excluded == NULL &&
	    all_zero(last, h->count)) {
		h->created = realtime_ns();
		return; /* it hasn't begun: no need to remember where */
	}
	if (split && h->code == CODE_SUCCESS)
		origin = h->origin != NULL ? h->origin : malloc((size_t)h->count * sizeof *origin);
	if (h->code != CODE_SUCCESS || (split && origin == NULL)) {
		s->remains.lost++;
		s->remains.generation++;
		return;
	}
	remains_add(&s->remains, o->name, &(struct contribution){
		.variable = h->variable,
		.count = h->count,
		.created = h->created,
		.last = last,
		.first = h->first,
		.origin = h->origin,
		.excluded = h->excluded,
	});
	if (split) {
		memcpy(origin, last, (size_t)h->count * sizeof *origin);
		h->origin = origin;
		h->created = realtime_ns();
		free(h->excluded);
		h->excluded = NULL;
	}
}

void handles_end(struct session *s, struct object *o)
{
	for (size_t i = 0; i < o->count; i++) {
		contribute(s, o, &o->handles[i], false);
		close_handle(s, &o->handles[i]);
	}
}

void handles_split(struct session *s, struct object *o)
{
	for (size_t i = 0; i < o->count; i++)
		contribute(s, o, &o->handles[i], true);
}
