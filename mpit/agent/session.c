/* session.c - objects, handles and samples of the one MPI_T session. */
#include "session.h"

#include "agent.h"
#include "now.h"
#include "pcontrol.h"
#include "tools.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define RAW_SLACK 64 /* a library that writes an element too many must not hit our heap */
#define LEAST_BUCKETS 64

/* ---- handles ---- */

/* Of a handle's record in LAYOUT at most: with origin, excluded and, but of a source's variable, which counts from
 * zero, first. */
static size_t handle_words(const struct variable *v, int count)
{
	return 8 + (v->source != NULL ? 2 : 3) * (size_t)count;
}

void session_read(struct session *s, struct handle *h, uint64_t *to)
{
	const struct variable *v = h->variable;

	if (v->source != NULL) {
		v->source->read(v->of_source, h->object, to);
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

void session_values(struct session *s, struct handle *h, uint64_t *to)
{
	if (h->frozen != NULL)
		memcpy(to, h->frozen, (size_t)h->count * sizeof *to);
	else
		session_read(s, h, to);
}

bool session_raw(struct session *s, int count, int datatype_bytes)
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
	size_t values = s->values_in_all + (size_t)count;

	if (o->count == o->room) {
		size_t room = o->room == 0 ? 8 : 2 * o->room;
		struct handle *grown = realloc(o->handles, room * sizeof *grown);

		if (grown == NULL)
			return false;
		o->handles = grown;
		o->room = room;
	}
	if (!session_raw(s, count, v->is.datatype_bytes))
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
	session_read(s, &h, h.first);
	if (h.code != CODE_SUCCESS) {
		catalogue_note(c, v, VARIABLE_READ_FAILED, h.code);
		free(h.first);
		goto close;
	}
	if (s->pcontrol.paused)
		pcontrol_freeze(&h, h.first);
	if (all_zero(h.first, h.count)) {
		free(h.first);
		h.first = NULL;
	}
	add_handle(s, o, &h);
	return;
close:
	s->abi->handle_close(s->mpi, &h.mpi);
}

void session_pair(struct session *s, struct object *o, struct variable *v)
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
		uint64_t *now = session_scratch(s);

		session_read(s, &h, now);
		pcontrol_freeze(&h, now);
	}
	add_handle(s, o, &h);
}

static void close_handle(struct session *s, struct handle *h)
{
	if (h->variable->source == NULL)
		s->abi->handle_close(s->mpi, &h->mpi);
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

/* Opens the library's variables[from …] on one object. A source tells itself what it has on which. */
static void open_handles(struct session *s, struct object *o, size_t from, size_t to)
{
	if (s->bound[o->kind] == 0)
		return;
	for (size_t i = from; i < to; i++) {
		struct variable *v = s->catalogue.variables[i];

		if (v->source == NULL && v->is.bind == o->kind && variable_usable(v))
			open_handle(s, o, v);
	}
}

uint64_t *session_scratch(struct session *s)
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
	uint64_t *last = session_scratch(s), *origin = NULL;

	session_values(s, h, last);
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

/* ---- objects ---- */

/* Of an object's record in LAYOUT. */
static size_t object_words(const char *name, size_t detail_words)
{
	return 10 + (strlen(name) + 7) / 8 + detail_words;
}

bool session_found_by_handle(int kind)
{
	return kind != BIND_COMM && kind != BIND_WIN && kind != BIND_DATATYPE;
}

static struct object **bucket_of(const struct session *s, int kind, const union mpi_object *mpi)
{
	uint64_t hash = ((uint64_t)(uintptr_t)mpi->pointer + (uint64_t)kind) * 0x9e3779b97f4a7c15u;

	return &s->buckets[(hash >> 32) & (s->bucket_count - 1)];
}

struct object *session_find(const struct session *s, int kind, const union mpi_object *mpi)
{
	struct object *o;

	for (o = *bucket_of(s, kind, mpi); o != NULL; o = o->next_alike)
		if (o->mpi.pointer == mpi->pointer && o->kind == kind)
			return o;
	return NULL;
}

static void leave_bucket(struct session *s, struct object *o)
{
	struct object **at = bucket_of(s, o->kind, &o->mpi);

	while (*at != o)
		at = &(*at)->next_alike;
	*at = o->next_alike;
}

static void add_small(struct details *d, const char *key, const char *value, size_t length)
{
	char small[64];
	size_t i;

	for (i = 0; i < length && i < sizeof small - 1 && value[i] != '\0'; i++)
		small[i] = (char)tolower((unsigned char)value[i]);
	small[i] = '\0';
	details_add(d, key, small);
}

/* What the constructor's name tells. */
static void describe_making(int kind, const struct making *how, struct details *d)
{
	if (how == NULL || how->by == NULL)
		return;
	if (kind == BIND_REQUEST)
		add_small(d, "operation", how->by, strlen(how->by));
	else if (kind == BIND_ERRHANDLER && strncmp(how->by, "Errhandler", 10) == 0)
		details_add(d, "on", "comm"); /* MPI-1 knew no other */
	else if (kind == BIND_ERRHANDLER)
		add_small(d, "on", how->by, strcspn(how->by, "_"));
}

/* What the library tells, right after an object was made. The gate's, as everything here. */
static struct object_description description;

static bool keep_details(struct object *o, const struct details *d)
{
	uint64_t *kept = NULL;

	if (d->words > 0) {
		kept = realloc(o->details, d->words * sizeof *kept);
		if (kept == NULL)
			return false;
		memcpy(kept, d->packed, d->words * sizeof *kept);
	} else {
		free(o->details);
	}
	o->details = kept;
	o->detail_words = d->words;
	o->detail_count = d->count;
	return true;
}

/* The memory for an object of which all is known; NULL: there is none. */
static struct object *allocate_object(int kind, const union mpi_object *mpi, unsigned flags, const char *name)
{
	struct object *o = calloc(1, sizeof *o);

	if (o == NULL)
		return NULL;
	o->kind = kind;
	o->mpi = *mpi;
	o->flags = flags | (description.inter ? OBJECT_INTER : 0);
	o->rank = description.rank;
	o->size = description.size;
	o->references = 1;
	copy_string(o->name, sizeof o->name, name);
	if (!keep_details(o, &description.details)) {
		free(o);
		return NULL;
	}
	return o;
}

static void link_object(struct session *s, struct object *o)
{
	o->number = ++s->next_object;
	o->before = s->last;
	s->last->after = o;
	s->last = o;
	s->objects++;
	s->alive[o->kind]++;
	s->layout_words += object_words(o->name, o->detail_words);
	if (session_found_by_handle(o->kind)) {
		struct object **bucket = bucket_of(s, o->kind, &o->mpi);

		o->next_alike = *bucket;
		*bucket = o;
	}
}

struct object *session_object_made(struct session *s, int kind, const union mpi_object *mpi, unsigned flags, const struct making *how,
				   uint32_t on)
{
	char name[OBJECT_NAME_BYTES] = "";
	struct object *o = NULL;
	bool full = s->alive[kind] >= s->most_objects;

	/* A datatype that is committed may be a predefined one: only the library knows. */
	if (full && kind != BIND_DATATYPE) {
		s->layout_generation++;
		s->objects_over++;
		return NULL;
	}
	if (!s->abi->object_describe(kind, mpi, how, &description))
		return NULL;
	s->layout_generation++;
	describe_making(kind, how, &description.details);
	if (how != NULL && how->name != NULL)
		copy_string(name, sizeof name, how->name);
	/* The program has just let MPI allocate an object: a calloc is nothing. */
	if (!full && s->layout_words + object_words(name, description.details.words) <= MAX_FRAME_WORDS)
		o = allocate_object(kind, mpi, flags, name);
	if (o == NULL) {
		s->objects_over++;
		return NULL;
	}
	o->on = on;
	/* MPICH's and Open MPI's one-sided components come to life with the first window, those for files with the first
	 * file. */
	if (kind == BIND_WIN || kind == BIND_FILE)
		s->again = true;
	o->created = realtime_ns();
	link_object(s, o);
	open_handles(s, o, 0, s->opened);
	sources_object_made(s, o);
	return o;
}

static void unlink_object(struct session *s, struct object *o)
{
	tools_object_ends(s, o);
	o->before->after = o->after;
	if (o->after != NULL)
		o->after->before = o->before;
	else
		s->last = o->before;
	if (session_found_by_handle(o->kind))
		leave_bucket(s, o);
	s->objects--;
	s->alive[o->kind]--;
	s->layout_words -= object_words(o->name, o->detail_words);
	free(o->handles);
	free(o->details);
	free(o);
}

void session_object_freed(struct session *s, struct object *o)
{
	s->layout_generation++;
	sources_discover(s, NULL);
	for (size_t i = 0; i < o->count; i++) {
		contribute(s, o, &o->handles[i], false);
		close_handle(s, &o->handles[i]);
	}
	sources_object_freed(s, o);
	unlink_object(s, o);
}

void session_object_named(struct session *s, struct object *o, const char *name)
{
	if (strncmp(o->name, name, sizeof o->name - 1) == 0)
		return;
	s->layout_generation++;
	sources_discover(s, NULL);
	for (size_t i = 0; i < o->count; i++)
		contribute(s, o, &o->handles[i], true);
	s->layout_words -= object_words(o->name, o->detail_words);
	copy_string(o->name, sizeof o->name, name);
	/* A longer name than LAYOUT has room for is cut, at worst to nothing: that much was there when the object was
	 * made. */
	while (o->name[0] != '\0' && s->layout_words + object_words(o->name, o->detail_words) > MAX_FRAME_WORDS)
		o->name[strlen(o->name) - 1] = '\0';
	s->layout_words += object_words(o->name, o->detail_words);
}

void session_key_changed(struct session *s, struct object *o, const char *key)
{
	size_t words = object_words(o->name, o->detail_words);
	struct detail_list keys;

	details_first_list(o->details, o->detail_words, &keys);
	if (s->abi->info_has(&o->mpi, key) == list_has(&keys, key))
		return;
	if (list_has(&keys, key))
		list_drop(&keys, key);
	else if (!list_add(&keys, key))
		return;
	details_reset(&description.details);
	details_list(&description.details, "keys", &keys);
	/* No room: what was told before stays. */
	if (s->layout_words - words + object_words(o->name, description.details.words) > MAX_FRAME_WORDS ||
	    !keep_details(o, &description.details))
		return;
	s->layout_generation++;
	s->layout_words += object_words(o->name, o->detail_words) - words;
}

/* ---- objects found by their handle ---- */

bool session_got_repeatedly(int kind)
{
	return kind == BIND_GROUP || kind == BIND_ERRHANDLER;
}

void session_handle_got(struct session *s, int kind, const union mpi_object *mpi)
{
	struct object *o = session_got_repeatedly(kind) ? session_find(s, kind, mpi) : NULL;

	if (o != NULL)
		o->references++;
}

void session_handle_made(struct session *s, int kind, const union mpi_object *mpi, const struct making *how, uint32_t on)
{
	struct object *o = session_find(s, kind, mpi);

	if (o != NULL && session_got_repeatedly(kind)) {
		o->references++;
		return;
	}
	/* Its end has escaped us: a handle that is used again belongs to somebody else now. */
	if (o != NULL)
		session_object_freed(s, o);
	session_object_made(s, kind, mpi, 0, how, on);
}

bool session_handle_freed(struct session *s, int kind, const union mpi_object *mpi)
{
	struct object *o = session_find(s, kind, mpi);

	if (o == NULL || --o->references > 0)
		return false;
	session_object_freed(s, o);
	return true;
}

struct object *session_object(const struct session *s, uint64_t number)
{
	struct object *o = s->unbound.after;

	while (o != NULL && o->number != number)
		o = o->after;
	return o;
}

/* ---- the session ---- */

static void count_bound(struct session *s, const struct variable *v)
{
	if (v->is.bind < BIND_KINDS && variable_usable(v))
		s->bound[v->is.bind]++;
}

bool session_open(struct session *s, const struct abi *abi, const char *deny, const char *open, size_t most_objects)
{
	*s = (struct session){
		.abi = abi,
		.catalogue = { .deny = deny, .open = open },
		.most_objects = most_objects,
		.selection.beyond = true,
		.layout_generation = 1,
		.layout_words = 16,
		.pcontrol.level = 1,
		.unbound.created = realtime_ns(),
	};
	s->unbound.kind = BIND_NONE;
	s->last = &s->unbound;
	for (s->bucket_count = LEAST_BUCKETS; s->bucket_count < 4 * most_objects;)
		s->bucket_count *= 2;
	s->buckets = calloc(s->bucket_count, sizeof(struct object *));
	if (s->buckets == NULL)
		return false;
	remains_init(&s->remains, most_objects, MAX_FRAME_WORDS);
	if (abi->session_open(&s->mpi) != CODE_SUCCESS)
		return false;
	catalogue_refresh(&s->catalogue, abi, false, NULL);
	for (size_t i = 0; i < s->catalogue.count; i++)
		count_bound(s, s->catalogue.variables[i]);
	open_handles(s, &s->unbound, 0, s->catalogue.count);
	s->opened = s->catalogue.count;
	return true;
}

bool session_selects(const struct session *s, uint32_t variable)
{
	const struct selection *map = &s->selection;
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
		s->catalogue.variables[i]->selected = session_selects(s, (uint32_t)i);
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
		open_handles(s, o, i, i + 1);
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
		v->selected = session_selects(s, v->number);
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

	return s->abi->category_stamp(&stamp) == CODE_SUCCESS ? (uint64_t)(uint32_t)stamp + 1 + s->sourced.count : 0;
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
			session_values(s, &o->handles[i], at);
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
	while (s->unbound.after != NULL) {
		struct object *o = s->unbound.after;

		for (size_t i = 0; i < o->count; i++)
			close_handle(s, &o->handles[i]);
		unlink_object(s, o);
	}
	for (size_t i = 0; i < s->unbound.count; i++)
		close_handle(s, &s->unbound.handles[i]);
	tools_forget(s);
	sources_drop(s);
	wire_free(&s->pcontrol.kept);
	free(s->unbound.handles);
	free(s->buckets);
	free(s->values);
	free(s->raw);
	catalogue_free(&s->catalogue);
	remains_free(&s->remains);
	*s = (struct session){ 0 };
}
