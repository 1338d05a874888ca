/* events_test.c - events as variables: when they are opened, what is counted, and when a registration's memory is used again. */
#include "events/events.h"
#include "test.h"

#include <string.h>

void test_events_are_variables(void)
{
	const struct catalogue *c = &session.catalogue;
	char about[256];

	fake_reset();
	variable("sends", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1);
	fake_event_types = 3;
	CHECK(session_open(&session, &fake_abi, "", "", 10));
	CHECK(c->count == 4); /* the third type can't be described */
	CHECK(strcmp(c->variables[1]->name, EVENTS_DROPPED) == 0 && c->variables[1]->index == EVENT_INDEX);
	CHECK(strcmp(c->variables[2]->name, "mpit_event_begin") == 0 && c->variables[2]->is.bind == BIND_NONE);
	CHECK(strcmp(c->variables[3]->name, "mpit_event_made") == 0 && c->variables[3]->is.bind == BIND_COMM);
	CHECK(strcmp(c->variables[3]->description, "what made is") == 0 && c->variables[3]->is.verbosity == 2);
	make(BIND_COMM, 1);
	CHECK(sample_with(NULL) && session.value_count == 1 && fake_open_handles == 1); /* none is opened unasked */
	for (size_t i = 1; i < 4; i++)
		CHECK(c->variables[i]->state == VARIABLE_ON_REQUEST && c->variables[i]->is.mpi_class == COUNTER);
	CHECK(catalogue_index(c, "mpit_event_made", COUNTER) == EVENT_INDEX + 2);
	CHECK(catalogue_index(c, "sends", COUNTER) == -1); /* the library knows that one */
	events_about(&fake_abi, about, sizeof about);
	CHECK(strcmp(about, "MPI_T's events, counted (MPI-4.1 section 15.3.8); sources: source 0 (where it comes from; "
			    "ordered, 1000 ticks a second), source 1 (where it comes from; unordered, 1000 ticks a second)") == 0);
	session_drop(&session);
}

void test_events_are_counted(void)
{
	fake_reset();
	fake_event_types = 2;
	CHECK(session_open(&session, &fake_abi, "", "mpit_event*", 10));
	make(BIND_COMM, 1);
	make(BIND_COMM, 2);
	fake_raise(0, 0);
	fake_raise(1, 1);
	fake_raise(1, 1);
	fake_raise(1, 2);
	atomic_fetch_add(&events_dropped, 5);
	CHECK(sample_with(NULL) && session.value_count == 4);
	CHECK(session.values[0] == 5 && session.values[1] == 1 && session.values[2] == 2 && session.values[3] == 1);
	session_drop(&session);
	CHECK(fake_open_handles == 0);
}

/* A callback may still run when the registration is freed: its memory is left alone until the library says so. */
void test_a_registration_in_use_is_kept(void)
{
	struct object *a, *b;
	const void *first;

	fake_reset();
	fake_event_types = 2;
	CHECK(session_open(&session, &fake_abi, "", "mpit_event_made", 10));
	a = make(BIND_COMM, 1);
	first = a->handles[0].mpi;
	fake_raises = true;
	object_freed(&session, a);
	fake_raise(1, 1);
	b = make(BIND_COMM, 2);
	CHECK(b->handles[0].mpi != first);
	fake_let_go();
	CHECK(make(BIND_COMM, 3)->handles[0].mpi == first);
	CHECK(sample_with(NULL) && session.value_count == 2 && session.values[0] == 0 && session.values[1] == 0);
	session_drop(&session);
	CHECK(fake_open_handles == 0);
}
