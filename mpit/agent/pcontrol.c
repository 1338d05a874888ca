/* pcontrol.c - what MPI_Pcontrol does to the session. */
#include "pcontrol.h"

#include "agent.h"
#include "handles.h"
#include "now.h"

#include <stdlib.h>
#include <string.h>

enum level { LEVEL_OFF = 0, LEVEL_ON = 1 };

static void switch_off(struct session *s)
{
	struct pcontrol *p = &s->pcontrol;
	uint64_t begin = monotonic_ns(), *values;

	if (p->paused)
		return;
	agent_measure(false);
	sources_discover(s, NULL);
	values = handle_scratch(s);
	for (struct object *o = &s->unbound; o != NULL; o = o->after)
		for (size_t i = 0; i < o->count; i++) {
			handle_read(s, &o->handles[i], values);
			if (o->handles[i].code != CODE_SUCCESS)
				s->read_errors++;
			handle_freeze(&o->handles[i], values);
		}
	p->paused = true;
	p->realtime = realtime_ns();
	p->monotonic = monotonic_ns();
	p->read_ns = p->monotonic - begin;
}

/* What it gained since it was frozen is added to excluded; true if that is news. Allocates nothing: the frozen
 * values' memory is taken. */
static bool thaw(struct session *s, struct handle *h, uint64_t *now)
{
	const struct variable *v = h->variable;
	uint64_t *gained = h->frozen;
	bool known = h->code == CODE_SUCCESS;

	if (gained == NULL)
		return false;
	h->frozen = NULL;
	handle_read(s, h, now);
	if (h->code != CODE_SUCCESS)
		s->read_errors++;
	/* One that could not be read at both ends keeps what it gained: nobody knows how much that is. */
	known = known && h->code == CODE_SUCCESS;
	for (int i = 0; known && i < h->count; i++)
		gained[i] = value_minus(v, now[i], gained[i]);
	if (!known || all_zero(gained, h->count)) {
		free(gained);
		return false;
	}
	if (h->excluded == NULL) {
		h->excluded = gained;
		return true;
	}
	for (int i = 0; i < h->count; i++)
		h->excluded[i] = value_plus(v, h->excluded[i], gained[i]);
	free(gained);
	return true;
}

static void switch_on(struct session *s)
{
	struct pcontrol *p = &s->pcontrol;
	uint64_t *now = handle_scratch(s);
	bool news = false;

	if (!p->paused)
		return;
	for (struct object *o = &s->unbound; o != NULL; o = o->after)
		for (size_t i = 0; i < o->count; i++)
			news |= thaw(s, &o->handles[i], now);
	p->paused_ns += monotonic_ns() - p->monotonic;
	p->paused = false;
	agent_measure(true); /* after the readings: what it counts from here on is no part of the pause */
	if (news)
		s->layout_generation++;
}

void pcontrol_called(struct session *s, int level)
{
	s->pcontrol.calls++;
	s->pcontrol.level = level;
	if (level >= FIRST_PHASE)
		phases_begin(&s->phases, s->sourced.source, level);
	if (level == LEVEL_OFF)
		switch_off(s);
	else if (level == LEVEL_ON)
		switch_on(s);
}

uint64_t pcontrol_paused_ns(const struct session *s)
{
	const struct pcontrol *p = &s->pcontrol;

	return p->paused_ns + (p->paused ? monotonic_ns() - p->monotonic : 0);
}
