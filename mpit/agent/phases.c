/* phases.c - the time of the program's phases. */
#include "phases.h"

static void add(const struct phases *p, const struct source_thread *now, struct phase *to)
{
	to->observed_ns += now->observed_ns - p->begun.observed_ns;
	for (size_t i = 0; i < ACTIVITIES; i++)
		to->activity_ns[i] += now->activity_ns[i] - p->begun.activity_ns[i];
}

static size_t place_of(struct phases *p, int level)
{
	size_t at = 0;

	while (at < p->count && p->list[at].level != level)
		at++;
	if (at == p->count && at < PHASES)
		p->list[p->count++].level = at == PHASES - 1 ? OTHER_PHASES : level;
	return at < PHASES ? at : PHASES - 1;
}

void phases_begin(struct phases *p, const struct source *source, int level)
{
	struct source_calls calls;
	const struct source_thread *now = &calls.threads[0];

	if (source == NULL || !source->calls(&calls))
		return;
	if (p->count > 0)
		add(p, now, &p->list[p->now]);
	p->now = place_of(p, level);
	p->begun.observed_ns = now->observed_ns;
	for (size_t i = 0; i < ACTIVITIES; i++)
		p->begun.activity_ns[i] = now->activity_ns[i];
}

void phases_told(const struct phases *p, const struct source_thread *now, struct phases *out)
{
	*out = *p;
	if (p->count > 0)
		add(p, now, &out->list[p->now]);
}
