/* lists.c - control variables and categories: the lists of them, and one variable for a tool. */
#include "lists.h"

#include "../events/events.h"
#include "../gate.h"
#include "../objects.h"
#include "refused.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define CVAR_BYTES 65536
#define CVAR_SLACK 64
#define CVAR_OBJECTS 64 /* values of a bound variable in the list, at most */
#define CVAR_OTHER_BYTES 4096
#define MAX_MEMBERS 65536
/* No more values follow where a page has that many: one is at most CVAR_BYTES words. */
#define BOUND_WORDS (WIRE_PAYLOAD_WORDS_MAX / 2)

/* All of a kind have been told to somebody: set by the agent's thread, read by the program's. */
static _Atomic bool cvars_told, categories_told;

/* The gate's: too large for a stack. */
static struct text name_text, description_text;
static unsigned char cvar_value[CVAR_BYTES + CVAR_SLACK];

/* ---- one control variable ---- */

static bool has_value(const struct cvar_description *d)
{
	return d->datatype != TYPE_OTHER && d->datatype_bytes > 0 && d->datatype_bytes <= 8;
}

/* Into cvar_value. */
static int fetch(const struct session *s, const struct cvar *v, int *count)
{
	const struct cvar_description *d = &v->is;

	if (!has_value(d))
		return CODE_NOT_SUPPORTED;
	/* What a library leaves as it is, and what it writes too much: of a string it may give fewer bytes than it has
	 * counted. */
	memset(cvar_value, 0, d->datatype == TYPE_CHAR ? sizeof cvar_value : CVAR_OTHER_BYTES);
	return s->abi->cvar_read(v->index, v->object, d->datatype, d->datatype_bytes, cvar_value, CVAR_BYTES, count);
}

void cvar_put(struct wire *w, const struct cvar *v, int count)
{
	const struct variable like = { .is = { .datatype = v->is.datatype, .datatype_bytes = v->is.datatype_bytes } };

	if (v->is.datatype == TYPE_CHAR) {
		wire_word(w, VALUE_STRING);
		wire_bytes(w, cvar_value, strnlen((const char *)cvar_value, CVAR_BYTES));
		return;
	}
	wire_word(w, VALUE_WORDS);
	wire_word(w, (uint64_t)count);
	for (int i = 0; i < count; i++)
		wire_word(w, widen(&like, cvar_value, (size_t)i));
}

int cvar_find(const struct session *s, uint64_t index, uint64_t object, struct cvar *out, const char **why)
{
	struct object *o;
	int count = 0, code = s->abi->cvar_count(&count);

	if (code != CODE_SUCCESS)
		return code;
	if (count < 0 || index >= (uint64_t)count)
		return refused(why, CODE_INVALID_INDEX, "there is no control variable with this index");
	*out = (struct cvar){ .index = (int)index };
	code = s->abi->cvar_describe(out->index, &out->is, &name_text, &description_text);
	if (code != CODE_SUCCESS || out->is.bind == BIND_NONE)
		return code;
	o = object_numbered(s, object);
	if (o == NULL || o->kind != out->is.bind)
		return refused(why, CODE_INVALID_HANDLE, NOT_BOUND_THERE);
	out->object = &o->mpi;
	return CODE_SUCCESS;
}

static const char *not_memory = "its value lies in no memory that could be touched without a crash";

int cvar_get(const struct session *s, const struct cvar *v, int *count, const char **why)
{
	int code = fetch(s, v, count);

	/* Both codes may be the library's own. */
	if (!has_value(&v->is))
		*why = UNKNOWN_DATATYPE;
	else if (code == CODE_MEMORY && (*count < 0 || (size_t)*count > CVAR_BYTES / (size_t)v->is.datatype_bytes))
		*why = "it is too large";
	if (code == CODE_NOT_ACCESSIBLE)
		*why = not_memory;
	return code;
}

/* The request's value into cvar_value, zeros behind it; 0: it is none for the variable. */
static int store(const struct cvar *v, uint64_t kind, const uint64_t *value, size_t length, const char **why)
{
	const struct cvar_description *d = &v->is;

	memset(cvar_value, 0, sizeof cvar_value);
	if (d->datatype == TYPE_CHAR && kind != VALUE_STRING)
		return refused(why, CODE_INVALID, "its value is a string");
	if (d->datatype != TYPE_CHAR && kind != VALUE_WORDS)
		return refused(why, CODE_INVALID, "its value is no string");
	if (length * (size_t)d->datatype_bytes >= CVAR_BYTES)
		return refused(why, CODE_INVALID, "it is too large");
	if (d->datatype == TYPE_CHAR) {
		memcpy(cvar_value, value, length);
		if (memchr(cvar_value, 0, length) == NULL)
			return CODE_SUCCESS;
		*why = "a string can't contain a zero";
		return CODE_INVALID;
	}
	if (narrow(d->datatype, d->datatype_bytes, value, length, cvar_value))
		return CODE_SUCCESS;
	return refused(why, CODE_INVALID, "an element doesn't fit the variable's datatype");
}

int cvar_set(const struct session *s, const struct cvar *v, uint64_t kind, const uint64_t *value, size_t length,
	     const char **why)
{
	int room = -1, code;
	bool fits;

	if (v->is.scope == SCOPE_CONSTANT)
		return refused(why, CODE_CVAR_SET_NEVER, "its scope is CONSTANT");
	if (v->is.scope == SCOPE_READONLY)
		return refused(why, CODE_CVAR_SET_NEVER, "its scope is READONLY");
	if (!s->may_write)
		return refused(why, CODE_NOT_ACCESSIBLE, NOT_ALLOWED);
	if (!has_value(&v->is))
		return refused(why, CODE_NOT_SUPPORTED, UNKNOWN_DATATYPE);
	code = store(v, kind, value, length, why);
	if (code != CODE_SUCCESS)
		return code;
	code = s->abi->cvar_write(v->index, v->object, v->is.datatype, cvar_value, (int)length, &room);
	if (code == CODE_NOT_ACCESSIBLE)
		*why = not_memory;
	fits = v->is.datatype == TYPE_CHAR ? (int)length < room : (int)length == room;
	if (code != CODE_MEMORY || room < 0 || fits)
		return code;
	if (v->is.datatype == TYPE_CHAR)
		return refused(why, CODE_INVALID, "the string is longer than the variable's");
	return refused(why, CODE_INVALID, "the variable has another number of elements");
}

/* ---- the list of control variables ---- */

static void put_value(struct wire *w, int code, const struct cvar *v, int count)
{
	wire_word(w, (uint64_t)code);
	if (code == CODE_SUCCESS) {
		cvar_put(w, v, count);
	} else {
		wire_word(w, VALUE_NONE);
		wire_word(w, 0);
	}
}

/* Values on the objects that it can be bound to. The first record of a page is written to its end: that is what
 * bounds them. */
static bool put_bound_values(struct wire *w, const struct session *s, struct cvar *v, bool patient)
{
	size_t list = wire_hole(w);
	uint64_t records = 0;

	for (struct object *o = s->unbound.after; v->is.bind != BIND_NONE && o != NULL; o = o->after) {
		int count = 0, code;
		size_t record;

		if (records == CVAR_OBJECTS || wire_frame_words(w) >= BOUND_WORDS)
			break;
		if (o->kind != v->is.bind)
			continue;
		if (!patient && gate_wanted())
			return false;
		v->object = &o->mpi;
		code = fetch(s, v, &count);
		record = wire_hole(w);
		wire_word(w, o->number);
		put_value(w, code, v, count);
		wire_fill_length(w, record);
		records++;
	}
	wire_fill(w, list, records);
	return true;
}

/* False: a thread of the program waits, and this is not the first record: it comes with the next page. */
static bool put_cvar(struct wire *w, struct session *s, struct cvar *v, bool patient)
{
	struct enumeration *e = NULL;
	size_t record = wire_hole(w), enumeration;
	int count = 0, code = CODE_NOT_SUPPORTED;
	bool whole;

	wire_word(w, (uint64_t)v->index);
	wire_word(w, (uint64_t)v->is.scope);
	wire_word(w, (uint64_t)v->is.verbosity);
	wire_word(w, (uint64_t)v->is.datatype);
	wire_word(w, (uint64_t)v->is.bind);
	enumeration = wire_hole(w);
	if (v->is.bind == BIND_NONE)
		code = fetch(s, v, &count);
	/* Of a component that is unloaded, whose values lie in no memory, the enumeration may lie in none either. */
	if (code != CODE_NOT_ACCESSIBLE)
		e = catalogue_enumeration(&s->catalogue, s->abi, v->is.enumeration);
	if (e != NULL)
		wire_fill(w, enumeration, (uint64_t)e->number + 1);
	put_value(w, code, v, count);
	wire_string(w, name_text.bytes);
	wire_string(w, description_text.bytes);
	whole = put_bound_values(w, s, v, patient);
	wire_fill_length(w, record);
	if (!whole)
		wire_cut(w, record);
	else if (e != NULL)
		e->named = true;
	return whole;
}

/* A page ends when it is large enough, or when a thread of the program waits for the gate; never before it has got
 * anywhere. */
static bool page_is_full(const struct wire *w, int index, uint64_t first)
{
	return wire_frame_words(w) >= WIRE_PART_WORDS || ((uint64_t)index > first && gate_wanted());
}

void frame_cvars(struct wire *w, uint32_t sequence, struct session *s, uint64_t first)
{
	struct wire page = { 0 }; /* what it names is known at its end, and goes before it */
	uint64_t records = 0;
	size_t next, list;
	int count = 0, i;

	if (s->abi->cvar_count(&count) != CODE_SUCCESS || count < 0)
		count = 0;
	for (size_t k = 0; k < s->catalogue.enumeration_count; k++)
		s->catalogue.enumerations[k]->named = false;
	wire_begin(&page, FRAME_CVARS, sequence);
	wire_word(&page, (uint64_t)count);
	next = wire_hole(&page);
	list = wire_hole(&page);
	for (i = first < (uint64_t)count ? (int)first : count; i < count && !page_is_full(&page, i, first); i++) {
		struct cvar v = { .index = i };

		if (s->abi->cvar_describe(i, &v.is, &name_text, &description_text) != CODE_SUCCESS)
			continue;
		if (!put_cvar(&page, s, &v, (uint64_t)i == first))
			break;
		records++;
	}
	wire_fill(&page, next, (uint64_t)i);
	wire_fill(&page, list, records);
	wire_end(&page);
	frame_enums_named(w, sequence, &s->catalogue);
	wire_append(w, &page);
	wire_free(&page);
	if (i == count)
		atomic_store(&cvars_told, true);
}

/* ---- categories ---- */

static void put_indices(struct wire *w, const int *indices, int count)
{
	wire_word(w, (uint64_t)count);
	for (int i = 0; i < count; i++)
		wire_word(w, (uint64_t)(int64_t)indices[i]);
}

/* False: it can't be described, nothing is written. */
static bool put_category(struct wire *w, const struct session *s, int index)
{
	int pvars = 0, cvars = 0, categories = 0;
	size_t record;
	int *members;

	if (s->abi->category_describe(index, &pvars, &cvars, &categories, &name_text, &description_text) != CODE_SUCCESS)
		return false;
	if (pvars < 0 || cvars < 0 || categories < 0 || pvars > MAX_MEMBERS || cvars > MAX_MEMBERS ||
	    categories > MAX_MEMBERS)
		return false;
	members = calloc((size_t)pvars + (size_t)cvars + (size_t)categories + 1, sizeof *members);
	if (members == NULL)
		return false;
	if (s->abi->category_members(index, pvars, members, cvars, members + pvars, categories,
				     members + pvars + cvars) != CODE_SUCCESS)
		pvars = cvars = categories = 0;
	record = wire_hole(w);
	wire_word(w, (uint64_t)index);
	wire_string(w, name_text.bytes);
	wire_string(w, description_text.bytes);
	put_indices(w, members, pvars);
	put_indices(w, members + pvars, cvars);
	put_indices(w, members + pvars + cvars, categories);
	wire_fill_length(w, record);
	free(members);
	return true;
}

/* The agent's own ones stand behind the library's: what a source measures, and what counts events. */
struct own_category {
	const char *name, *description;
	bool of_events;
};

/* Returns how many there are. about: where the description of the events' is written, cut to size; NULL: nobody asks
 * for it. */
static int own_categories(const struct session *s, struct own_category own[2], char *about, size_t size)
{
	const struct source *source = s->sourced.source;
	int count = 0;

	if (source != NULL)
		own[count++] = (struct own_category){ source->category, source->category_description, false };
	if (s->catalogue.events.seen > 0) {
		if (about != NULL)
			events_about(s->abi, about, size);
		own[count++] = (struct own_category){ EVENTS_CATEGORY, about, true };
	}
	return count;
}

static bool stands_in(const struct own_category *own, const struct variable *v)
{
	return own->of_events ? v->event : v->source != NULL;
}

static void put_own_category(struct wire *w, const struct catalogue *all, const struct own_category *own, int index)
{
	uint64_t members = 0;
	size_t record = wire_hole(w), hole;

	wire_word(w, (uint64_t)index);
	wire_string(w, own->name);
	wire_string(w, own->description);
	hole = wire_hole(w);
	for (size_t i = 0; i < all->count; i++)
		if (stands_in(own, all->variables[i])) {
			wire_word(w, (uint64_t)all->variables[i]->index);
			members++;
		}
	wire_fill(w, hole, members);
	put_indices(w, NULL, 0);
	put_indices(w, NULL, 0);
	wire_fill_length(w, record);
}

int lists_category_index(const struct session *s, const char *name)
{
	struct own_category own[2];
	int first = 0, count = own_categories(s, own, NULL, 0);

	if (s->abi->category_count(&first) != CODE_SUCCESS || first < 0)
		return -1;
	for (int i = 0; i < count; i++)
		if (strcmp(own[i].name, name) == 0)
			return first + i;
	return -1;
}

void frame_categories(struct wire *w, uint32_t sequence, const struct session *s, uint64_t first)
{
	uint64_t records = 0;
	size_t next, list;
	struct own_category own[2];
	static char about[4096]; /* the gate's */
	int librarys = 0, count, i;

	if (s->abi->category_count(&librarys) != CODE_SUCCESS || librarys < 0)
		librarys = 0;
	count = librarys + own_categories(s, own, about, sizeof about);
	wire_begin(w, FRAME_CATEGORIES, sequence);
	wire_word(w, (uint64_t)count);
	next = wire_hole(w);
	list = wire_hole(w);
	for (i = first < (uint64_t)count ? (int)first : count; i < count && !page_is_full(w, i, first); i++) {
		if (i >= librarys)
			put_own_category(w, &s->catalogue, &own[i - librarys], i);
		else if (!put_category(w, s, i))
			continue;
		records++;
	}
	wire_fill(w, next, (uint64_t)i);
	wire_fill(w, list, records);
	wire_word(w, session_category_stamp(s));
	wire_end(w);
	if (i == count)
		atomic_store(&categories_told, true);
}

bool lists_told(void)
{
	return atomic_load(&cvars_told) && atomic_load(&categories_told);
}

