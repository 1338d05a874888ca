/* remains.c - what freed and renamed objects have counted. */
#include "remains.h"

#include <stdlib.h>
#include <string.h>

static double as_double(uint64_t word)
{
	double d;

	memcpy(&d, &word, sizeof d);
	return d;
}

static uint64_t as_word(double d)
{
	uint64_t word;

	memcpy(&word, &d, sizeof word);
	return word;
}

uint64_t value_plus(const struct variable *v, uint64_t a, uint64_t b)
{
	return number_kind(v->is.datatype) == NUMBER_FLOATING ? as_word(as_double(a) + as_double(b)) : a + b;
}

uint64_t value_minus(const struct variable *v, uint64_t a, uint64_t b)
{
	return number_kind(v->is.datatype) == NUMBER_FLOATING ? as_word(as_double(a) - as_double(b)) : a - b;
}

static bool less(const struct variable *v, uint64_t a, uint64_t b)
{
	switch (number_kind(v->is.datatype)) {
	case NUMBER_FLOATING: return as_double(a) < as_double(b);
	case NUMBER_SIGNED: return (int64_t)a < (int64_t)b;
	default: return a < b;
	}
}

void remains_init(struct remains *r, size_t most_names, size_t most_words)
{
	*r = (struct remains){ .most_names = most_names, .most_words = most_words };
}

static unsigned bucket_of(const char *name)
{
	unsigned hash = 2166136261u; /* FNV-1a */

	for (; *name != '\0'; name++)
		hash = (hash ^ (unsigned char)*name) * 16777619u;
	return hash % REMAINS_BUCKETS;
}

static struct remains_name *find_name(struct remains *r, const char *name)
{
	struct remains_name **at = &r->buckets[bucket_of(name)];
	struct remains_name *n;

	for (n = *at; n != NULL; n = n->next)
		if (strcmp(n->name, name) == 0)
			return n;
	if (r->names >= r->most_names)
		return NULL;
	n = calloc(1, sizeof *n);
	if (n == NULL)
		return NULL;
	n->name = strdup(name);
	if (n->name == NULL) {
		free(n);
		return NULL;
	}
	n->next = *at;
	*at = n;
	r->names++;
	return n;
}

/* Gives a record room for count elements; new ones are zero, and empty for maximum and minimum. */
static bool widen_remain(struct remain *m, int count, const uint64_t *last)
{
	size_t old = (size_t)m->count, room = (size_t)count;
	uint64_t *words = calloc(4 * room, sizeof *words);

	if (words == NULL)
		return false;
	for (size_t k = 0; old > 0 && k < 4; k++)
		memcpy(words + k * room, m->gained + k * old, old * sizeof *words);
	for (size_t i = old; i < room; i++)
		words[2 * room + i] = words[3 * room + i] = last[i];
	free(m->gained);
	m->gained = words;
	m->first = words + room;
	m->max = words + 2 * room;
	m->min = words + 3 * room;
	m->count = count;
	return true;
}

static struct remain *find(struct remains *r, const char *name, const struct contribution *c)
{
	struct remains_name *n = find_name(r, name);
	struct remain *m;
	size_t words;

	if (n == NULL)
		return NULL;
	for (m = n->list; m != NULL && m->variable != c->variable; m = m->next)
		;
	words = m == NULL ? 8 + strlen(name) / 8 + 4 * (size_t)c->count
			  : c->count > m->count ? 4 * (size_t)(c->count - m->count) : 0;
	if (r->words + words > r->most_words)
		return NULL;
	if (m == NULL) {
		m = calloc(1, sizeof *m);
		if (m == NULL)
			return NULL;
		m->variable = c->variable;
		m->created = c->created;
		if (!widen_remain(m, c->count, c->last)) {
			free(m);
			return NULL;
		}
		m->next = n->list;
		n->list = m;
		r->count++;
	} else if (c->count > m->count && !widen_remain(m, c->count, c->last)) {
		return NULL;
	}
	r->words += words;
	return m;
}

bool all_zero(const uint64_t *words, int count)
{
	for (int i = 0; i < count; i++)
		if (words[i] != 0)
			return false;
	return true;
}

/* By its declared class: a freed object's counters, timers and watermarks stay. */
static bool lasts(const struct variable *v)
{
	return v->is.mpi_class >= CLASS_HIGHWATERMARK && v->is.mpi_class <= CLASS_TIMER;
}

void remains_add(struct remains *r, const char *name, const struct contribution *c)
{
	const struct variable *v = c->variable;
	struct remain *m;

	/* Levels and sizes of freed objects mean nothing, unless they are really counters: those of zero leave nothing
	 * behind. */
	if (c->count <= 0 || (c->origin == NULL && c->first == NULL && !lasts(v) && all_zero(c->last, c->count)))
		return;
	r->generation++;
	m = find(r, name, c);
	if (m == NULL) {
		r->lost++;
		return;
	}
	m->contributions++;
	if (c->created < m->created)
		m->created = c->created;
	for (int i = 0; i < c->count; i++) {
		uint64_t base = c->origin != NULL ? c->origin[i] : c->first != NULL ? c->first[i] : 0;

		m->gained[i] = value_plus(v, m->gained[i], value_minus(v, c->last[i], base));
		if (c->excluded != NULL)
			m->gained[i] = value_minus(v, m->gained[i], c->excluded[i]);
		if (c->origin == NULL && c->first != NULL)
			m->first[i] = value_plus(v, m->first[i], c->first[i]);
		if (less(v, m->max[i], c->last[i]))
			m->max[i] = c->last[i];
		if (less(v, c->last[i], m->min[i]))
			m->min[i] = c->last[i];
	}
}

void remains_free(struct remains *r)
{
	for (size_t i = 0; i < REMAINS_BUCKETS; i++) {
		struct remains_name *n = r->buckets[i];

		while (n != NULL) {
			struct remains_name *next = n->next;

			while (n->list != NULL) {
				struct remain *m = n->list;

				n->list = m->next;
				free(m->gained);
				free(m);
			}
			free(n->name);
			free(n);
			n = next;
		}
	}
	*r = (struct remains){ 0 };
}
