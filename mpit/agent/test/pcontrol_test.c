/* pcontrol_test.c - MPI_Pcontrol: what is counted while switched off is subtracted. */
#include "fake_source.h"
#include "gate.h"
#include "last.h"
#include "pcontrol.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- MPI_Pcontrol ---- */

static const struct handle *first_handle(const struct object *o)
{
	CHECK(o->count == 1);
	return &o->handles[0];
}

void test_what_is_counted_while_switched_off_is_subtracted(void)
{
	uint64_t layout;

	fake_reset();
	variable("calls", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 2)->value[0][0].i = 10;
	variable("time", TIMER, TYPE_DOUBLE, 8, BIND_NONE, 1);
	open_session("", 10);
	pcontrol_called(&session, 0);
	fake_variables[0].value[0][0].i = 15;
	CHECK(sample_with(NULL) && session.values[0] == 10 && session.values[1] == 0);
	CHECK(session.sampled_realtime == session.pcontrol.realtime);
	pcontrol_called(&session, 0); /* again: nothing new */
	layout = session.layout_generation;
	fake_variables[0].value[0][0].i = 17;
	pcontrol_called(&session, 1);
	CHECK(session.layout_generation > layout);
	CHECK(sample_with(NULL) && session.values[0] == 17);
	CHECK(session.unbound.handles[0].excluded[0] == 7 && session.unbound.handles[0].excluded[1] == 0);
	CHECK(session.unbound.handles[1].excluded == NULL && session.unbound.handles[0].frozen == NULL);
	pcontrol_called(&session, 1); /* without 0: nothing */

	/* A second time it adds up; a double is one. */
	fake_variables[0].value[0][0].i = 20;
	pcontrol_called(&session, 0);
	fake_variables[0].value[0][0].i = 22;
	fake_variables[0].value[0][1].i = 1;
	fake_variables[1].value[0][0].i = 3; /* the bits of a double: what the fake subtracts is nothing */
	pcontrol_called(&session, 1);
	CHECK(session.unbound.handles[0].excluded[0] == 9 && session.unbound.handles[0].excluded[1] == 1);
	CHECK(session.unbound.handles[1].excluded[0] == 3);
	CHECK(session.pcontrol.calls == 6 && session.pcontrol.level == 1);
	session_drop(&session);
}

void test_an_object_that_goes_while_switched_off_ends_where_it_was(void)
{
	struct object *before, *meanwhile;

	fake_reset();
	variable("calls", COUNTER, TYPE_UNSIGNED, 4, BIND_COMM, 1);
	open_session("", 10);
	before = make(BIND_COMM, 1);
	object_named(&session, before, "before");
	fake_variables[0].value[1][0].i = 4;
	fake_variables[0].value[2][0].i = 100;
	pcontrol_called(&session, 0);
	fake_variables[0].value[1][0].i = 9;
	meanwhile = make(BIND_COMM, 2);
	object_named(&session, meanwhile, "meanwhile");
	fake_variables[0].value[2][0].i = 130;
	CHECK(sample_with(NULL) && session.values[0] == 4 && session.values[1] == 100);
	object_freed(&session, before);
	object_freed(&session, meanwhile);
	CHECK(remain_of("before", 0)->gained[0] == 4 && remain_of("before", 0)->max[0] == 4);
	CHECK(remain_of("meanwhile", 0)->gained[0] == 0 && fake_open_handles == 0);

	/* One that lives on counts what it has from then on. */
	meanwhile = make(BIND_COMM, 2);
	object_named(&session, meanwhile, "lives");
	fake_variables[0].value[2][0].i = 150;
	pcontrol_called(&session, 1);
	fake_variables[0].value[2][0].i = 151;
	CHECK(first_handle(meanwhile)->excluded[0] == 20);
	object_freed(&session, meanwhile);
	CHECK(remain_of("lives", 0)->gained[0] == 1);
	session_drop(&session);
}

void test_a_rename_while_switched_off(void)
{
	struct object *o;

	fake_reset();
	variable("calls", COUNTER, TYPE_UNSIGNED_LONG, 8, BIND_COMM, 1)->value[1][0].i = 3; /* first */
	open_session("", 10);
	o = make(BIND_COMM, 1);
	object_named(&session, o, "old");
	fake_variables[0].value[1][0].i = 10;
	pcontrol_called(&session, 0);
	fake_variables[0].value[1][0].i = 30;
	pcontrol_called(&session, 1);
	fake_variables[0].value[1][0].i = 31; /* old: 3 to 10 and 1 */
	pcontrol_called(&session, 0);
	fake_variables[0].value[1][0].i = 50;
	object_named(&session, o, "new");
	CHECK(remain_of("old", 0)->gained[0] == 8);
	CHECK(first_handle(o)->origin[0] == 31 && first_handle(o)->excluded == NULL);
	fake_variables[0].value[1][0].i = 60;
	pcontrol_called(&session, 1);
	CHECK(first_handle(o)->excluded[0] == 29);
	fake_variables[0].value[1][0].i = 65; /* new: 5 */
	object_freed(&session, o);
	CHECK(remain_of("new", 0)->gained[0] == 5 && remain_of("new", 0)->first[0] == 0);

	/* One that fell to zero meanwhile looks as if it hadn't begun, and has something to forget all the same. */
	fake_variables[0].value[2][0].i = 0;
	o = make(BIND_COMM, 2);
	fake_variables[0].value[2][0].i = 5;
	pcontrol_called(&session, 0);
	fake_variables[0].value[2][0].i = 0;
	pcontrol_called(&session, 1);
	CHECK((int64_t)first_handle(o)->excluded[0] == -5);
	object_named(&session, o, "fallen");
	CHECK(first_handle(o)->excluded == NULL && first_handle(o)->origin[0] == 0);
	session_drop(&session);
}

void test_what_cannot_be_read_is_not_subtracted(void)
{
	fake_reset();
	variable("calls", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1)->value[0][0].i = 1;
	open_session("", 10);
	fake_variables[0].read_code = CODE_INVALID;
	pcontrol_called(&session, 0);
	fake_variables[0].read_code = CODE_SUCCESS;
	CHECK(sample_with(NULL) && session.values[0] == 0 && session.unbound.handles[0].code == CODE_INVALID &&
	      session.read_errors == 1);
	pcontrol_called(&session, 1);
	CHECK(session.unbound.handles[0].excluded == NULL);
	CHECK(sample_with(NULL) && session.values[0] == 1);
	session_drop(&session);
}

/* A phase may begin many times, and goes on until the next one. The last place is that of all without one. */
void test_time_of_phases(void)
{
	struct source_thread *now = &fake_calls.threads[0];
	struct phases phases = { .count = 0 }, told;

	fake_source_reset();
	phases_begin(&phases, NULL, 3);
	CHECK(phases.count == 0);
	now->observed_ns = 100;
	phases_begin(&phases, &fake_source, 3);
	now->observed_ns = 110, now->activity_ns[WAITING] = 4;
	phases_begin(&phases, &fake_source, 7);
	now->observed_ns = 130, now->activity_ns[IN_FILE] = 1;
	phases_begin(&phases, &fake_source, 3);
	now->observed_ns = 131;
	phases_told(&phases, now, &told);
	CHECK(told.count == 2 && told.list[0].level == 3 && told.list[0].observed_ns == 11 &&
	      told.list[0].activity_ns[WAITING] == 4 && told.list[0].activity_ns[IN_FILE] == 0);
	CHECK(told.list[1].level == 7 && told.list[1].observed_ns == 20 && told.list[1].activity_ns[IN_FILE] == 1);
	for (int level = 10; level < 10 + 2 * PHASES; level++)
		phases_begin(&phases, &fake_source, level);
	now->observed_ns = 141;
	phases_told(&phases, now, &told);
	CHECK(told.count == PHASES && told.list[PHASES - 1].level == OTHER_PHASES &&
	      told.list[PHASES - 1].observed_ns == 10 && told.list[0].observed_ns == 11);
}

void test_levels_and_pauses_are_told(void)
{
	int listening, fd, final;

	fake_reset();
	variable("calls", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1)->value[0][0].i = 99;
	open_session("", 10);
	fd = open_conversation(&listening);
	request(fd, REQUEST_SAMPLE, 1, (const uint64_t[4]){ 0 }, 4);
	CHECK(sample_statistic(fd, 1, SAMPLE_FRESH, STATISTIC_CALLS) == 0);
	CHECK(gate_enter());
	pcontrol_called(&session, 2);
	pcontrol_called(&session, 0);
	fake_variables[0].value[0][0].i = 1000;
	gate_leave();
	request(fd, REQUEST_SAMPLE, 2, (const uint64_t[4]){ 0 }, 4);
	CHECK(sample_statistic(fd, 2, SAMPLE_PAUSED, STATISTIC_PAUSED_NS) > 0);
	CHECK(gate_enter());
	pcontrol_called(&session, -5);
	gate_leave();
	request(fd, REQUEST_SAMPLE, 3, (const uint64_t[4]){ 0 }, 4);
	CHECK((int64_t)sample_statistic(fd, 3, SAMPLE_PAUSED, STATISTIC_LEVEL) == -5);
	request(fd, REQUEST_SAMPLE, 4, (const uint64_t[4]){ 0 }, 4);
	CHECK(sample_statistic(fd, 4, SAMPLE_PAUSED, STATISTIC_CALLS) == 3);

	/* The last sample, switched off, has the frozen values. */
	CHECK(gate_enter());
	CHECK(session_sample(&session, NULL));
	agent_move(AGENT_RUNNING, AGENT_FINAL);
	last_send(&link_of_rank.paths, &identity, &session, END_EXIT);
	link_stop();
	gate_leave();
	final = accept(listening, NULL, NULL);
	expect_hello(final, CONNECTION_FINAL);
	CHECK(expect_sample(final, 0, SAMPLE_FINAL, 2) == 99);
	close(final);
	close(fd);
	CHECK(agent_move(AGENT_FINAL, AGENT_IDLE));
	end_conversation(listening);
}
