/* catalogue.c - finds and describes performance variables. */
#define _GNU_SOURCE
#include "catalogue.h"

#include "agent.h"
#include "deny.h"
#include "events/events.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Two strings of 64 KiB are too much for a foreign stack. The gate's, as everything here. */
static struct text name_text, description_text;

static char *keep(const struct text *t)
{
	size_t n = strnlen(t->bytes, sizeof t->bytes - 1);
	char *copy = malloc(n + 1);

	if (copy != NULL) {
		memcpy(copy, t->bytes, n);
		copy[n] = '\0';
	}
	return copy;
}

static void enumeration_free(struct enumeration *e)
{
	for (int i = 0; e->names != NULL && i < e->items; i++)
		free(e->names[i]);
	free(e->names);
	free(e->values);
	free(e->name);
	free(e);
}

static struct enumeration *describe_enumeration(const struct abi *abi, void *mpi)
{
	struct enumeration *e = calloc(1, sizeof *e);
	int items = 0;

	if (e == NULL)
		return NULL;
	e->mpi = mpi;
	if (abi->enum_describe(mpi, &items, &name_text) != CODE_SUCCESS || items < 0 || items > MAX_ENUM_ITEMS)
		goto failed;
	e->name = keep(&name_text);
	e->values = calloc((size_t)items + 1, sizeof *e->values);
	e->names = calloc((size_t)items + 1, sizeof *e->names);
	if (e->name == NULL || e->values == NULL || e->names == NULL)
		goto failed;
	for (; e->items < items; e->items++) {
		if (abi->enum_item(mpi, e->items, &e->values[e->items], &name_text) != CODE_SUCCESS)
			break;
		e->names[e->items] = keep(&name_text);
		if (e->names[e->items] == NULL)
			goto failed;
	}
	return e;
failed:
	enumeration_free(e);
	return NULL;
}

struct enumeration *catalogue_enumeration(struct catalogue *c, const struct abi *abi, void *mpi)
{
	struct enumeration *e, **grown;

	if (mpi == NULL)
		return NULL;
	for (size_t i = 0; i < c->enumeration_count; i++)
		if (c->enumerations[i]->mpi == mpi)
			return c->enumerations[i];
	e = describe_enumeration(abi, mpi);
	if (e == NULL)
		return NULL;
	grown = realloc(c->enumerations, (c->enumeration_count + 1) * sizeof *grown);
	if (grown == NULL) {
		enumeration_free(e);
		return NULL;
	}
	c->enumerations = grown;
	e->number = (uint32_t)c->enumeration_count;
	e->generation = c->generation + 1;
	c->enumerations[c->enumeration_count++] = e;
	return e;
}

static bool readable(const struct pvar_description *d)
{
	switch (d->datatype) {
	case TYPE_OTHER:
	case TYPE_CHAR: /* a string: nothing to measure */
		return false;
	case TYPE_DOUBLE:
		return d->datatype_bytes == (int)sizeof(double);
	case TYPE_FLOAT:
		return d->datatype_bytes == (int)sizeof(float);
	default:
		return d->datatype_bytes == 1 || d->datatype_bytes == 2 || d->datatype_bytes == 4 || d->datatype_bytes == 8;
	}
}

enum number number_kind(int datatype)
{
	switch (datatype) {
	case TYPE_DOUBLE:
	case TYPE_FLOAT:
		return NUMBER_FLOATING;
	case TYPE_INT:
	case TYPE_COUNT:
	case TYPE_INT32:
	case TYPE_INT64:
	case TYPE_LONG:
	case TYPE_LONG_LONG:
		return NUMBER_SIGNED;
	default:
		return NUMBER_UNSIGNED;
	}
}

uint64_t widen(const struct variable *v, const void *elements, size_t i)
{
	const unsigned char *at = (const unsigned char *)elements + i * (size_t)v->is.datatype_bytes;
	uint64_t word = 0;
	unsigned spare;

	if (v->is.datatype == TYPE_FLOAT) {
		float f;
		double d;

		memcpy(&f, at, sizeof f);
		d = (double)f;
		memcpy(&word, &d, sizeof word);
		return word;
	}
	memcpy(&word, at, (size_t)v->is.datatype_bytes);
	spare = 64 - 8 * (unsigned)v->is.datatype_bytes;
	if (spare > 0 && number_kind(v->is.datatype) == NUMBER_SIGNED)
		word = (uint64_t)((int64_t)(word << spare) >> spare);
	return word;
}

static bool narrow_one(int datatype, int bytes, uint64_t word, void *to)
{
	unsigned spare = 64 - 8 * (unsigned)bytes;
	double d;
	float f;

	switch (datatype) {
	case TYPE_FLOAT:
		memcpy(&d, &word, sizeof d);
		if ((d > FLT_MAX || d < -FLT_MAX) && !isinf(d))
			return false;
		f = (float)d;
		memcpy(to, &f, sizeof f);
		return true;
	case TYPE_BOOL:
		memcpy(to, &word, (size_t)bytes);
		return word <= 1;
	default:
		memcpy(to, &word, (size_t)bytes);
		if (spare == 0)
			return true;
		if (number_kind(datatype) == NUMBER_SIGNED)
			return (uint64_t)((int64_t)(word << spare) >> spare) == word;
		return word << spare >> spare == word;
	}
}

bool narrow(int datatype, int datatype_bytes, const uint64_t *words, size_t count, void *elements)
{
	unsigned char *at = elements;

	for (size_t i = 0; i < count; i++, at += datatype_bytes)
		if (!narrow_one(datatype, datatype_bytes, words[i], at))
			return false;
	return true;
}

static void variable_free(struct variable *v)
{
	free(v->name);
	free(v->description);
	free(v);
}

static struct variable *describe(struct catalogue *c, const struct abi *abi, int index)
{
	struct variable *v = calloc(1, sizeof *v);
	bool costly, unstoppable;
	int code;

	if (v == NULL)
		return NULL;
	v->event = index >= EVENT_INDEX;
	code = v->event ? events_describe(abi, index - EVENT_INDEX, &v->is, &name_text, &description_text)
			: abi->pvar_describe(index, &v->is, &name_text, &description_text);
	if (code != CODE_SUCCESS) {
		free(v);
		return NULL;
	}
	costly = v->event || deny_matches(abi->on_request, name_text.bytes);
	unstoppable = v->is.continuous && !v->event;
	v->index = index;
	v->name = keep(&name_text);
	v->description = keep(&description_text);
	if (v->name == NULL || v->description == NULL) {
		variable_free(v);
		return NULL;
	}
	v->enumeration = catalogue_enumeration(c, abi, v->is.enumeration);
	v->on_request = costly && !unstoppable;
	if (deny_matches(c->deny, v->name) || (costly && unstoppable))
		v->state = VARIABLE_DENIED;
	else if (!readable(&v->is))
		v->state = VARIABLE_BAD_DATATYPE;
	else if (v->on_request && !deny_matches(c->open, v->name))
		v->state = VARIABLE_ON_REQUEST;
	return v;
}

static bool selects(const struct catalogue *c, size_t variable)
{
	const struct selection *s = &c->selection;
	size_t word = variable / 64;

	return word < s->words ? (s->map[word] >> (variable % 64) & 1) != 0 : s->beyond;
}

void catalogue_select(struct catalogue *c, bool beyond, const uint64_t *map, size_t words)
{
	struct selection *s = &c->selection;

	s->beyond = beyond;
	s->words = words < sizeof s->map / sizeof s->map[0] ? words : sizeof s->map / sizeof s->map[0];
	for (size_t i = 0; i < s->words; i++)
		s->map[i] = map[i];
	for (size_t i = 0; i < c->count; i++)
		c->variables[i]->selected = selects(c, i);
}

static bool add(struct catalogue *c, struct variable *v)
{
	struct variable **variables = array_with_room(c->variables, c->count, &c->room, sizeof *variables);

	if (variables == NULL)
		return false;
	c->variables = variables;
	v->number = (uint32_t)c->count;
	v->selected = selects(c, c->count);
	v->generation = c->generation + 1;
	c->variables[c->count++] = v;
	return true;
}

struct variable *catalogue_add(struct catalogue *c, const struct source *source, size_t i)
{
	struct source_variable is;
	struct variable *v = c->count < MAX_VARIABLES ? calloc(1, sizeof *v) : NULL;

	if (v == NULL)
		return NULL;
	source->describe(i, &is);
	*v = (struct variable){
		.index = (int)(SOURCE_INDEX + i),
		.source = source,
		.of_source = i,
		.distribution = is.distribution,
		.is = {
			.mpi_class = is.mpi_class,
			.verbosity = is.verbosity,
			.datatype = TYPE_UINT64,
			.datatype_bytes = sizeof(uint64_t),
			.bind = is.bind,
			.readonly = true,
			.continuous = true,
		},
		.name = strndup(is.name, TEXT_BYTES - 1),
		.description = strndup(is.description, TEXT_BYTES - 1),
		.state = deny_matches(c->deny, is.name) ? VARIABLE_DENIED : VARIABLE_OPEN,
	};
	if (v->name == NULL || v->description == NULL || !add(c, v)) {
		variable_free(v);
		return NULL;
	}
	return v;
}

/* Looks at `count` indices from first on. */
static void find(struct catalogue *c, const struct abi *abi, struct found *f, int first, int count, bool again,
		 bool (*stop)(void))
{
	if (count > MAX_VARIABLES || (count == f->seen && !again))
		return;
	if (count > f->seen) {
		bool *grown = realloc(f->dead, (size_t)count * sizeof *grown);

		if (grown == NULL)
			return;
		f->dead = grown;
	}
	for (int i = again ? 0 : f->seen; i < count && c->count < MAX_VARIABLES; i++) {
		struct variable *v;

		if (i < f->seen && !f->dead[i])
			continue;
		if (stop != NULL && stop()) {
			c->interrupted = true;
			return; /* the rest at the next call: seen says how far this one came */
		}
		v = describe(c, abi, first + i);
		if (v != NULL && !add(c, v)) {
			variable_free(v);
			v = NULL;
		}
		f->dead[i] = v == NULL;
		if (i == f->seen)
			f->seen = i + 1;
	}
}

size_t catalogue_refresh(struct catalogue *c, const struct abi *abi, bool again, bool (*stop)(void))
{
	size_t before = c->count;
	int count = 0;

	c->interrupted = false;
	if (abi->pvar_count(&count) == CODE_SUCCESS)
		find(c, abi, &c->pvars, 0, count, again, stop);
	if (!c->interrupted)
		find(c, abi, &c->events, EVENT_INDEX, events_count(abi), again, stop);
	if (c->count != before)
		c->generation++;
	return c->count - before;
}

int catalogue_index(const struct catalogue *c, const char *name, int mpi_class)
{
	for (size_t i = 0; i < c->count; i++) {
		const struct variable *v = c->variables[i];

		if ((v->source != NULL || v->event) && v->is.mpi_class == mpi_class && strcmp(v->name, name) == 0)
			return v->index;
	}
	return -1;
}

void catalogue_note(struct catalogue *c, struct variable *v, enum variable_state state, int code)
{
	if ((v->state == state && v->code == code) || (v->handles > 0 && state != VARIABLE_OPEN))
		return;
	v->state = state;
	v->code = code;
	v->generation = ++c->generation;
}

bool variable_usable(const struct variable *v)
{
	return v->state != VARIABLE_DENIED && v->state != VARIABLE_BAD_DATATYPE && v->state != VARIABLE_ON_REQUEST;
}

void catalogue_free(struct catalogue *c)
{
	for (size_t i = 0; i < c->count; i++)
		variable_free(c->variables[i]);
	for (size_t i = 0; i < c->enumeration_count; i++)
		enumeration_free(c->enumerations[i]);
	free(c->variables);
	free(c->enumerations);
	free(c->pvars.dead);
	free(c->events.dead);
	*c = (struct catalogue){ 0 };
}
