/* frames.c - what the agent says, frame by frame. */
#include "frames.h"

#include "agent.h"
#include "gate.h"

#include <stdlib.h>
#include <string.h>

void frame_hello(struct wire *w, const struct identity *id, enum connection_kind kind, const void *blob, size_t blob_length)
{
	wire_begin(w, FRAME_HELLO, 0);
	wire_word(w, kind);
	wire_words(w, id->id, 2);
	wire_word(w, (uint64_t)id->pid);
	wire_word(w, (uint64_t)(int64_t)id->rank);
	wire_word(w, (uint64_t)(int64_t)id->size);
	wire_word(w, (uint64_t)id->thread_level);
	wire_word(w, id->abi);
	wire_word(w, (id->passive ? 1u : 0) | (id->sessions_only ? 4u : 0));
	wire_word(w, id->init_realtime);
	wire_string(w, MPIT_AGENT_VERSION);
	wire_string(w, id->library_version);
	wire_string(w, id->host);
	wire_string(w, id->executable);
	wire_word(w, id->attribute_count);
	for (size_t i = 0; i < id->attribute_count; i++) {
		size_t record = wire_hole(w);

		wire_string(w, id->attributes[i].key);
		wire_string(w, id->attributes[i].value);
		wire_fill_length(w, record);
	}
	wire_bytes(w, blob, blob_length);
	wire_end(w);
}

/* ---- a list of records that may need several frames ---- */

struct parts {
	struct wire *w;
	enum frame_type type;
	uint32_t sequence;
	bool tells_generation;
	uint64_t generation;
	bool open;
	size_t hole;
	uint64_t records;
};

static void close_part(struct parts *p)
{
	if (!p->open)
		return;
	wire_fill(p->w, p->hole, p->records);
	wire_end(p->w);
	p->open = false;
}

static void next_record(struct parts *p)
{
	if (p->open && wire_frame_words(p->w) > WIRE_PART_WORDS)
		close_part(p);
	if (!p->open) {
		wire_begin(p->w, p->type, p->sequence);
		if (p->tells_generation)
			wire_word(p->w, p->generation);
		p->hole = wire_hole(p->w);
		p->records = 0;
		p->open = true;
	}
	p->records++;
}

static void frame_enums(struct wire *w, uint32_t sequence, const struct catalogue *c, uint64_t seen)
{
	struct parts p = { .w = w, .type = FRAME_ENUMS, .sequence = sequence };

	for (size_t i = 0; i < c->enumeration_count; i++) {
		const struct enumeration *e = c->enumerations[i];
		size_t record;

		if (e->generation <= seen)
			continue;
		next_record(&p);
		record = wire_hole(w);
		wire_word(w, e->number);
		wire_string(w, e->name);
		wire_word(w, (uint64_t)e->items);
		for (int k = 0; k < e->items; k++) {
			size_t item = wire_hole(w);

			wire_word(w, (uint64_t)(int64_t)e->values[k]);
			wire_string(w, e->names[k]);
			wire_fill_length(w, item);
		}
		wire_fill_length(w, record);
	}
	close_part(&p);
}

static void frame_variables(struct wire *w, uint32_t sequence, const struct catalogue *c, uint64_t seen)
{
	struct parts p = {
		.w = w,
		.type = FRAME_VARIABLES,
		.sequence = sequence,
		.tells_generation = true,
		.generation = c->generation,
	};

	for (size_t i = 0; i < c->count; i++) {
		const struct variable *v = c->variables[i];
		size_t record;

		if (v->generation <= seen)
			continue;
		next_record(&p);
		record = wire_hole(w);
		wire_word(w, v->number);
		wire_word(w, (uint64_t)v->index);
		wire_word(w, (uint64_t)v->is.mpi_class);
		wire_word(w, (uint64_t)v->is.verbosity);
		wire_word(w, (uint64_t)v->is.datatype);
		wire_word(w, (uint64_t)v->is.datatype_bytes);
		wire_word(w, (uint64_t)v->is.bind);
		wire_word(w, (v->is.readonly ? 1u : 0) | (v->is.continuous ? 2u : 0) | (v->is.atomic ? 4u : 0));
		wire_word(w, v->enumeration == NULL ? 0 : (uint64_t)v->enumeration->number + 1);
		wire_word(w, (uint64_t)v->state);
		wire_word(w, (uint64_t)v->code);
		wire_string(w, v->name);
		wire_string(w, v->description);
		wire_fill_length(w, record);
	}
	close_part(&p);
}

static void put_handle(struct wire *w, const struct object *o, const struct handle *h)
{
	size_t record = wire_hole(w);

	wire_word(w, h->number);
	wire_word(w, h->variable->number);
	wire_word(w, o->number);
	wire_word(w, (uint64_t)h->count);
	wire_word(w, h->created);
	wire_word(w, (h->first != NULL ? 1u : 0) | (h->origin != NULL ? 2u : 0) | (h->variable->selected ? 4u : 0));
	if (h->first != NULL)
		wire_words(w, h->first, (size_t)h->count);
	if (h->origin != NULL)
		wire_words(w, h->origin, (size_t)h->count);
	wire_fill_length(w, record);
}

static void frame_layout(struct wire *w, uint32_t sequence, const struct session *s)
{
	const struct object *o;
	uint64_t handles = 0;
	size_t hole;

	wire_begin(w, FRAME_LAYOUT, sequence);
	wire_word(w, s->layout_generation);
	wire_word(w, s->objects_over);
	wire_word(w, s->handles_over);
	wire_word(w, s->objects);
	for (o = s->unbound.after; o != NULL; o = o->after) {
		size_t record = wire_hole(w);

		wire_word(w, o->number);
		wire_word(w, (uint64_t)o->kind);
		wire_word(w, o->flags);
		wire_word(w, (uint64_t)(int64_t)o->size);
		wire_word(w, (uint64_t)(int64_t)o->rank);
		wire_word(w, o->created);
		wire_string(w, o->name);
		wire_word(w, o->on);
		wire_word(w, o->detail_count);
		wire_words(w, o->details, o->detail_words);
		wire_fill_length(w, record);
	}
	hole = wire_hole(w);
	for (o = &s->unbound; o != NULL; o = o->after)
		for (size_t i = 0; i < o->count; i++, handles++)
			put_handle(w, o, &o->handles[i]);
	wire_fill(w, hole, handles);
	wire_end(w);
}

static void frame_remains(struct wire *w, uint32_t sequence, const struct remains *r)
{
	wire_begin(w, FRAME_REMAINS, sequence);
	wire_word(w, r->generation);
	wire_word(w, r->lost);
	wire_word(w, r->count);
	for (size_t i = 0; i < REMAINS_BUCKETS; i++)
		for (const struct remains_name *n = r->buckets[i]; n != NULL; n = n->next)
			for (const struct remain *m = n->list; m != NULL; m = m->next) {
				size_t record = wire_hole(w);

				wire_word(w, m->variable->number);
				wire_word(w, (uint64_t)m->count);
				wire_word(w, m->contributions);
				wire_word(w, m->created);
				wire_words(w, m->gained, 4 * (size_t)m->count); /* gained, first, max, min */
				wire_string(w, n->name);
				wire_fill_length(w, record);
			}
	wire_end(w);
}

static void put_statistics(struct wire *w, const struct agent_statistics *statistics)
{
	struct gate_waits waits = gate_waits();
	size_t record;

	wire_word(w, 1);
	record = wire_hole(w);
	wire_word(w, statistics->samples);
	wire_word(w, statistics->busy);
	wire_word(w, statistics->read_errors);
	wire_word(w, waits.count);
	wire_word(w, waits.total_ns);
	wire_word(w, waits.longest_ns);
	wire_word(w, statistics->cpu_ns);
	wire_word(w, statistics->objects);
	wire_fill_length(w, record);
}

static void frame_sample(struct wire *w, uint32_t sequence, const struct session *s, enum sample_status status, enum end_reason end,
			 const struct agent_statistics *statistics)
{
	uint64_t failed = 0;
	size_t hole;

	wire_begin(w, FRAME_SAMPLE, sequence);
	wire_word(w, s->layout_generation);
	wire_word(w, status);
	wire_word(w, end);
	wire_word(w, s->sampled_realtime);
	wire_word(w, s->sampled_monotonic);
	wire_word(w, s->sample_ns);
	put_statistics(w, statistics);
	wire_word(w, s->value_count);
	wire_words(w, s->values, s->value_count);
	hole = wire_hole(w);
	for (const struct object *o = &s->unbound; o != NULL; o = o->after)
		for (size_t i = 0; i < o->count; i++) {
			const struct handle *h = &o->handles[i];

			if (h->code == CODE_SUCCESS || !h->variable->selected)
				continue;
			wire_word(w, h->number);
			wire_word(w, (uint64_t)h->code);
			failed++;
		}
	wire_fill(w, hole, failed);
	wire_end(w);
}

void frame_answer(struct wire *w, uint32_t sequence, const struct session *s, struct generations seen, enum sample_status status,
		  enum end_reason end, const struct agent_statistics *statistics)
{
	if (s->catalogue.generation != seen.catalogue) {
		frame_enums(w, sequence, &s->catalogue, seen.catalogue);
		frame_variables(w, sequence, &s->catalogue, seen.catalogue);
	}
	if (s->layout_generation != seen.layout)
		frame_layout(w, sequence, s);
	if (s->remains.generation != seen.remains)
		frame_remains(w, sequence, &s->remains);
	frame_sample(w, sequence, s, status, end, statistics);
}

void frame_busy(struct wire *w, uint32_t sequence, const struct agent_statistics *statistics)
{
	wire_begin(w, FRAME_SAMPLE, sequence);
	wire_word(w, 0);
	wire_word(w, SAMPLE_BUSY);
	wire_word(w, END_NONE);
	wire_word(w, realtime_ns());
	wire_word(w, monotonic_ns());
	wire_word(w, 0);
	put_statistics(w, statistics);
	wire_word(w, 0); /* no values */
	wire_word(w, 0); /* none failed */
	wire_end(w);
}

/* ---- control variables and categories ---- */

#define CVAR_BYTES 65536
#define MAX_MEMBERS 65536

/* The gate's: too large for a stack. */
static struct text name_text, description_text;
static unsigned char cvar_value[CVAR_BYTES + 64];

enum value_kind { VALUE_NONE, VALUE_WORDS, VALUE_STRING };

static void put_cvar_value(struct wire *w, const struct variable *like, int code, int count)
{
	size_t n = strnlen((const char *)cvar_value, CVAR_BYTES);

	if (code != CODE_SUCCESS) {
		wire_word(w, VALUE_NONE);
		wire_word(w, 0);
	} else if (like->is.datatype == TYPE_CHAR) {
		wire_word(w, VALUE_STRING);
		wire_bytes(w, cvar_value, n);
	} else {
		wire_word(w, VALUE_WORDS);
		wire_word(w, (uint64_t)count);
		for (int i = 0; i < count; i++)
			wire_word(w, widen(like, cvar_value, (size_t)i));
	}
}

static void put_cvar(struct wire *w, const struct session *s, int index, const struct cvar_description *d)
{
	struct variable like = { .is = { .datatype = d->datatype, .datatype_bytes = d->datatype_bytes } };
	size_t record = wire_hole(w);
	int count = 0, code = CODE_NOT_SUPPORTED;

	memset(cvar_value, 0, sizeof cvar_value);
	if (d->bind == BIND_NONE && d->datatype != TYPE_OTHER && d->datatype_bytes <= 8)
		code = s->abi->cvar_read(index, d->datatype, d->datatype_bytes, cvar_value, CVAR_BYTES, &count);
	wire_word(w, (uint64_t)index);
	wire_word(w, (uint64_t)d->scope);
	wire_word(w, (uint64_t)d->verbosity);
	wire_word(w, (uint64_t)d->datatype);
	wire_word(w, (uint64_t)d->bind);
	wire_word(w, 0); /* enumerations of control variables are not sent in this version */
	wire_word(w, (uint64_t)code);
	put_cvar_value(w, &like, code, count);
	wire_string(w, name_text.bytes);
	wire_string(w, description_text.bytes);
	wire_fill_length(w, record);
}

/* A page ends when it is large enough, or when a thread of the program waits for the gate; never before it has got anywhere. */
static bool page_is_full(const struct wire *w, int index, uint64_t first)
{
	return wire_frame_words(w) >= WIRE_PART_WORDS || ((uint64_t)index > first && gate_wanted());
}

bool frame_cvars(struct wire *w, uint32_t sequence, const struct session *s, uint64_t first)
{
	uint64_t records = 0;
	size_t next, list;
	int count = 0, i;

	if (s->abi->cvar_count(&count) != CODE_SUCCESS || count < 0)
		count = 0;
	wire_begin(w, FRAME_CVARS, sequence);
	wire_word(w, (uint64_t)count);
	next = wire_hole(w);
	list = wire_hole(w);
	for (i = first < (uint64_t)count ? (int)first : count; i < count && !page_is_full(w, i, first); i++) {
		struct cvar_description d;

		if (s->abi->cvar_describe(i, &d, &name_text, &description_text) != CODE_SUCCESS)
			continue;
		put_cvar(w, s, i, &d);
		records++;
	}
	wire_fill(w, next, (uint64_t)i);
	wire_fill(w, list, records);
	wire_end(w);
	return i == count;
}

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
	if (pvars < 0 || cvars < 0 || categories < 0 || pvars > MAX_MEMBERS || cvars > MAX_MEMBERS || categories > MAX_MEMBERS)
		return false;
	members = calloc((size_t)pvars + (size_t)cvars + (size_t)categories + 1, sizeof *members);
	if (members == NULL)
		return false;
	if (s->abi->category_members(index, pvars, members, cvars, members + pvars, categories, members + pvars + cvars) != CODE_SUCCESS)
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

bool frame_categories(struct wire *w, uint32_t sequence, const struct session *s, uint64_t first)
{
	uint64_t records = 0;
	size_t next, list;
	int count = 0, i;

	if (s->abi->category_count(&count) != CODE_SUCCESS || count < 0)
		count = 0;
	wire_begin(w, FRAME_CATEGORIES, sequence);
	wire_word(w, (uint64_t)count);
	next = wire_hole(w);
	list = wire_hole(w);
	for (i = first < (uint64_t)count ? (int)first : count; i < count && !page_is_full(w, i, first); i++)
		if (put_category(w, s, i))
			records++;
	wire_fill(w, next, (uint64_t)i);
	wire_fill(w, list, records);
	wire_end(w);
	return i == count;
}

void frame_error(struct wire *w, uint32_t sequence, enum wire_error code, const char *what)
{
	wire_begin(w, FRAME_ERROR, sequence);
	wire_word(w, code);
	wire_string(w, what);
	wire_end(w);
}
