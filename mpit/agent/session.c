/* session.c - objects, handles and samples of the one MPI_T session. */
#include "session.h"

#include "agent.h"

#include <stdlib.h>
#include <string.h>

#define RAW_SLACK 64 /* a library that writes an element too many must not hit our heap */
#define OBJECT_WORDS (9 + OBJECT_NAME_BYTES / 8)
#define HANDLE_WORDS(count) (8 + 2 * (size_t)(count))

/* ---- handles ---- */

static void read_values(struct session *s, struct handle *h, uint64_t *to)
{
	const struct variable *v = h->variable;

	h->code = s->abi->handle_read(s->mpi, h->mpi, s->raw);
	if (h->code != CODE_SUCCESS) {
		memset(to, 0, (size_t)h->count * sizeof *to);
		return;
	}
	for (int i = 0; i < h->count; i++)
		to[i] = widen(v, s->raw, (size_t)i);
}

/* Room for one more handle of the object, and for its values in every buffer; allocates. */
static bool make_room(struct session *s, struct object *o, const struct variable *v, int count)
{
	size_t raw = (size_t)count * (size_t)v->is.datatype_bytes + RAW_SLACK;
	size_t values = s->values_in_all + (size_t)count;

	if (o->count == o->room) {
		size_t room = o->room == 0 ? 8 : 2 * o->room;
		struct handle *grown = realloc(o->handles, room * sizeof *grown);

		if (grown == NULL)
			return false;
		o->handles = grown;
		o->room = room;
	}
	if (raw > s->raw_bytes) {
		void *grown = realloc(s->raw, 2 * raw);

		if (grown == NULL)
			return false;
		s->raw = grown;
		s->raw_bytes = 2 * raw;
	}
	if (values > s->value_room) {
		uint64_t *grown = realloc(s->values, 2 * values * sizeof *grown);

		if (grown == NULL)
			return false;
		s->values = grown;
		s->value_room = 2 * values;
	}
	return true;
}

static void open_handle(struct session *s, struct object *o, struct variable *v)
{
	struct catalogue *c = &s->catalogue;
	struct handle h = { .variable = v, .created = realtime_ns() };
	union mpi_object *bound = o->number == 0 ? NULL : &o->mpi;
	int code = s->abi->handle_open(s->mpi, v->index, bound, &h.mpi, &h.count);

	if (code != CODE_SUCCESS) {
		catalogue_note(c, v, VARIABLE_ALLOC_FAILED, code);
		return;
	}
	if (h.count <= 0) /* nothing of it on this object (Open MPI's monitoring outside MPI_COMM_WORLD) */
		goto close;
	if (s->values_in_all + (size_t)h.count > MAX_VALUES || s->layout_words + HANDLE_WORDS(h.count) > MAX_FRAME_WORDS) {
		s->handles_over++;
		goto close;
	}
	if (!make_room(s, o, v, h.count)) {
		catalogue_note(c, v, VARIABLE_EXHAUSTED, CODE_MEMORY);
		goto close;
	}
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
	read_values(s, &h, h.first);
	if (h.code != CODE_SUCCESS) {
		catalogue_note(c, v, VARIABLE_READ_FAILED, h.code);
		free(h.first);
		goto close;
	}
	if (all_zero(h.first, h.count)) {
		free(h.first);
		h.first = NULL;
	}
	h.number = s->next_handle++;
	s->values_in_all += (size_t)h.count;
	s->layout_words += HANDLE_WORDS(h.count);
	if (v->selected)
		s->value_count += (size_t)h.count;
	v->handles++;
	catalogue_note(c, v, VARIABLE_OPEN, CODE_SUCCESS);
	o->handles[o->count++] = h;
	return;
close:
	s->abi->handle_close(s->mpi, &h.mpi);
}

static void close_handle(struct session *s, struct handle *h)
{
	s->abi->handle_close(s->mpi, &h->mpi);
	s->values_in_all -= (size_t)h->count;
	s->layout_words -= HANDLE_WORDS(h->count);
	h->variable->handles--;
	if (h->variable->selected)
		s->value_count -= (size_t)h->count;
	free(h->first);
	free(h->origin);
}

/* Opens variables[from …] on one object. */
static void open_handles(struct session *s, struct object *o, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		struct variable *v = s->catalogue.variables[i];

		if (v->is.bind == o->kind && variable_usable(v))
			open_handle(s, o, v);
	}
}

/* Words enough for any one handle: the values of the next sample go there anew. */
static uint64_t *scratch(struct session *s)
{
	s->sampled_layout = 0;
	return s->values;
}

/*
 * What a handle counted since its making or the last rename goes to the remains of its object's name.
 * With split, what it counts from now on is another contribution.
 */
static void contribute(struct session *s, const struct object *o, struct handle *h, bool split)
{
	uint64_t *last = scratch(s), *origin = NULL;

	read_values(s, h, last);
	if (h->code == CODE_SUCCESS && split && h->first == NULL && h->origin == NULL && all_zero(last, h->count))
		return; /* it hasn't begun: no need to remember where */
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
	});
	if (split) {
		memcpy(origin, last, (size_t)h->count * sizeof *origin);
		h->origin = origin;
	}
}

/* ---- objects ---- */

struct object *session_object_made(struct session *s, int kind, const union mpi_object *mpi, unsigned flags)
{
	struct object *o;

	s->layout_generation++;
	if (s->objects >= s->most_objects || s->layout_words + OBJECT_WORDS > MAX_FRAME_WORDS) {
		s->objects_over++;
		return NULL;
	}
	/* The program has just let MPI allocate an object and agree on it with other ranks: a calloc is nothing. */
	o = calloc(1, sizeof *o);
	if (o == NULL) {
		s->objects_over++;
		return NULL;
	}
	o->number = ++s->next_object;
	o->kind = kind;
	o->flags = flags;
	o->mpi = *mpi;
	o->rank = o->size = -1;
	if (kind == BIND_COMM) {
		bool inter = false;

		if (s->abi->comm_shape(mpi, &o->rank, &o->size, &inter) && inter)
			o->flags |= OBJECT_INTER;
	} else if (kind == BIND_WIN) {
		s->abi->win_shape(mpi, &o->rank, &o->size);
		s->again = true; /* MPICH's and Open MPI's one-sided components come to life with the first window */
	}
	o->created = realtime_ns();
	o->before = s->last;
	s->last->after = o;
	s->last = o;
	s->objects++;
	s->layout_words += OBJECT_WORDS;
	open_handles(s, o, 0, s->opened);
	return o;
}

static void unlink_object(struct session *s, struct object *o)
{
	o->before->after = o->after;
	if (o->after != NULL)
		o->after->before = o->before;
	else
		s->last = o->before;
	s->objects--;
	s->layout_words -= OBJECT_WORDS;
	free(o->handles);
	free(o);
}

void session_object_freed(struct session *s, struct object *o)
{
	s->layout_generation++;
	for (size_t i = 0; i < o->count; i++) {
		contribute(s, o, &o->handles[i], false);
		close_handle(s, &o->handles[i]);
	}
	unlink_object(s, o);
}

void session_object_named(struct session *s, struct object *o, const char *name)
{
	if (strncmp(o->name, name, sizeof o->name - 1) == 0)
		return;
	s->layout_generation++;
	for (size_t i = 0; i < o->count; i++)
		contribute(s, o, &o->handles[i], true);
	copy_string(o->name, sizeof o->name, name);
}

/* ---- the session ---- */

bool session_open(struct session *s, const struct abi *abi, const char *deny, size_t most_objects)
{
	*s = (struct session){
		.abi = abi,
		.deny = deny,
		.most_objects = most_objects,
		.selection.beyond = true,
		.layout_generation = 1,
		.layout_words = 16,
	};
	s->unbound.kind = BIND_NONE;
	s->last = &s->unbound;
	remains_init(&s->remains, most_objects, MAX_FRAME_WORDS);
	if (abi->session_open(&s->mpi) != CODE_SUCCESS)
		return false;
	catalogue_refresh(&s->catalogue, abi, deny, false, NULL);
	open_handles(s, &s->unbound, 0, s->catalogue.count);
	s->opened = s->catalogue.count;
	return true;
}

static bool selected(const struct selection *map, uint32_t variable)
{
	size_t word = variable / 64;

	return word < map->words ? (map->map[word] >> (variable % 64) & 1) != 0 : map->beyond;
}

void session_select(struct session *s, bool beyond, const uint64_t *map, size_t words)
{
	const size_t most = sizeof s->selection.map / sizeof s->selection.map[0];

	if (words > most)
		words = most;
	s->selection.beyond = beyond;
	s->selection.words = words;
	for (size_t i = 0; i < words; i++)
		s->selection.map[i] = map[i];
	for (size_t i = 0; i < s->catalogue.count; i++)
		s->catalogue.variables[i]->selected = selected(&s->selection, (uint32_t)i);
	s->value_count = 0;
	for (struct object *o = &s->unbound; o != NULL; o = o->after)
		for (size_t i = 0; i < o->count; i++)
			if (o->handles[i].variable->selected)
				s->value_count += (size_t)o->handles[i].count;
	s->layout_generation++;
}

/* Opens the variables that the last refresh found; between any two of them a program's thread may ask for the gate. */
static bool open_new(struct session *s, bool (*stop)(void))
{
	for (; s->opened < s->catalogue.count; s->opened++) {
		struct variable *v = s->catalogue.variables[s->opened];

		if (stop != NULL && stop())
			return false;
		v->selected = selected(&s->selection, v->number);
		for (struct object *o = &s->unbound; o != NULL; o = o->after)
			open_handles(s, o, s->opened, s->opened + 1);
		s->layout_generation++;
	}
	return true;
}

bool session_discover(struct session *s, bool (*stop)(void))
{
	catalogue_refresh(&s->catalogue, s->abi, s->deny, s->again, stop);
	if (s->catalogue.interrupted || !open_new(s, stop))
		return false;
	s->again = false;
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
			read_values(s, &o->handles[i], at);
			at += o->handles[i].count;
			if (o->handles[i].code != CODE_SUCCESS)
				s->read_errors++;
		}
	}
	s->sampled_realtime = realtime_ns();
	s->sampled_monotonic = monotonic_ns();
	s->sample_ns = s->sampled_monotonic - begin;
	s->sampled_layout = s->layout_generation;
	s->samples++;
	return true;
}

void session_drop(struct session *s)
{
	while (s->unbound.after != NULL) {
		struct object *o = s->unbound.after;

		for (size_t i = 0; i < o->count; i++)
			close_handle(s, &o->handles[i]);
		unlink_object(s, o);
	}
	for (size_t i = 0; i < s->unbound.count; i++)
		close_handle(s, &s->unbound.handles[i]);
	free(s->unbound.handles);
	free(s->values);
	free(s->raw);
	catalogue_free(&s->catalogue);
	remains_free(&s->remains);
	*s = (struct session){ 0 };
}
