/*
 * session_test.c - the session and its variables: which are denied, opened, started and found later, what is read of
 * them, and how a sample gives way.
 */
#include "deny.h"
#include "test.h"

static bool always(void)
{
	return true;
}

/* ---- deny, open ---- */

void test_deny_list(void)
{
	char list[DENY_BYTES];

	deny_list(NULL, list);
	CHECK(deny_matches(list, "mtl_psm2_rx_bytes"));
	CHECK(deny_matches(list, "osc_rdma_put_retry_count"));
	CHECK(deny_matches(list, "pml_monitoring_flush"));
	CHECK(!deny_matches(list, "pml_monitoring_messages_count"));
	deny_list("+coll_*", list);
	CHECK(deny_matches(list, "coll_x") && deny_matches(list, "mtl_psm2_x"));
	deny_list("coll_*", list);
	CHECK(deny_matches(list, "coll_x") && !deny_matches(list, "mtl_psm2_x"));
	deny_list("", list);
	CHECK(!deny_matches(list, "mtl_psm2_x"));
	deny_list(",,a?,", list);
	CHECK(deny_matches(list, "ab") && !deny_matches(list, "abc") && !deny_matches(list, ""));
}

void test_open_list(void)
{
	char list[DENY_BYTES];

	open_list(NULL, NULL, NULL, list);
	CHECK(!deny_matches(list, "coll_monitoring_a2a_count"));
	open_list(NULL, "0", "", list);
	CHECK(!deny_matches(list, "coll_monitoring_a2a_count"));
	open_list(NULL, "2", NULL, list); /* who has switched Open MPI's monitoring on */
	CHECK(deny_matches(list, "coll_monitoring_a2a_count") && !deny_matches(list, "runtime_spc_OMPI_SPC_SEND"));
	open_list("+mpit_event*", "2", "OMPI_SPC_SEND", list);
	CHECK(deny_matches(list, "mpit_event_made") && deny_matches(list, "coll_monitoring_a2a_count"));
	CHECK(deny_matches(list, "runtime_spc_OMPI_SPC_SEND") && !deny_matches(list, "runtime_spc_OMPI_SPC_RECV"));
	open_list("*", NULL, NULL, list);
	CHECK(deny_matches(list, "runtime_spc_OMPI_SPC_SEND"));
	open_list("", "2", "all", list);
	CHECK(!deny_matches(list, "coll_monitoring_a2a_count") && !deny_matches(list, "runtime_spc_OMPI_SPC_SEND"));
	open_list(NULL, NULL, "all", list);
	CHECK(deny_matches(list, "runtime_spc_OMPI_SPC_SEND") && !deny_matches(list, "coll_monitoring_a2a_count"));
	open_list(NULL, "2", "OMPI_SPC_ISEND,,a,OMPI_SPC_SEND", list);
	CHECK(deny_matches(list, "runtime_spc_OMPI_SPC_SEND") && deny_matches(list, "runtime_spc_OMPI_SPC_ISEND"));
	CHECK(deny_matches(list, "coll_monitoring_a2a_count") && !deny_matches(list, "runtime_spc_OMPI_SPC_RECV"));
}

/* ---- variables ---- */

void test_values_are_widened(void)
{
	fake_reset();
	variable("int", LEVEL, TYPE_INT, 4, BIND_NONE, 2)->value[0][0].i = (uint32_t)-5;
	fake_variables[0].value[0][1].i = 7;
	variable("unsigned", LEVEL, TYPE_UNSIGNED, 4, BIND_NONE, 1)->value[0][0].i = 4294967291;
	variable("double", LEVEL, TYPE_DOUBLE, 8, BIND_NONE, 1)->value[0][0].d = -0.5;
	variable("count", LEVEL, TYPE_COUNT, 8, BIND_NONE, 1)->value[0][0].i = -1;
	open_session("", 10);
	CHECK(sample_with(NULL));
	CHECK(session.value_count == 5);
	CHECK((int64_t)session.values[0] == -5 && session.values[1] == 7);
	CHECK(session.values[2] == 4294967291u);
	CHECK(as_double(session.values[3]) == -0.5);
	CHECK((int64_t)session.values[4] == -1);
	session_drop(&session);
	CHECK(fake_open_handles == 0);
}

void test_what_cannot_be_opened_is_said(void)
{
	fake_reset();
	variable("denied_x", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1);
	variable("no_handle", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1)->alloc_code = CODE_OUT_OF_HANDLES;
	variable("no_start", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1)->start_code = CODE_INVALID_HANDLE;
	variable("no_read", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1)->read_code = CODE_INVALID;
	variable("string", 9, TYPE_CHAR, 1, BIND_NONE, 80);
	variable("no_startstop", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1)->start_code = CODE_PVAR_NO_STARTSTOP;
	variable("gone", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1)->dead = true;
	open_session("denied_*", 10);
	CHECK(session.catalogue.count == 6);
	CHECK(session.catalogue.variables[0]->state == VARIABLE_DENIED);
	CHECK(session.catalogue.variables[1]->state == VARIABLE_ALLOC_FAILED);
	CHECK(session.catalogue.variables[1]->code == CODE_OUT_OF_HANDLES);
	CHECK(session.catalogue.variables[2]->state == VARIABLE_START_FAILED);
	CHECK(session.catalogue.variables[3]->state == VARIABLE_READ_FAILED);
	CHECK(session.catalogue.variables[4]->state == VARIABLE_BAD_DATATYPE);
	CHECK(session.catalogue.variables[5]->state == VARIABLE_OPEN);
	CHECK(fake_open_handles == 1);
	session_drop(&session);
}

void test_continuous_variables_are_never_started(void)
{
	fake_reset();
	variable("continuous", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1)->continuous = true;
	open_session("", 10);
	CHECK(fake_started == 0);
	session_drop(&session);
}

static const uint64_t everything = ~UINT64_C(0);

void test_what_costs_something_is_opened_on_request(void)
{
	uint64_t before;

	fake_reset();
	variable("cheap", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1);
	variable("costly_sends", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1)->value[0][0].i = 40;
	variable("costly_bytes", COUNTER, TYPE_UNSIGNED, 4, BIND_COMM, 1);
	variable("costly_and_freed_early", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1)->continuous = true;
	open_session("", 10);
	make(BIND_COMM, 1);
	CHECK(sample_with(NULL) && session.value_count == 1 && fake_started == 1);
	CHECK(session.catalogue.variables[3]->state == VARIABLE_DENIED && !session.catalogue.variables[3]->on_request);
	CHECK(session.catalogue.variables[0]->state == VARIABLE_OPEN && !session.catalogue.variables[0]->on_request);
	CHECK(session.catalogue.variables[1]->state == VARIABLE_ON_REQUEST && session.catalogue.variables[1]->on_request);
	CHECK(session.catalogue.variables[2]->state == VARIABLE_ON_REQUEST);

	before = session.catalogue.generation;
	session_request(&session, &(uint64_t){ 2 }, 1);
	CHECK(fake_started == 1); /* the next sample does it, or in a passive rank the program's next call */
	CHECK(sample_with(NULL) && session.value_count == 2 && session.values[1] == 40);
	CHECK(fake_started == 2 && session.catalogue.variables[1]->state == VARIABLE_OPEN);
	CHECK(session.catalogue.variables[1]->generation > before);
	CHECK(session.unbound.handles[1].first[0] == 40);

	/* On all objects, and on those that come. */
	session_request(&session, &everything, 1);
	make(BIND_COMM, 2);
	CHECK(sample_with(NULL) && session.value_count == 4 && fake_started == 4);
	make(BIND_COMM, 3);
	CHECK(sample_with(NULL) && session.value_count == 5);

	/* Again: nothing changes. */
	session_request(&session, &everything, 1);
	CHECK(sample_with(NULL) && session.value_count == 5 && fake_started == 5 && fake_stopped == 0);
	session_drop(&session);
	CHECK(fake_open_handles == 0);
}

void test_what_is_requested_from_the_beginning(void)
{
	fake_reset();
	variable("costly_sends", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1);
	variable("costly_receives", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1);
	CHECK(session_open(&session, &fake_abi, "", "*_sends", 10));
	variable("costly_late_sends", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1);
	CHECK(sample_with(NULL) && session.value_count == 2);
	CHECK(session.catalogue.variables[0]->state == VARIABLE_OPEN && session.catalogue.variables[0]->on_request);
	CHECK(session.catalogue.variables[1]->state == VARIABLE_ON_REQUEST);
	CHECK(session.catalogue.variables[2]->state == VARIABLE_OPEN);
	session_drop(&session);
}

void test_a_request_is_held_to_what_may_be_opened(void)
{
	fake_reset();
	variable("costly_denied", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1);
	variable("costly_word", COUNTER, TYPE_CHAR, 1, BIND_NONE, 1);
	variable("costly_refused", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1)->alloc_code = CODE_OUT_OF_HANDLES;
	variable("costly_sends", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1);
	open_session("*_denied", 10);
	session_request(&session, &everything, 0);
	CHECK(sample_with(NULL) && session.value_count == 0 && !session.requested);
	session_request(&session, (const uint64_t[]){ ~UINT64_C(0), ~UINT64_C(0) }, 2); /* beyond the catalogue */
	CHECK(!session_discover(&session, always) && fake_started == 0); /* it gives way, and is not forgotten */
	CHECK(sample_with(NULL) && session.value_count == 1 && fake_started == 1);
	CHECK(session.catalogue.variables[0]->state == VARIABLE_DENIED);
	CHECK(session.catalogue.variables[1]->state == VARIABLE_BAD_DATATYPE);
	CHECK(session.catalogue.variables[2]->state == VARIABLE_ALLOC_FAILED);
	CHECK(session.catalogue.variables[2]->code == CODE_OUT_OF_HANDLES);
	session_drop(&session);
}

void test_variables_appear_later_and_come_to_life(void)
{
	fake_reset();
	variable("first", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1);
	variable("asleep", COUNTER, TYPE_UNSIGNED, 4, BIND_COMM, 1)->dead = true;
	open_session("", 10);
	CHECK(session.catalogue.count == 1);
	make(BIND_COMM, 1);
	variable("second", COUNTER, TYPE_UNSIGNED, 4, BIND_COMM, 1)->value[1][0].i = 3;
	CHECK(sample_with(NULL));
	CHECK(session.catalogue.count == 2 && session.value_count == 2 && session.values[1] == 3);
	fake_variables[1].dead = false;
	CHECK(sample_with(NULL));
	CHECK(session.catalogue.count == 2); /* nobody has asked to look again */
	make(BIND_WIN, 2);
	CHECK(sample_with(NULL));
	CHECK(session.catalogue.count == 3 && session.value_count == 3);
	session_drop(&session);
}

void test_a_sample_gives_way(void)
{
	fake_reset();
	variable("a", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1);
	open_session("", 10);
	variable("later", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1);
	CHECK(!sample_with(always));
	CHECK(sample_with(NULL));
	CHECK(session.value_count == 2); /* what the first attempt left is found, and once only */
	CHECK(sample_with(NULL));
	CHECK(session.catalogue.count == 2 && fake_open_handles == 2);
	session_drop(&session);
}

void test_what_comes_to_life_is_not_forgotten_when_a_sample_gives_way(void)
{
	fake_reset();
	variable("asleep", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1)->dead = true;
	open_session("", 10);
	fake_variables[0].dead = false;
	make(BIND_WIN, 1);
	CHECK(!sample_with(always));
	CHECK(sample_with(NULL));
	CHECK(session.catalogue.count == 1 && session.value_count == 1);
	session_drop(&session);
}

void test_a_watermark_of_zero_remains(void)
{
	fake_reset();
	variable("low", LOWWATERMARK, TYPE_UNSIGNED, 4, BIND_COMM, 1)->value[1][0].i = 3;
	open_session("", 10);
	object_freed(&session, make(BIND_COMM, 1));
	fake_variables[0].value[1][0].i = 0;
	object_freed(&session, make(BIND_COMM, 1));
	CHECK(remain_of("", 0)->contributions == 2 && remain_of("", 0)->min[0] == 0 && remain_of("", 0)->max[0] == 3);
	session_drop(&session);
}

void test_a_counter_of_zero_remains_and_a_level_does_not(void)
{
	fake_reset();
	variable("calls", COUNTER, TYPE_UNSIGNED, 4, BIND_COMM, 1);
	variable("length", LEVEL, TYPE_UNSIGNED, 4, BIND_COMM, 1);
	open_session("", 10);
	object_freed(&session, make(BIND_COMM, 1));
	CHECK(remain_of("", 0) != NULL && remain_of("", 1) == NULL);
	session_drop(&session);
}

void test_a_failed_read_is_zero_and_counted(void)
{
	fake_reset();
	variable("a", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1)->value[0][0].i = 9;
	open_session("", 10);
	fake_variables[0].read_code = CODE_INVALID;
	CHECK(sample_with(NULL));
	CHECK(session.values[0] == 0 && session.unbound.handles[0].code == CODE_INVALID && session.read_errors == 1);
	session_drop(&session);
}

void test_selection(void)
{
	const uint64_t second_only = 2;

	fake_reset();
	variable("a", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1)->value[0][0].i = 1;
	variable("b", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1)->value[0][0].i = 2;
	open_session("", 10);
	session_select(&session, false, &second_only, 1);
	CHECK(sample_with(NULL) && session.value_count == 1 && session.values[0] == 2);
	variable("c", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1);
	CHECK(sample_with(NULL) && session.value_count == 1); /* inside the map's word: not selected */
	session_select(&session, true, NULL, 0);
	CHECK(sample_with(NULL) && session.value_count == 3);
	session_drop(&session);
}
