/* frames.c - what the agent says, frame by frame. */
#include "frames.h"

#include "agent.h"
#include "gate.h"
#include "now.h"
#include "pcontrol.h"

void frame_hello(struct wire *w, const struct identity *id, enum connection_kind kind)
{
	wire_begin(w, FRAME_HELLO, 0);
	wire_word(w, kind);
	wire_words(w, id->id, 2);
	wire_word(w, (uint64_t)id->pid);
	wire_word(w, (uint64_t)(int64_t)id->rank);
	wire_word(w, (uint64_t)(int64_t)id->size);
	wire_word(w, (uint64_t)id->thread_level);
	wire_word(w, id->abi);
	wire_word(w, (id->passive ? 1u : 0) | (id->may_write ? 2u : 0) | (id->sessions_only ? 4u : 0));
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
	wire_string(w, ""); /* agents used to keep something for exporters here */
	wire_end(w);
}

/* ---- a list of records that may need several frames ---- */

struct parts {
	struct wire *w;
	enum frame_type type;
	uint32_t sequence;
	uint64_t generation; /* 0: not told */
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
		if (p->generation != 0)
			wire_word(p->w, p->generation);
		p->hole = wire_hole(p->w);
		p->records = 0;
		p->open = true;
	}
	p->records++;
}

/* Those that are newer than seen, or with named those that a page of control variables names. */
static void put_enums(struct wire *w, uint32_t sequence, const struct catalogue *c, uint64_t seen, bool named)
{
	struct parts p = { .w = w, .type = FRAME_ENUMS, .sequence = sequence };

	for (size_t i = 0; i < c->enumeration_count; i++) {
		const struct enumeration *e = c->enumerations[i];
		size_t record;

		if (named ? !e->named : e->generation <= seen)
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

void frame_enums_named(struct wire *w, uint32_t sequence, const struct catalogue *c)
{
	put_enums(w, sequence, c, 0, true);
}

static void frame_variables(struct wire *w, uint32_t sequence, const struct catalogue *c, uint64_t seen)
{
	struct parts p = { .w = w, .type = FRAME_VARIABLES, .sequence = sequence, .generation = c->generation };

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
		wire_word(w, (v->is.readonly ? 1u : 0) | (v->is.continuous ? 2u : 0) | (v->is.atomic ? 4u : 0) |
				     (v->distribution ? 8u : 0) | (v->on_request ? 16u : 0));
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
	wire_word(w, (h->first != NULL ? 1u : 0) | (h->origin != NULL ? 2u : 0) | (h->variable->selected ? 4u : 0) |
			     (h->excluded != NULL ? 8u : 0));
	if (h->first != NULL)
		wire_words(w, h->first, (size_t)h->count);
	if (h->origin != NULL)
		wire_words(w, h->origin, (size_t)h->count);
	if (h->excluded != NULL)
		wire_words(w, h->excluded, (size_t)h->count);
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

struct agent_statistics statistics_of(const struct session *s)
{
	return (struct agent_statistics){
		.samples = s->samples,
		.busy = s->busy_answers,
		.read_errors = s->read_errors,
		.cpu_ns = s->cpu_ns,
		.objects = s->objects,
		.level = s->pcontrol.level,
		.level_calls = s->pcontrol.calls,
		.paused_ns = pcontrol_paused_ns(s),
		.category_stamp = s->category_stamp,
	};
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
	wire_word(w, (uint64_t)(int64_t)statistics->level);
	wire_word(w, statistics->level_calls);
	wire_word(w, 0); /* agents used to keep samples, and count them here */
	wire_word(w, statistics->paused_ns);
	wire_word(w, statistics->category_stamp);
	wire_fill_length(w, record);
}

#define NOT_KNOWN UINT64_MAX

static void put_activities(struct wire *w, const struct source_thread *t)
{
	wire_word(w, ACTIVITIES);
	wire_words(w, t->activity_ns, ACTIVITIES);
}

static void put_thread(struct wire *w, const struct source_thread *t, bool first, const struct kernel_thread *kernel)
{
	size_t record = wire_hole(w);

	wire_word(w, t->id);
	wire_word(w, t->tid);
	wire_word(w, first ? 1 : 0);
	wire_word(w, t->now_ns);
	wire_word(w, t->observed_ns);
	put_activities(w, t);
	wire_word(w, kernel == NULL ? NOT_KNOWN : kernel->core_ns);
	wire_word(w, kernel == NULL ? NOT_KNOWN : kernel->queue_ns);
	wire_word(w, t->begun_ns);
	wire_word(w, t->ended_ns);
	wire_string(w, t->function == NULL ? "" : t->function);
	wire_word(w, (uint64_t)t->bind);
	wire_word(w, t->object);
	wire_word(w, (uint64_t)(int64_t)t->peer);
	wire_word(w, (uint64_t)(int64_t)t->tag);
	wire_word(w, (uint64_t)(int64_t)t->root);
	wire_word(w, t->number);
	wire_string(w, kernel == NULL ? "" : kernel->in);
	wire_word(w, t->peer_count);
	for (size_t i = 0; i < t->peer_count; i++)
		wire_word(w, (uint64_t)t->peers[i]);
	wire_string(w, t->collective == NULL ? "" : t->collective);
	wire_word(w, t->collective_on);
	wire_word(w, t->collective_number);
	wire_fill_length(w, record);
}

static void put_kernel(struct wire *w, const struct kernel_says *kernel)
{
	size_t record;

	wire_word(w, kernel->read ? 1 : 0);
	if (!kernel->read)
		return;
	record = wire_hole(w);
	wire_word(w, kernel->cores);
	wire_word(w, (uint64_t)(int64_t)kernel->nice);
	wire_word(w, kernel->major_faults);
	wire_word(w, kernel->resident);
	wire_word(w, kernel->gpu);
	wire_word(w, kernel->throttled_ns);
	wire_fill_length(w, record);
}

static void put_phases(struct wire *w, const struct phases *p)
{
	wire_word(w, p->count);
	for (size_t i = 0; i < p->count; i++) {
		const struct phase *is = &p->list[i];
		size_t record = wire_hole(w);

		wire_word(w, (uint64_t)(int64_t)is->level);
		wire_word(w, is->observed_ns);
		wire_word(w, ACTIVITIES);
		wire_words(w, is->activity_ns, ACTIVITIES);
		wire_fill_length(w, record);
	}
}

static void put_under_way(struct wire *w, const struct under_way *calls)
{
	const struct source_calls *is = &calls->is;
	size_t record;

	wire_word(w, calls->known ? 1 : 0);
	if (!calls->known)
		return;
	record = wire_hole(w);
	wire_word(w, is->threads[0].inside_ns);
	wire_word(w, is->threads[0].observed_ns);
	wire_word(w, is->running_ns);
	wire_word(w, (uint64_t)is->bind);
	wire_word(w, is->object);
	wire_string(w, is->function == NULL ? "" : is->function);
	wire_string(w, calls->module == NULL ? "" : calls->module);
	wire_word(w, calls->offset);
	put_activities(w, &is->threads[0]);
	wire_word(w, calls->finalize_ns);
	wire_word(w, calls->cpu_ns);
	wire_word(w, is->thread_count);
	for (size_t i = 0; i < is->thread_count; i++)
		put_thread(w, &is->threads[i], i == 0, calls->kernel.read ? &calls->kernel.threads[i] : NULL);
	put_kernel(w, &calls->kernel);
	put_phases(w, &calls->phases);
	wire_fill_length(w, record);
}

struct comms {
	struct wire *w;
	uint64_t count;
};

static void put_comm(void *context, const struct source_comm *is)
{
	struct comms *list = context;
	size_t record = wire_hole(list->w);

	wire_word(list->w, is->object);
	wire_word(list->w, is->identity);
	wire_word(list->w, is->begun);
	wire_fill_length(list->w, record);
	list->count++;
}

static void put_comms(struct wire *w, const struct session *s, bool all)
{
	size_t hole = wire_hole(w);
	struct comms list = { .w = w };

	sources_comms(s, all, put_comm, &list);
	wire_fill(w, hole, list.count);
}

static void frame_sample(struct wire *w, uint32_t sequence, const struct session *s, struct generations seen,
			 enum sample_status status, enum end_reason end, const struct under_way *calls)
{
	struct agent_statistics statistics = statistics_of(s);
	uint64_t failed = 0;
	size_t hole;

	wire_begin(w, FRAME_SAMPLE, sequence);
	wire_word(w, s->layout_generation);
	wire_word(w, status);
	wire_word(w, end);
	wire_word(w, s->sampled_realtime);
	wire_word(w, s->sampled_monotonic);
	wire_word(w, s->sample_ns);
	put_statistics(w, &statistics);
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
	put_under_way(w, calls);
	put_comms(w, s, !seen.comms);
	wire_end(w);
}

void frame_answer(struct wire *w, uint32_t sequence, const struct session *s, struct generations seen,
		  enum sample_status status, enum end_reason end, const struct under_way *calls)
{
	if (s->catalogue.generation != seen.catalogue) {
		put_enums(w, sequence, &s->catalogue, seen.catalogue, false);
		frame_variables(w, sequence, &s->catalogue, seen.catalogue);
	}
	if (s->layout_generation != seen.layout)
		frame_layout(w, sequence, s);
	if (s->remains.generation != seen.remains)
		frame_remains(w, sequence, &s->remains);
	frame_sample(w, sequence, s, seen, status, end, calls);
}

void frame_busy(struct wire *w, uint32_t sequence, const struct agent_statistics *statistics,
		const struct under_way *calls)
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
	put_under_way(w, calls);
	wire_end(w);
}

void frame_error(struct wire *w, uint32_t sequence, enum wire_error code, const char *what)
{
	wire_begin(w, FRAME_ERROR, sequence);
	wire_word(w, code);
	wire_string(w, what);
	wire_end(w);
}
