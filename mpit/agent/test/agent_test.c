/*
 * agent_test.c - the agent without MPI: every part but the interposed functions, against a library
 * that the test scripts. Run under the sanitizers and under valgrind by `make -C mpit/agent test`.
 */
#define _GNU_SOURCE
#include "agent.h"
#include "deny.h"
#include "fake_abi.h"
#include "gate.h"
#include "last.h"
#include "link.h"
#include "pcontrol.h"
#include "tools.h"
#include "wake.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

const struct abi *const abi_list[] = { NULL };

#define CHECK(condition)                                                               \
	do {                                                                           \
		if (!(condition)) {                                                    \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                       \
		}                                                                      \
	} while (0)

enum { STATE = 0, LEVEL = 1, LOWWATERMARK = 5, COUNTER = 6, TIMER = 8, GENERIC = 9 };

static struct session session; /* 10 KiB of selection: not for a stack */

static struct fake_variable *variable(const char *name, int mpi_class, int datatype, int bytes, int bind, int count)
{
	struct fake_variable *v = &fake_variables[fake_count++];

	*v = (struct fake_variable){
		.name = name,
		.mpi_class = mpi_class,
		.datatype = datatype,
		.bytes = bytes,
		.bind = bind,
		.count = count,
	};
	return v;
}

static void open_session(const char *deny, size_t most_objects)
{
	CHECK(session_open(&session, &fake_abi, deny, most_objects));
}

/* As the agent's thread does it. */
static bool sample_with(bool (*stop)(void))
{
	return session_discover(&session, stop) && session_sample(&session, stop);
}

static struct object *make(int kind, int handle)
{
	return session_object_made(&session, kind, &(union mpi_object){ .integer = handle }, 0, NULL, 0);
}

static double as_double(uint64_t word)
{
	double d;

	memcpy(&d, &word, sizeof d);
	return d;
}

static const struct remain *remain_of(const char *name, uint32_t number)
{
	for (size_t i = 0; i < REMAINS_BUCKETS; i++)
		for (const struct remains_name *n = session.remains.buckets[i]; n != NULL; n = n->next)
			for (const struct remain *m = n->list; strcmp(n->name, name) == 0 && m != NULL; m = m->next)
				if (m->variable->number == number)
					return m;
	return NULL;
}

/* ---- wire ---- */

static void test_a_string_is_padded_with_zeros(void)
{
	struct wire w = { 0 };
	uint64_t word;

	wire_begin(&w, FRAME_ERROR, 7);
	wire_word(&w, ~(uint64_t)0);
	wire_word(&w, ~(uint64_t)0); /* what a longer message left in the buffer must not go out */
	wire_reset(&w);
	wire_begin(&w, FRAME_ERROR, 7);
	wire_string(&w, "abc");
	wire_end(&w);
	CHECK(w.length == WIRE_HEADER_BYTES + 16 && wire_frame_words(&w) == 2);
	memcpy(&word, w.bytes + WIRE_HEADER_BYTES + 8, sizeof word);
	CHECK(word == 0x636261);
	wire_free(&w);
}

static void test_a_frame_over_the_bound_is_never_sent(void)
{
	static uint64_t words[WIRE_PAYLOAD_WORDS_MAX + 1];
	struct wire w = { 0 };

	wire_begin(&w, FRAME_SAMPLE, 1);
	wire_words(&w, words, WIRE_PAYLOAD_WORDS_MAX);
	wire_end(&w);
	CHECK(!w.failed);
	wire_reset(&w);
	wire_begin(&w, FRAME_SAMPLE, 1);
	wire_words(&w, words, WIRE_PAYLOAD_WORDS_MAX + 1);
	wire_end(&w);
	CHECK(w.failed);
	wire_free(&w);
}

/* ---- deny ---- */

static void test_deny_list(void)
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

/* ---- variables ---- */

static void test_values_are_widened(void)
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

static void test_what_cannot_be_opened_is_said(void)
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

static void test_continuous_variables_are_never_started(void)
{
	fake_reset();
	variable("continuous", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1)->continuous = true;
	open_session("", 10);
	CHECK(fake_started == 0);
	session_drop(&session);
}

static void test_variables_appear_later_and_come_to_life(void)
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

static bool always(void)
{
	return true;
}

static void test_a_sample_gives_way(void)
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

static void test_what_comes_to_life_is_not_forgotten_when_a_sample_gives_way(void)
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

static void test_a_watermark_of_zero_remains(void)
{
	fake_reset();
	variable("low", LOWWATERMARK, TYPE_UNSIGNED, 4, BIND_COMM, 1)->value[1][0].i = 3;
	open_session("", 10);
	session_object_freed(&session, make(BIND_COMM, 1));
	fake_variables[0].value[1][0].i = 0;
	session_object_freed(&session, make(BIND_COMM, 1));
	CHECK(remain_of("", 0)->contributions == 2 && remain_of("", 0)->min[0] == 0 && remain_of("", 0)->max[0] == 3);
	session_drop(&session);
}

static void test_a_counter_of_zero_remains_and_a_level_does_not(void)
{
	fake_reset();
	variable("calls", COUNTER, TYPE_UNSIGNED, 4, BIND_COMM, 1);
	variable("length", LEVEL, TYPE_UNSIGNED, 4, BIND_COMM, 1);
	open_session("", 10);
	session_object_freed(&session, make(BIND_COMM, 1));
	CHECK(remain_of("", 0) != NULL && remain_of("", 1) == NULL);
	session_drop(&session);
}

static void test_a_failed_read_is_zero_and_counted(void)
{
	fake_reset();
	variable("a", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1)->value[0][0].i = 9;
	open_session("", 10);
	fake_variables[0].read_code = CODE_INVALID;
	CHECK(sample_with(NULL));
	CHECK(session.values[0] == 0 && session.unbound.handles[0].code == CODE_INVALID && session.read_errors == 1);
	session_drop(&session);
}

static void test_selection(void)
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

/* ---- objects and what remains of them ---- */

static void test_a_freed_object_leaves_what_it_counted(void)
{
	struct object *o;

	fake_reset();
	variable("calls", COUNTER, TYPE_UNSIGNED, 4, BIND_COMM, 2);
	open_session("", 10);
	for (int i = 1; i <= 3; i++) {
		o = make(BIND_COMM, 1);
		fake_variables[0].value[1][0].i = i;
		fake_variables[0].value[1][1].i = 10;
		session_object_freed(&session, o);
		fake_variables[0].value[1][0].i = fake_variables[0].value[1][1].i = 0;
	}
	CHECK(session.objects == 0 && fake_open_handles == 0 && session.remains.count == 1);
	CHECK(remain_of("", 0)->contributions == 3);
	CHECK(remain_of("", 0)->gained[0] == 6 && remain_of("", 0)->gained[1] == 30);
	CHECK(remain_of("", 0)->max[0] == 3 && remain_of("", 0)->min[0] == 1);
	session_drop(&session);
}

static void test_a_source_that_starts_anywhere(void)
{
	struct object *o;

	fake_reset();
	variable("time", TIMER, TYPE_DOUBLE, 8, BIND_COMM, 1)->value[1][0].d = -1.8e9;
	open_session("", 10);
	o = make(BIND_COMM, 1);
	fake_variables[0].value[1][0].d = -1.8e9 + 2.5;
	session_object_freed(&session, o);
	CHECK(as_double(remain_of("", 0)->gained[0]) == 2.5);
	CHECK(as_double(remain_of("", 0)->first[0]) == -1.8e9);
	session_drop(&session);
}

static void test_a_rename_starts_a_new_contribution(void)
{
	struct object *o;

	fake_reset();
	variable("calls", COUNTER, TYPE_UNSIGNED_LONG, 8, BIND_COMM, 1);
	open_session("", 10);
	o = make(BIND_COMM, 1);
	session_object_named(&session, o, "born"); /* nothing counted yet: nothing to remember */
	CHECK(session.remains.count == 0 && o->handles[0].origin == NULL);
	fake_variables[0].value[1][0].i = 5;
	session_object_named(&session, o, "halo");
	CHECK(remain_of("born", 0)->gained[0] == 5 && o->handles[0].origin[0] == 5);
	fake_variables[0].value[1][0].i = 12;
	session_object_named(&session, o, "halo"); /* the same name: no rename */
	session_object_freed(&session, o);
	CHECK(remain_of("halo", 0)->gained[0] == 7 && remain_of("halo", 0)->first[0] == 0);
	CHECK(remain_of("born", 0)->gained[0] == 5);
	session_drop(&session);
}

static void test_bounds(void)
{
	struct object *kept[3];

	fake_reset();
	variable("calls", COUNTER, TYPE_UNSIGNED, 4, BIND_COMM, 1)->value[1][0].i = 1;
	open_session("", 2);
	for (int i = 0; i < 3; i++)
		kept[i] = make(BIND_COMM, 1);
	CHECK(kept[1] != NULL && kept[2] == NULL && session.objects_over == 1);
	session_object_named(&session, kept[0], "a");
	session_object_freed(&session, kept[0]);
	session_object_freed(&session, kept[1]);
	kept[0] = make(BIND_COMM, 1);
	fake_variables[0].value[1][0].i = 2;
	session_object_named(&session, kept[0], "third");
	session_object_freed(&session, kept[0]); /* names "" and "a" are there: no room for a third */
	CHECK(session.remains.names == 2 && session.remains.lost == 1);
	session_drop(&session);

	fake_reset();
	variable("huge", COUNTER, TYPE_UNSIGNED, 4, BIND_COMM, MAX_VALUES / 2);
	open_session("", 10);
	for (int i = 0; i < 3; i++)
		kept[i] = make(BIND_COMM, 1);
	CHECK(session.handles_over > 0 && session.values_in_all <= MAX_VALUES);
	session_drop(&session);
	CHECK(fake_open_handles == 0);
}

/* ---- what tools write ---- */

static uint64_t as_word(double d)
{
	uint64_t word;

	memcpy(&word, &d, sizeof word);
	return word;
}

static bool fits(int datatype, int bytes, uint64_t word)
{
	unsigned char elements[16];

	return narrow(datatype, bytes, &word, 1, elements);
}

static void test_values_are_narrowed_or_refused(void)
{
	const uint64_t words[3] = { 1, (uint64_t)-2, 3 };
	const double tenth = 0.1;
	int32_t ints[3];
	float f;

	CHECK(narrow(TYPE_INT, 4, words, 3, ints) && ints[0] == 1 && ints[1] == -2 && ints[2] == 3);
	CHECK(fits(TYPE_INT, 4, INT32_MAX) && !fits(TYPE_INT, 4, (uint64_t)INT32_MAX + 1));
	CHECK(fits(TYPE_INT, 4, (uint64_t)(int64_t)INT32_MIN) && !fits(TYPE_INT, 4, (uint64_t)((int64_t)INT32_MIN - 1)));
	CHECK(fits(TYPE_UNSIGNED, 4, UINT32_MAX) && !fits(TYPE_UNSIGNED, 4, (uint64_t)UINT32_MAX + 1) && !fits(TYPE_UNSIGNED, 4, (uint64_t)-1));
	CHECK(fits(TYPE_INT64, 8, (uint64_t)-1) && fits(TYPE_UINT64, 8, (uint64_t)-1));
	CHECK(fits(TYPE_BOOL, 1, 1) && !fits(TYPE_BOOL, 1, 2));
	CHECK(narrow(TYPE_FLOAT, 4, &(uint64_t){ as_word(tenth) }, 1, &f) && f == 0.1f);
	CHECK(fits(TYPE_DOUBLE, 8, as_word(1e300)) && !fits(TYPE_FLOAT, 4, as_word(1e300)) && !fits(TYPE_FLOAT, 4, as_word(-1e300)));
	CHECK(fits(TYPE_FLOAT, 4, as_word(1e300 * 1e300))); /* infinity is one of its values */
}

/* ---- MPI_Pcontrol ---- */

static const struct handle *first_handle(const struct object *o)
{
	CHECK(o->count == 1);
	return &o->handles[0];
}

static void test_what_is_counted_while_switched_off_is_subtracted(void)
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
	CHECK(session.pcontrol.calls == 6 && session.pcontrol.level == 1 && session.pcontrol.keeps == 0);
	session_drop(&session);
}

static void test_an_object_that_goes_while_switched_off_ends_where_it_was(void)
{
	struct object *before, *meanwhile;

	fake_reset();
	variable("calls", COUNTER, TYPE_UNSIGNED, 4, BIND_COMM, 1);
	open_session("", 10);
	before = make(BIND_COMM, 1);
	session_object_named(&session, before, "before");
	fake_variables[0].value[1][0].i = 4;
	fake_variables[0].value[2][0].i = 100;
	pcontrol_called(&session, 0);
	fake_variables[0].value[1][0].i = 9;
	meanwhile = make(BIND_COMM, 2);
	session_object_named(&session, meanwhile, "meanwhile");
	fake_variables[0].value[2][0].i = 130;
	CHECK(sample_with(NULL) && session.values[0] == 4 && session.values[1] == 100);
	session_object_freed(&session, before);
	session_object_freed(&session, meanwhile);
	CHECK(remain_of("before", 0)->gained[0] == 4 && remain_of("before", 0)->max[0] == 4);
	CHECK(remain_of("meanwhile", 0)->gained[0] == 0 && fake_open_handles == 0);

	/* One that lives on counts what it has from then on. */
	meanwhile = make(BIND_COMM, 2);
	session_object_named(&session, meanwhile, "lives");
	fake_variables[0].value[2][0].i = 150;
	pcontrol_called(&session, 1);
	fake_variables[0].value[2][0].i = 151;
	CHECK(first_handle(meanwhile)->excluded[0] == 20);
	session_object_freed(&session, meanwhile);
	CHECK(remain_of("lives", 0)->gained[0] == 1);
	session_drop(&session);
}

static void test_a_rename_while_switched_off(void)
{
	struct object *o;

	fake_reset();
	variable("calls", COUNTER, TYPE_UNSIGNED_LONG, 8, BIND_COMM, 1)->value[1][0].i = 3; /* first */
	open_session("", 10);
	o = make(BIND_COMM, 1);
	session_object_named(&session, o, "old");
	fake_variables[0].value[1][0].i = 10;
	pcontrol_called(&session, 0);
	fake_variables[0].value[1][0].i = 30;
	pcontrol_called(&session, 1);
	fake_variables[0].value[1][0].i = 31; /* old: 3 to 10 and 1 */
	pcontrol_called(&session, 0);
	fake_variables[0].value[1][0].i = 50;
	session_object_named(&session, o, "new");
	CHECK(remain_of("old", 0)->gained[0] == 8);
	CHECK(first_handle(o)->origin[0] == 31 && first_handle(o)->excluded == NULL);
	fake_variables[0].value[1][0].i = 60;
	pcontrol_called(&session, 1);
	CHECK(first_handle(o)->excluded[0] == 29);
	fake_variables[0].value[1][0].i = 65; /* new: 5 */
	session_object_freed(&session, o);
	CHECK(remain_of("new", 0)->gained[0] == 5 && remain_of("new", 0)->first[0] == 0);

	/* One that fell to zero meanwhile looks as if it hadn't begun, and has something to forget all the same. */
	fake_variables[0].value[2][0].i = 0;
	o = make(BIND_COMM, 2);
	fake_variables[0].value[2][0].i = 5;
	pcontrol_called(&session, 0);
	fake_variables[0].value[2][0].i = 0;
	pcontrol_called(&session, 1);
	CHECK((int64_t)first_handle(o)->excluded[0] == -5);
	session_object_named(&session, o, "fallen");
	CHECK(first_handle(o)->excluded == NULL && first_handle(o)->origin[0] == 0);
	session_drop(&session);
}

static void test_what_cannot_be_read_is_not_subtracted(void)
{
	fake_reset();
	variable("calls", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1)->value[0][0].i = 1;
	open_session("", 10);
	fake_variables[0].read_code = CODE_INVALID;
	pcontrol_called(&session, 0);
	fake_variables[0].read_code = CODE_SUCCESS;
	CHECK(sample_with(NULL) && session.values[0] == 0 && session.unbound.handles[0].code == CODE_INVALID && session.read_errors == 1);
	pcontrol_called(&session, 1);
	CHECK(session.unbound.handles[0].excluded == NULL);
	CHECK(sample_with(NULL) && session.values[0] == 1);
	session_drop(&session);
}

/* ---- objects found by their handle ---- */

static union mpi_object handle(int number)
{
	return (union mpi_object){ .integer = number };
}

static void handle_made(int kind, int number)
{
	union mpi_object mpi = handle(number);

	session_handle_made(&session, kind, &mpi, NULL, 0);
}

static void handle_freed(int kind, int number)
{
	union mpi_object mpi = handle(number);

	session_handle_freed(&session, kind, &mpi);
}

static struct object *find(int kind, int number)
{
	union mpi_object mpi = handle(number);

	return session_find(&session, kind, &mpi);
}

static void test_an_object_got_repeatedly_ends_with_its_last_reference(void)
{
	union mpi_object five = handle(5), six = handle(6);

	fake_reset();
	variable("members", LEVEL, TYPE_UNSIGNED, 4, BIND_GROUP, 1);
	open_session("", 10);
	handle_made(BIND_GROUP, 5);
	handle_made(BIND_GROUP, 5);
	session_handle_got(&session, BIND_GROUP, &five); /* by the library itself, inside another call */
	session_handle_got(&session, BIND_GROUP, &six);  /* the library's own: no object of the program's */
	CHECK(session.objects == 1 && fake_open_handles == 1);
	handle_freed(BIND_GROUP, 5);
	handle_freed(BIND_GROUP, 5);
	handle_freed(BIND_OP, 5);    /* the same number, another kind */
	handle_freed(BIND_GROUP, 6); /* never seen */
	CHECK(session.objects == 1 && find(BIND_GROUP, 5)->references == 1);
	handle_freed(BIND_GROUP, 5);
	CHECK(session.objects == 0 && find(BIND_GROUP, 5) == NULL && fake_open_handles == 0);
	session_drop(&session);
}

static void test_a_handle_that_is_used_again_is_another_object(void)
{
	uint32_t first;

	fake_reset();
	variable("depth", COUNTER, TYPE_UNSIGNED, 4, BIND_REQUEST, 1)->value[3][0].i = 4;
	open_session("", 10);
	handle_made(BIND_REQUEST, 3);
	first = find(BIND_REQUEST, 3)->number;
	handle_made(BIND_REQUEST, 3); /* its end has escaped us */
	CHECK(session.objects == 1 && find(BIND_REQUEST, 3)->number != first && fake_open_handles == 1);
	handle_freed(BIND_REQUEST, 3);
	CHECK(session.objects == 0 && fake_open_handles == 0 && remain_of("", 0)->contributions == 2);
	session_drop(&session);
}

/* What is bound to an object is read and closed while the object still is. */
static void test_a_bound_handle_is_closed_before_its_objects_end(void)
{
	fake_reset();
	variable("written", COUNTER, TYPE_UNSIGNED_LONG, 8, BIND_FILE, 1)->value[2][0].i = 1;
	open_session("", 10);
	handle_made(BIND_FILE, 2);
	CHECK(session.again); /* what lies dead may have come to life */
	fake_variables[0].value[2][0].i = 1001;
	handle_freed(BIND_FILE, 2);
	fake_dead_object = 2; /* the library has freed it: from here on it must not be touched */
	CHECK(fake_open_handles == 0 && remain_of("", 0)->gained[0] == 1000);
	CHECK(sample_with(NULL)); /* nothing is read of it any more */
	session_drop(&session);
}

static void test_thousands_of_objects_come_and_go(void)
{
	enum { HANDLES = 3000, ROUNDS = 60000 };
	static const int kinds[] = { BIND_GROUP, BIND_REQUEST, BIND_INFO, BIND_OP };
	static unsigned char held[4][HANDLES];
	unsigned seed = 20240607;
	size_t alive = 0, empty;

	fake_reset();
	variable("unbound", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1);
	open_session("", MAX_OBJECTS_LIMIT);
	empty = session.layout_words;
	memset(held, 0, sizeof held);
	for (int i = 0; i < ROUNDS; i++) {
		unsigned kind, number;

		seed = seed * 1664525u + 1013904223u;
		kind = seed >> 30;
		number = (seed >> 8) % HANDLES;
		if (held[kind][number]) {
			CHECK(find(kinds[kind], (int)number) != NULL);
			handle_freed(kinds[kind], (int)number);
			alive--;
		} else {
			CHECK(find(kinds[kind], (int)number) == NULL);
			handle_made(kinds[kind], (int)number);
			alive++;
		}
		held[kind][number] ^= 1;
		CHECK(session.objects == alive);
	}
	CHECK(alive > HANDLES); /* or the test tells little */
	for (int kind = 0; kind < 4; kind++)
		for (int number = 0; number < HANDLES; number++)
			if (held[kind][number])
				handle_freed(kinds[kind], number);
	CHECK(session.objects == 0 && session.unbound.after == NULL && session.last == &session.unbound);
	CHECK(session.layout_words == empty && session.objects_over == 0);
	session_drop(&session);
}

static void test_each_kind_has_a_bound_of_its_own(void)
{
	fake_reset();
	open_session("", 2);
	for (int i = 1; i <= 3; i++) {
		handle_made(BIND_GROUP, i);
		handle_made(BIND_INFO, i);
	}
	CHECK(session.objects == 4 && session.objects_over == 2);
	CHECK(make(BIND_COMM, 1) != NULL && make(BIND_COMM, 2) != NULL && make(BIND_COMM, 3) == NULL);
	handle_freed(BIND_GROUP, 3); /* over the bound: not known */
	handle_freed(BIND_GROUP, 1);
	handle_made(BIND_GROUP, 3);
	CHECK(session.alive[BIND_GROUP] == 2 && session.objects == 6 && session.objects_over == 3);
	fake_refuses = true;
	CHECK(make(BIND_DATATYPE, 1) == NULL);
	CHECK(session.objects_over == 3); /* nothing that anybody misses */
	session_drop(&session);
}

/* ---- details ---- */

static void test_details_are_bounded(void)
{
	static struct details d;
	struct detail_list list = { 0 };
	char key[16], text[DETAILS_BYTES + 1];

	for (int i = 0; i < DETAILS_MAX + 3; i++) {
		snprintf(key, sizeof key, "k%d", i);
		details_number(&d, key, -i);
	}
	CHECK(d.count == DETAILS_MAX && d.words == DETAILS_MAX * 5);
	details_reset(&d);
	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	details_add(&d, "k", text);
	CHECK(d.count == 0 && d.words == 0); /* a byte too many: left out whole */
	text[DETAILS_BYTES - 1] = '\0';
	details_add(&d, "k", text);
	details_add(&d, "more", "");
	CHECK(d.count == 1 && d.bytes == DETAILS_BYTES);
	/* The worst that there can be: each string one byte over whole words. */
	details_reset(&d);
	for (int i = 0; i < DETAILS_MAX; i++)
		details_add(&d, "123456789", "12345678901234567890123");
	CHECK(d.count == DETAILS_MAX && d.bytes == DETAILS_BYTES && d.words <= DETAILS_WORDS);

	while (list_number(&list, 123456))
		;
	CHECK(list.length <= DETAIL_LIST_BYTES && strcmp(list.text + list.length - 7, ",123456") == 0);
	CHECK(!list_add(&list, "1")); /* what comes after a gap would lie about the order */
}

static void test_the_layouts_size_is_known(void)
{
	struct wire w = { 0 };
	const struct agent_statistics statistics = { 0 };
	struct making how = { .by = "Send_init" };
	struct object *o;
	size_t before;
	uint32_t words;

	fake_reset();
	open_session("", 10);
	before = session.layout_words;
	fake_detail = "a,b";
	o = make(BIND_INFO, 1);
	CHECK(o->detail_count == 1 && o->detail_words == 5);
	make(BIND_FILE, 2);
	session_object_made(&session, BIND_REQUEST, &(union mpi_object){ .integer = 3 }, 0, &how, 1);
	session_object_named(&session, make(BIND_COMM, 4), "a name of some length");
	fake_has = true;
	session_key_changed(&session, o, "and another");
	CHECK(o->detail_words == 6);
	frame_answer(&w, 1, &session, (struct generations){ session.catalogue.generation, 0, session.remains.generation, 0 }, SAMPLE_FRESH, END_NONE,
		     &statistics);
	memcpy(&words, w.bytes + 8, sizeof words);
	CHECK(words == 5 + session.layout_words - before); /* four words before the objects, one for the handles */
	wire_free(&w);
	session_drop(&session);
}

/* Only the key that the program has used is asked for: others may be gone by now. */
static void test_keys_come_and_go(void)
{
	static const struct {
		const char *key;
		bool has;
		const char *keys;
	} steps[] = {
		{ "one", true, "one" },
		{ "one", true, "one" },
		{ "on", false, "one" },
		{ "on", true, "one,on" },
		{ "two", true, "one,on,two" },
		{ "on", false, "one,two" },
		{ "one", false, "two" },
		{ "two", false, "" },
		{ "two", false, "" },
		{ "with,comma", true, "with,comma" },
		{ "x", true, "with,comma,x" },
		{ "with,comma", false, "x" },
	};
	struct detail_list keys;
	char wide[DETAIL_LIST_BYTES + 2];
	struct object *o;
	size_t before;

	fake_reset();
	open_session("", 10);
	before = session.layout_words;
	o = make(BIND_INFO, 1);
	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		fake_has = steps[i].has;
		session_key_changed(&session, o, steps[i].key);
		details_first_list(o->details, o->detail_words, &keys);
		CHECK(strcmp(keys.text, steps[i].keys) == 0 && keys.length == strlen(keys.text));
		CHECK(o->detail_count == (keys.length > 0 ? 1 : 0));
	}
	memset(wide, 'w', sizeof wide);
	wide[sizeof wide - 1] = '\0';
	fake_has = true;
	session_key_changed(&session, o, wide); /* no room for it */
	details_first_list(o->details, o->detail_words, &keys);
	CHECK(strcmp(keys.text, "x") == 0);
	session_object_freed(&session, o);
	CHECK(session.layout_words == before);
	session_drop(&session);
}

static void test_details_on_the_wire(void)
{
	static const uint64_t expected[] = {
		1, 0,                                         /* one object over the bound, no handle */
		2,                                            /* objects */
		21, 1, BIND_REQUEST, 0, (uint64_t)-1, (uint64_t)-1, 0 /* created */, 0, 9, /* made on object 9 */
		2,                                            /* details */
		4, 4, 0x7379656b, 3, 0x622c61,                /* keys: a,b */
		6, 9, 0x6f6974617265706f, 'n', 9, 0x696e695f646e6573, 't', /* operation: send_init */
		15, 2, BIND_FILE, 0, (uint64_t)-1, (uint64_t)-1, 0, 4, 0x7461642f, 0, 1, 4, 4, 0x7379656b, 3, 0x622c61, /* "/dat" */
		0,                                            /* handles */
	};
	const struct agent_statistics statistics = { 0 };
	struct making request = { .by = "Send_init" }, file = { .by = "File_open", .name = "/dat" };
	struct wire w = { 0 };
	uint64_t got;

	fake_reset();
	open_session("", 1);
	fake_detail = "a,b";
	CHECK(session_object_made(&session, BIND_REQUEST, &(union mpi_object){ .integer = 3 }, 0, &request, 9) != NULL);
	CHECK(session_object_made(&session, BIND_REQUEST, &(union mpi_object){ .integer = 4 }, 0, &request, 9) == NULL);
	CHECK(session_object_made(&session, BIND_FILE, &(union mpi_object){ .integer = 5 }, 0, &file, 0) != NULL);
	session.unbound.after->created = session.unbound.after->after->created = 0;
	frame_answer(&w, 1, &session, (struct generations){ session.catalogue.generation, 0, session.remains.generation, 0 }, SAMPLE_FRESH, END_NONE,
		     &statistics);
	for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
		memcpy(&got, w.bytes + WIRE_HEADER_BYTES + 8 + 8 * i, sizeof got);
		if (got != expected[i])
			fprintf(stderr, "word %zu of LAYOUT is %#llx, not %#llx\n", i, (unsigned long long)got, (unsigned long long)expected[i]);
		CHECK(got == expected[i]);
	}
	wire_free(&w);
	session_drop(&session);
}

static void test_what_a_constructors_name_tells(void)
{
	static const struct {
		int kind;
		const char *by, *key, *value;
	} cases[] = {
		{ BIND_ERRHANDLER, "Comm_create_errhandler", "on", "comm" },
		{ BIND_ERRHANDLER, "Win_get_errhandler", "on", "win" },
		{ BIND_ERRHANDLER, "Errhandler_create", "on", "comm" },
		{ BIND_REQUEST, "Neighbor_alltoallw_init_c", "operation", "neighbor_alltoallw_init_c" },
		{ BIND_GROUP, "Comm_group", NULL, NULL },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		static struct details want;
		struct object *o;

		fake_reset();
		open_session("", 10);
		o = session_object_made(&session, cases[i].kind, &(union mpi_object){ .integer = 1 }, 0, &(struct making){ .by = cases[i].by }, 0);
		details_reset(&want);
		if (cases[i].key != NULL)
			details_add(&want, cases[i].key, cases[i].value);
		CHECK(o->detail_count == want.count && o->detail_words == want.words);
		CHECK(want.words == 0 || memcmp(o->details, want.packed, want.words * sizeof want.packed[0]) == 0);
		session_drop(&session);
	}
}

static void test_a_name_too_long_for_the_layout_is_cut(void)
{
	struct object *o;

	fake_reset();
	open_session("", 10);
	o = make(BIND_COMM, 1);
	session.layout_words += MAX_FRAME_WORDS - session.layout_words - 2; /* as if there were others: room for two words */
	session_object_named(&session, o, "communicator of the halo exchange");
	CHECK(strcmp(o->name, "communicator of ") == 0 && session.layout_words == MAX_FRAME_WORDS);
	CHECK(make(BIND_COMM, 2) == NULL && session.objects_over == 1);
	session_drop(&session);
}

/* ---- the gate ---- */

static _Atomic int entered;

static void *program_thread(void *unused)
{
	(void)unused;
	CHECK(gate_enter());
	atomic_store(&entered, 1);
	gate_leave();
	return NULL;
}

static void test_gate(void)
{
	pthread_t thread;
	uint64_t before = gate_waits().count;

	CHECK(gate_try());
	CHECK(!gate_enter()); /* not recursive: refused, not a deadlock */
	CHECK(pthread_create(&thread, NULL, program_thread, NULL) == 0);
	while (!gate_wanted())
		usleep(100);
	CHECK(atomic_load(&entered) == 0);
	gate_leave();
	pthread_join(thread, NULL);
	CHECK(atomic_load(&entered) == 1);
	CHECK(gate_waits().count == before + 1 && gate_waits().longest_ns > 0);
	CHECK(agent_state() == AGENT_IDLE);
}

/* ---- waking the thread ---- */

static void test_waking_a_thread_that_leaves_hurts_nobody(void)
{
	int reading_end = dup(STDOUT_FILENO); /* the number that the pipe's reading end gets */

	close(reading_end);
	wake_prepare();
	wake_thread();
	wake_sleep(-1, -1); /* returns: the byte is there */
	close(reading_end);
	wake_thread(); /* no SIGPIPE */
	wake_forget();
	wake_thread();
}

/* ---- frames over a real socket: the test plays the exporter ---- */

struct frame {
	struct wire_header header;
	uint64_t *words;
	size_t at;
};

static void receive(int fd, void *to, size_t length)
{
	CHECK(recv(fd, to, length, MSG_WAITALL) == (ssize_t)length);
}

static struct frame next_frame(int fd)
{
	unsigned char bytes[WIRE_HEADER_BYTES];
	struct frame f = { 0 };

	receive(fd, bytes, sizeof bytes);
	CHECK(wire_header(bytes, &f.header));
	CHECK(f.header.version == WIRE_VERSION && f.header.words <= WIRE_PAYLOAD_WORDS_MAX);
	f.words = calloc((size_t)f.header.words + 1, sizeof *f.words);
	if (f.header.words > 0)
		receive(fd, f.words, f.header.words * sizeof *f.words);
	return f;
}

static uint64_t take(struct frame *f)
{
	CHECK(f->at < f->header.words);
	return f->words[f->at++];
}

static void skip_string(struct frame *f)
{
	uint64_t length = take(f);

	f->at += (length + 7) / 8;
	CHECK(f->at <= f->header.words);
}

static void request(int fd, enum frame_type type, uint32_t sequence, const uint64_t *words, size_t count)
{
	struct wire w = { 0 };

	wire_begin(&w, type, sequence);
	wire_words(&w, words, count);
	wire_end(&w);
	CHECK(send(fd, w.bytes, w.length, 0) == (ssize_t)w.length);
	wire_free(&w);
}

static int listen_at(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	copy_string(address.sun_path, sizeof address.sun_path, path);
	CHECK(bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(fd, 8) == 0);
	return fd;
}

/* Blob of the HELLO that comes next. */
static size_t expect_hello(int fd, enum connection_kind kind)
{
	struct frame f = next_frame(fd);
	uint64_t attributes, length;

	CHECK(f.header.type == FRAME_HELLO && take(&f) == kind);
	f.at = 10;
	for (int i = 0; i < 4; i++)
		skip_string(&f);
	attributes = take(&f);
	CHECK(attributes >= 1);
	for (; attributes > 0; attributes--)
		f.at += take(&f);
	length = take(&f);
	free(f.words);
	return (size_t)length;
}

static uint64_t expect_sample(int fd, uint32_t sequence, enum sample_status status, unsigned frames_before)
{
	struct frame f = next_frame(fd);
	uint64_t values, first;
	unsigned frames = 0;

	for (; f.header.type != FRAME_SAMPLE; frames++) {
		CHECK(f.header.sequence == sequence);
		free(f.words);
		f = next_frame(fd);
	}
	CHECK(frames == frames_before && f.header.sequence == sequence);
	take(&f);
	CHECK(take(&f) == status);
	f.at = 6;
	CHECK(take(&f) == 1);
	f.at += take(&f);
	values = take(&f);
	first = values > 0 ? f.words[f.at] : 0;
	free(f.words);
	return first;
}

/* Status of the sample that comes, whatever comes before it; the value of one word of its statistics. */
static uint64_t sample_statistic(int fd, uint32_t sequence, enum sample_status status, unsigned which)
{
	struct frame f = next_frame(fd);
	uint64_t value;

	while (f.header.type != FRAME_SAMPLE) {
		free(f.words);
		f = next_frame(fd);
	}
	CHECK(f.header.sequence == sequence && f.words[1] == status && f.words[6] == 1 && f.words[7] == 13);
	value = f.words[8 + which];
	free(f.words);
	return value;
}

enum statistic { STATISTIC_LEVEL = 8, STATISTIC_CALLS, STATISTIC_KEPT, STATISTIC_PAUSED_NS, STATISTIC_STAMP };

static struct identity identity;
static struct link link_of_rank;
static char directory[64], path[128];

/* Lets the agent's thread run against a socket of the test's own; the session is open. */
static int begin_conversation(bool passive)
{
	int listening;

	snprintf(directory, sizeof directory, "/tmp/mpit-agent-test.XXXXXX");
	CHECK(mkdtemp(directory) != NULL);
	snprintf(path, sizeof path, "%s/agent.sock", directory);
	setenv("MPIT_SOCKET", path, 1);
	listening = listen_at(path);
	identity_fill(&identity, "Fake MPI 1\nsecond line");
	CHECK(strcmp(identity.library_version, "Fake MPI 1") == 0);
	link_of_rank = (struct link){ .identity = &identity, .session = &session, .passive = passive };
	link_paths(&link_of_rank);
	CHECK(agent_move(AGENT_IDLE, AGENT_RUNNING));
	CHECK(link_start(&link_of_rank));
	return listening;
}

static void end_conversation(int listening)
{
	close(listening);
	unlink(path);
	rmdir(directory);
	usleep(200000); /* the thread sees its end of file and leaves */
	session_drop(&session);
}

static void test_a_passive_rank_is_read_by_its_program_alone(void)
{
	const uint64_t unseen[3] = { 0 }, second_only[3] = { 0, 1, 2 };
	int listening, fd, reads;

	fake_reset();
	variable("a", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1)->value[0][0].i = 5;
	variable("b", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1)->value[0][0].i = 6;
	open_session("", 10);
	CHECK(sample_with(NULL));
	reads = fake_reads;
	listening = begin_conversation(true);
	fd = accept(listening, NULL, NULL);
	expect_hello(fd, CONNECTION_STAYS);
	request(fd, REQUEST_SAMPLE, 1, unseen, 3);
	CHECK(expect_sample(fd, 1, SAMPLE_PASSIVE, 2) == 5);
	request(fd, REQUEST_SELECT, 2, second_only, 3);
	request(fd, REQUEST_SAMPLE, 3, unseen, 3);
	expect_sample(fd, 3, SAMPLE_BUSY, 0); /* the values read before are not those that are selected now */
	request(fd, REQUEST_CVARS, 4, unseen, 1);
	free(next_frame(fd).words);
	CHECK(fake_reads == reads);
	CHECK(gate_enter());
	CHECK(sample_with(NULL)); /* the program's next call */
	gate_leave();
	request(fd, REQUEST_SAMPLE, 5, unseen, 3);
	CHECK(expect_sample(fd, 5, SAMPLE_PASSIVE, 2) == 6);
	CHECK(agent_move(AGENT_RUNNING, AGENT_IDLE));
	close(fd);
	end_conversation(listening);
}

/* ---- tools ---- */

/* One operation of TOOL: the code, and the words of what it gives in `given`. */
static int tool(int fd, const uint64_t *words, size_t count, struct frame *given)
{
	struct frame f;
	uint64_t code, why;

	request(fd, REQUEST_TOOL, 77, words, count);
	f = next_frame(fd);
	CHECK(f.header.type == FRAME_TOOL && f.header.sequence == 77 && take(&f) == words[0]);
	code = take(&f);
	why = f.words[f.at];
	skip_string(&f);
	CHECK(why == 0 || code != CODE_SUCCESS);
	CHECK(code == CODE_SUCCESS || f.at == f.header.words);
	if (given == NULL)
		free(f.words);
	else
		*given = f;
	return (int)code;
}

#define TOOL(given, ...) tool(fd, (const uint64_t[]){ __VA_ARGS__ }, sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t), given)

/* The same, for what gives one number. */
static uint64_t tool_number(int fd, const uint64_t *words, size_t count)
{
	struct frame f;
	uint64_t number;

	CHECK(tool(fd, words, count, &f) == CODE_SUCCESS);
	number = take(&f);
	free(f.words);
	return number;
}

#define NUMBER(...) tool_number(fd, (const uint64_t[]){ __VA_ARGS__ }, sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

/* The single element that read (6) or readreset (9) gives. */
static uint64_t tool_read(int fd, uint64_t operation, uint64_t tool_session, uint64_t handle)
{
	struct frame f;
	uint64_t value;

	CHECK(TOOL(&f, operation, tool_session, handle) == CODE_SUCCESS && take(&f) == 1);
	value = take(&f);
	free(f.words);
	return value;
}

enum tool { CREATE, FREE_SESSION, ALLOC, FREE, START, STOP, READ, WRITE, RESET, READRESET, CVAR_READ, CVAR_WRITE, PVAR_INDEX, CVAR_INDEX, CATEGORY_INDEX };

static int open_conversation(int *listening)
{
	int fd;

	*listening = begin_conversation(false);
	fd = accept(*listening, NULL, NULL);
	expect_hello(fd, CONNECTION_STAYS);
	return fd;
}

/* The tools' side is over when the agent has connected again. */
static int reconnect(int fd, int listening)
{
	close(fd);
	fd = accept(listening, NULL, NULL);
	expect_hello(fd, CONNECTION_STAYS);
	return fd;
}

static void close_conversation(int fd, int listening)
{
	fd = reconnect(fd, listening);
	CHECK(session.tools == NULL && fake_open_sessions == 1);
	CHECK(agent_move(AGENT_RUNNING, AGENT_IDLE));
	close(fd);
	end_conversation(listening);
}

static void test_a_tool_has_sessions_and_handles_of_its_own(void)
{
	uint64_t mine, other, counter, level, bound;
	struct object *o;
	struct frame f;
	int listening, fd;

	fake_reset();
	variable("calls", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1)->value[0][0].i = 100;
	variable("length", LEVEL, TYPE_INT, 4, BIND_COMM, 2)->continuous = true;
	variable("denied", COUNTER, TYPE_INT, 4, BIND_NONE, 1);
	variable("shared_calls", COUNTER, TYPE_INT, 4, BIND_NONE, 1);
	variable("text", GENERIC, TYPE_CHAR, 1, BIND_NONE, 3)->value[0][0].i = 'a';
	fake_variables[0].writable = fake_variables[0].atomic = true;
	fake_variables[1].value[1][0].i = (uint32_t)-3;
	open_session("denied", 10);
	o = make(BIND_COMM, 1);
	fd = open_conversation(&listening);

	CHECK(TOOL(NULL, READ, 1, 1) == CODE_INVALID_SESSION); /* before there is any */
	mine = NUMBER(CREATE);
	other = NUMBER(CREATE);
	CHECK(mine == 1 && other == 2 && fake_open_sessions == 3);

	counter = NUMBER(ALLOC, mine, 0, 0);
	CHECK(TOOL(&f, ALLOC, mine, 1, o->number) == CODE_SUCCESS);
	level = take(&f);
	CHECK(counter == 1 && level == 2 && take(&f) == 2); /* its count */
	free(f.words);
	CHECK(TOOL(NULL, ALLOC, mine, 5, 0) == CODE_INVALID_INDEX);
	CHECK(TOOL(NULL, ALLOC, mine, 2, 0) == CODE_NOT_ACCESSIBLE);
	CHECK(TOOL(NULL, ALLOC, mine, 1, 0) == CODE_INVALID_HANDLE); /* which communicator? */
	CHECK(TOOL(NULL, ALLOC, mine, 1, o->number + 1) == CODE_INVALID_HANDLE);
	CHECK(TOOL(NULL, ALLOC, 3, 0, 0) == CODE_INVALID_SESSION);
	CHECK(TOOL(NULL, READ, other, counter) == CODE_INVALID_HANDLE); /* of another session */
	CHECK(TOOL(NULL, READ, mine, 0) == CODE_INVALID_HANDLE);

	/* Values as in SAMPLE; what is reset here is reset nowhere else. */
	CHECK(TOOL(NULL, START, mine, counter) == CODE_SUCCESS && fake_started == 3);
	CHECK(tool_read(fd, READ, mine, counter) == 100);
	CHECK(TOOL(NULL, RESET, mine, counter) == CODE_SUCCESS && tool_read(fd, READ, mine, counter) == 0);
	fake_variables[0].value[0][0].i = 107;
	CHECK(tool_read(fd, READRESET, mine, counter) == 7 && tool_read(fd, READ, mine, counter) == 0);
	CHECK(TOOL(&f, READ, mine, level) == CODE_SUCCESS && take(&f) == 2 && (int64_t)take(&f) == -3 && take(&f) == 0);
	free(f.words);
	CHECK(gate_enter());
	CHECK(sample_with(NULL) && session.values[0] == 107);
	gate_leave();

	/* A string is its bytes. */
	bound = NUMBER(ALLOC, mine, 4, 0);
	CHECK(TOOL(&f, READ, mine, bound) == CODE_SUCCESS && take(&f) == 3 && take(&f) == 'a');
	free(f.words);

	CHECK(TOOL(NULL, START, mine, level) == CODE_PVAR_NO_STARTSTOP && TOOL(NULL, STOP, mine, level) == CODE_PVAR_NO_STARTSTOP);
	CHECK(TOOL(NULL, RESET, mine, level) == CODE_PVAR_NO_WRITE && TOOL(NULL, READRESET, mine, level) == CODE_PVAR_NO_WRITE);
	fake_variables[0].atomic = false;
	session.catalogue.variables[0]->is.atomic = false;
	CHECK(TOOL(NULL, READRESET, mine, counter) == CODE_PVAR_NO_ATOMIC);
	CHECK(TOOL(NULL, STOP, mine, counter) == CODE_SUCCESS && fake_stopped == 1);
	CHECK(TOOL(NULL, STOP, mine, counter) == CODE_PVAR_NO_STARTSTOP); /* the library's own word */

	/* Freed one by one, with a session, with the connection; numbers are not used again. */
	CHECK(fake_open_handles == 3 + 3);
	CHECK(TOOL(NULL, FREE, mine, counter) == CODE_SUCCESS && TOOL(NULL, FREE, mine, counter) == CODE_INVALID_HANDLE);
	CHECK(NUMBER(ALLOC, mine, 0, 0) != counter && fake_open_handles == 3 + 3);
	NUMBER(ALLOC, other, 0, 0);
	CHECK(TOOL(NULL, FREE_SESSION, mine) == CODE_SUCCESS && TOOL(NULL, FREE_SESSION, mine) == CODE_INVALID_SESSION);
	CHECK(fake_open_handles == 3 + 1 && fake_open_sessions == 2);
	CHECK(NUMBER(CREATE) != mine);
	fd = reconnect(fd, listening);
	CHECK(fake_open_handles == 3 && fake_open_sessions == 1 && session.tools == NULL);
	CHECK(TOOL(NULL, READ, other, counter) == CODE_INVALID_SESSION);
	CHECK(NUMBER(CREATE) == 1);
	close_conversation(fd, listening);
}

static void test_a_tools_handle_ends_before_its_object(void)
{
	uint64_t mine, handle, again;
	struct object *o;
	int listening, fd;

	fake_reset();
	variable("calls", COUNTER, TYPE_UNSIGNED, 4, BIND_COMM, 1);
	open_session("", 10);
	o = make(BIND_COMM, 1);
	make(BIND_COMM, 2);
	fd = open_conversation(&listening);
	mine = NUMBER(CREATE);
	handle = NUMBER(ALLOC, mine, 0, o->number);
	again = NUMBER(ALLOC, mine, 0, 2);
	CHECK(o->tool_handles == 1 && fake_open_handles == 4);
	CHECK(gate_enter());
	session_object_freed(&session, o);
	gate_leave();
	CHECK(fake_open_handles == 2);
	CHECK(TOOL(NULL, READ, mine, handle) == CODE_INVALID_HANDLE && TOOL(NULL, FREE, mine, handle) == CODE_INVALID_HANDLE);
	CHECK(tool_read(fd, READ, mine, again) == 0);
	CHECK(TOOL(NULL, ALLOC, mine, 0, 1) == CODE_INVALID_HANDLE);
	close_conversation(fd, listening);
}

static void test_tools_are_forgotten_when_mpi_is_over(void)
{
	int listening, fd;

	fake_reset();
	variable("calls", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1);
	open_session("", 10);
	fd = open_conversation(&listening);
	NUMBER(CREATE);
	CHECK(gate_enter());
	CHECK(agent_move(AGENT_RUNNING, AGENT_FINAL));
	link_stop();
	gate_leave();
	CHECK(recv(fd, &(char){ 0 }, 1, 0) == 0); /* the thread leaves */
	for (int i = 0; session.tools != NULL; i++) {
		CHECK(i < 1000);
		usleep(10000);
	}
	CHECK(fake_open_sessions == 2); /* nothing of MPI_T is called any more */
	CHECK(agent_move(AGENT_FINAL, AGENT_IDLE));
	close(fd);
	end_conversation(listening);
}

static void test_all_handles_of_a_session(void)
{
	uint64_t mine, plain, other;
	int listening, fd;

	fake_reset();
	variable("calls", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1)->writable = true;
	variable("more", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1);
	variable("length", LEVEL, TYPE_INT, 4, BIND_NONE, 1)->continuous = true;
	variable("shared_calls", COUNTER, TYPE_INT, 4, BIND_NONE, 1)->value[0][0].i = 1;
	open_session("", 10);
	fd = open_conversation(&listening);
	mine = NUMBER(CREATE);
	CHECK(TOOL(NULL, START, mine, 0) == CODE_SUCCESS); /* of none */
	plain = NUMBER(ALLOC, mine, 0, 0);
	NUMBER(ALLOC, mine, 1, 0);
	NUMBER(ALLOC, mine, 2, 0);
	fake_started = fake_stopped = 0;
	CHECK(TOOL(NULL, START, mine, 0) == CODE_SUCCESS && fake_started == 2); /* not the continuous one */
	CHECK(TOOL(NULL, START, mine, 0) == CODE_SUCCESS && fake_started == 2); /* they are started */
	fake_variables[0].value[0][0].i = fake_variables[1].value[0][0].i = 5;
	CHECK(TOOL(NULL, RESET, mine, 0) == CODE_SUCCESS);
	CHECK(tool_read(fd, READ, mine, plain) == 0 && tool_read(fd, READ, mine, 2) == 5); /* not the readonly one */
	CHECK(TOOL(NULL, STOP, mine, plain) == CODE_SUCCESS && TOOL(NULL, STOP, mine, 0) == CODE_SUCCESS && fake_stopped == 2);

	/* What would stop for the whole process is started, and never stopped. */
	other = NUMBER(ALLOC, mine, 3, 0);
	CHECK(TOOL(NULL, START, mine, 0) == CODE_SUCCESS && fake_started == 5);
	CHECK(TOOL(NULL, STOP, mine, other) == CODE_PVAR_NO_STARTSTOP && fake_stopped == 2);
	CHECK(TOOL(NULL, STOP, mine, 0) == CODE_PVAR_NO_STARTSTOP && fake_stopped == 4); /* the others are */
	CHECK(TOOL(NULL, FREE, mine, other) == CODE_SUCCESS && fake_stopped == 4);

	fake_variables[0].start_code = CODE_INVALID_HANDLE;
	CHECK(TOOL(NULL, START, mine, 0) == CODE_PVAR_NO_STARTSTOP);
	close_conversation(fd, listening);
}

static void test_tools_are_bounded(void)
{
	uint64_t mine = 0;
	int listening, fd;

	fake_reset();
	variable("calls", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1);
	variable("large", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, MAX_VALUES + 1);
	open_session("", 10);
	fd = open_conversation(&listening);
	for (int i = 0; i < TOOL_SESSIONS; i++)
		mine = NUMBER(CREATE);
	CHECK(TOOL(NULL, CREATE) == CODE_OUT_OF_SESSIONS);
	CHECK(TOOL(NULL, ALLOC, mine, 1, 0) == CODE_MEMORY);
	for (int i = 0; i < TOOL_HANDLES; i++)
		NUMBER(ALLOC, mine, 0, 0);
	CHECK(TOOL(NULL, ALLOC, mine, 0, 0) == CODE_OUT_OF_HANDLES && fake_open_handles == 1 + TOOL_HANDLES);
	CHECK(TOOL(NULL, FREE, mine, 1) == CODE_SUCCESS && NUMBER(ALLOC, mine, 0, 0) == 1 + TOOL_HANDLES);

	/* What is not an operation, and what is cut off, is said and harmless. */
	for (uint64_t operation = 1; operation < 17; operation++) {
		struct frame f;

		request(fd, REQUEST_TOOL, 5, &operation, 1);
		f = next_frame(fd);
		CHECK(f.header.type == FRAME_ERROR && take(&f) == (operation < 15 ? ERROR_MALFORMED : ERROR_UNSUPPORTED));
		free(f.words);
	}
	for (uint64_t operation = WRITE; operation <= CATEGORY_INDEX; operation++) {
		const uint64_t far[5] = { operation, 1ull << 60, 1ull << 60, 1ull << 60, 1ull << 60 };
		const size_t head[] = { 4, 0, 0, 0, 5, 3, 2, 2 };
		struct frame f;

		if (operation > WRITE && operation < CVAR_WRITE)
			continue;
		request(fd, REQUEST_TOOL, 5, far, operation == WRITE ? 4 : head[operation - CVAR_WRITE + 4]);
		f = next_frame(fd);
		CHECK(f.header.type == FRAME_ERROR && take(&f) == ERROR_MALFORMED);
		free(f.words);
	}
	fd = reconnect(fd, listening);
	CHECK(fake_open_handles == 1 && fake_open_sessions == 1);
	close_conversation(fd, listening);
}

static void test_writing_must_be_allowed(void)
{
	uint64_t mine, handle, text, spoken[] = { CVAR_WRITE, 0, 0, 2, 3, 0x657962 };
	int listening, fd;

	fake_reset();
	variable("size", 2, TYPE_UNSIGNED, 4, BIND_NONE, 2)->writable = true;
	variable("text", GENERIC, TYPE_CHAR, 1, BIND_NONE, 1)->writable = true;
	variable("readonly", 2, TYPE_UNSIGNED, 4, BIND_NONE, 1);
	open_session("", 10);
	fd = open_conversation(&listening);
	mine = NUMBER(CREATE);
	handle = NUMBER(ALLOC, mine, 0, 0);
	text = NUMBER(ALLOC, mine, 1, 0);
	CHECK(TOOL(NULL, WRITE, mine, handle, 2, 5, 6) == CODE_NOT_ACCESSIBLE);
	CHECK(tool(fd, spoken, 6, NULL) == CODE_NOT_ACCESSIBLE);
	CHECK(fake_variables[0].value[0][0].i == 0 && strcmp(fake_string, "hello") == 0);

	session.may_write = true;
	CHECK(TOOL(NULL, WRITE, mine, handle, 2, 5, 6) == CODE_SUCCESS);
	CHECK(fake_variables[0].value[0][0].i == 5 && fake_variables[0].value[0][1].i == 6);
	CHECK(TOOL(NULL, WRITE, mine, handle, 1, 5) == CODE_INVALID);               /* there are two */
	CHECK(TOOL(NULL, WRITE, mine, handle, 2, 5, 1ull << 32) == CODE_INVALID);    /* it has 32 bits */
	CHECK(TOOL(NULL, WRITE, mine, text, 1, 'b') == CODE_NOT_ACCESSIBLE);         /* the library would crash */
	handle = NUMBER(ALLOC, mine, 2, 0);
	CHECK(TOOL(NULL, WRITE, mine, handle, 1, 5) == CODE_PVAR_NO_WRITE);
	CHECK(tool(fd, spoken, 6, NULL) == CODE_SUCCESS && strcmp(fake_string, "bye") == 0);
	close_conversation(fd, listening);
}

/* kind, then a value of one word, of TOOL's cvar read. */
static uint64_t cvar_word(int fd, uint64_t index, uint64_t object)
{
	struct frame f;
	uint64_t value;

	CHECK(TOOL(&f, CVAR_READ, index, object) == CODE_SUCCESS && take(&f) == 1 && take(&f) == 1);
	value = take(&f);
	free(f.words);
	return value;
}

static void test_control_variables_one_by_one(void)
{
	uint64_t longest[] = { CVAR_WRITE, 0, 0, 2, 16, 0x6161616161616161, 0x6161616161616161 };
	struct object *o, *win;
	struct frame f;
	int listening, fd;

	fake_reset();
	variable("calls", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1);
	open_session("", 10);
	o = make(BIND_COMM, 1);
	win = make(BIND_WIN, 1);
	session.may_write = true;
	fd = open_conversation(&listening);

	CHECK(TOOL(&f, CVAR_READ, 0, 0) == CODE_SUCCESS && take(&f) == 2 && take(&f) == 5 && take(&f) == 0x6f6c6c6568);
	free(f.words);
	CHECK((int64_t)cvar_word(fd, 12, 0) == -12);
	CHECK(TOOL(&f, CVAR_READ, 5, 0) == CODE_SUCCESS && take(&f) == 1 && take(&f) == 3 && take(&f) == 1 && take(&f) == 2);
	free(f.words);
	CHECK(as_double(cvar_word(fd, 6, 0)) == -0.5);
	CHECK(TOOL(NULL, CVAR_READ, 7, 0) == CODE_NOT_ACCESSIBLE && TOOL(NULL, CVAR_READ, 8, 0) == CODE_NOT_SUPPORTED);
	CHECK(TOOL(NULL, CVAR_READ, FAKE_CVARS, 0) == CODE_INVALID_INDEX && TOOL(NULL, CVAR_READ, 1ull << 40, 0) == CODE_INVALID_INDEX);

	/* Bound: each object has a value of its own. */
	CHECK(TOOL(NULL, CVAR_WRITE, 3, o->number, 1, 1, 42) == CODE_SUCCESS && fake_bound[1] == 42);
	CHECK(cvar_word(fd, 3, o->number) == 42);
	CHECK(TOOL(NULL, CVAR_READ, 3, 0) == CODE_INVALID_HANDLE && TOOL(NULL, CVAR_READ, 3, win->number) == CODE_INVALID_HANDLE);

	CHECK(TOOL(NULL, CVAR_WRITE, 1, 0, 1, 1, 5) == CODE_CVAR_SET_NEVER && TOOL(NULL, CVAR_WRITE, 2, 0, 1, 1, 5) == CODE_CVAR_SET_NEVER);
	CHECK(TOOL(NULL, CVAR_WRITE, 4, 0, 1, 1, 0) == CODE_SUCCESS && fake_bool == 0);
	CHECK(TOOL(NULL, CVAR_WRITE, 4, 0, 1, 1, 2) == CODE_INVALID && fake_bool == 0);
	CHECK(TOOL(NULL, CVAR_WRITE, 5, 0, 1, 3, 7, 8, 255) == CODE_SUCCESS && fake_bytes[2] == 255);
	CHECK(TOOL(NULL, CVAR_WRITE, 5, 0, 1, 3, 7, 8, 256) == CODE_INVALID);
	CHECK(TOOL(NULL, CVAR_WRITE, 5, 0, 1, 2, 7, 8) == CODE_INVALID);
	CHECK(TOOL(NULL, CVAR_WRITE, 6, 0, 1, 1, as_word(2.5)) == CODE_SUCCESS && fake_double == 2.5);
	CHECK(TOOL(NULL, CVAR_WRITE, 6, 0, 2, 0) == CODE_INVALID);                /* no string */
	CHECK(TOOL(NULL, CVAR_WRITE, 0, 0, 1, 1, 5) == CODE_INVALID);             /* a string */
	CHECK(TOOL(NULL, CVAR_WRITE, 0, 0, 2, 3, 0x610062) == CODE_INVALID);      /* with a zero in it */
	CHECK(TOOL(NULL, CVAR_WRITE, 0, 0, 2, 0) == CODE_SUCCESS && fake_string[0] == '\0');
	CHECK(tool(fd, longest, 7, NULL) == CODE_INVALID); /* no room for its zero */
	longest[4] = 15;
	CHECK(tool(fd, longest, 7, NULL) == CODE_SUCCESS && strlen(fake_string) == 15);
	CHECK(TOOL(NULL, CVAR_WRITE, 7, 0, 1, 1, 5) == CODE_NOT_ACCESSIBLE && TOOL(NULL, CVAR_WRITE, 8, 0, 1, 1, 5) == CODE_NOT_SUPPORTED);

	/* Indices by name: "calls" (class COUNTER), "cvar_12", "all". */
	CHECK(TOOL(&f, PVAR_INDEX, COUNTER, 5, 0x736c6c6163) == CODE_SUCCESS && take(&f) == 0 && take(&f) == 1);
	free(f.words);
	CHECK(TOOL(NULL, PVAR_INDEX, LEVEL, 5, 0x736c6c6163) == CODE_INVALID_NAME && TOOL(NULL, PVAR_INDEX, 10, 5, 0x736c6c6163) == CODE_INVALID_NAME);
	CHECK(NUMBER(CVAR_INDEX, 7, 0x32315f72617663) == 12 && NUMBER(CATEGORY_INDEX, 3, 0x6c6c61) == 0);
	CHECK(TOOL(NULL, CATEGORY_INDEX, 3, 0x6c0061) == CODE_INVALID_NAME);
	close_conversation(fd, listening);
}

/* A page of control variables: the enumerations that stand before it, and the frame at its list. */
static struct frame cvars_page(int fd, uint64_t first, uint64_t enumerations[4], size_t *count)
{
	struct frame f;

	*count = 0;
	request(fd, REQUEST_CVARS, 9, &first, 1);
	f = next_frame(fd);
	if (f.header.type == FRAME_ENUMS) {
		for (uint64_t n = take(&f); n > 0; n--) {
			uint64_t words = take(&f);

			enumerations[(*count)++] = f.words[f.at];
			f.at += words;
		}
		free(f.words);
		f = next_frame(fd);
	}
	CHECK(f.header.type == FRAME_CVARS && take(&f) == FAKE_CVARS);
	return f;
}

static void test_control_variables_name_their_enumerations(void)
{
	uint64_t enumerations[4], next, words, end, named[4] = { 0 };
	struct frame f;
	size_t count;
	int listening, fd;

	fake_reset();
	variable("mood", STATE, TYPE_INT, 4, BIND_NONE, 1); /* enumeration 0, which no control variable has */
	open_session("", 100);
	for (int i = 0; i < 66; i++)
		make(BIND_COMM, 1 + i % 2);
	fake_bound[2] = 9;
	fd = open_conversation(&listening);
	for (int again = 0; again < 2; again++) { /* in every answer that names them */
		f = cvars_page(fd, 0, enumerations, &count);
		CHECK(count == 1 && enumerations[0] == 1);
		next = take(&f);
		CHECK(next > 8 && take(&f) == next); /* records */
		for (int i = 0; i < 8; i++) {
			words = take(&f);
			end = f.at + words;
			CHECK(take(&f) == (uint64_t)i);
			f.at += 4;
			if (i < 4)
				named[i] = take(&f);
			else
				CHECK(take(&f) == (i == 4 ? 2 : 0)); /* 7: its enumeration may lie in no memory either */
			if (i == 3) {
				CHECK(take(&f) == CODE_NOT_SUPPORTED && take(&f) == 0 && take(&f) == 0); /* no value without an object */
				skip_string(&f);
				skip_string(&f);
				CHECK(take(&f) == 64); /* objects at most */
				CHECK(take(&f) == 5 && take(&f) == 1 && take(&f) == CODE_SUCCESS && take(&f) == 1 && take(&f) == 1 && take(&f) == 0);
				CHECK(take(&f) == 5 && take(&f) == 2 && take(&f) == CODE_SUCCESS && take(&f) == 1 && take(&f) == 1 && take(&f) == 9);
			}
			f.at = end;
		}
		CHECK(named[0] == 0 && named[3] == 2);
		free(f.words);
	}
	f = cvars_page(fd, 10, enumerations, &count);
	CHECK(count == 0); /* a page that names none */
	free(f.words);
	close_conversation(fd, listening);
}

/* Of a bound variable with large values as many are told as a frame has room for: the list still comes to its end. */
static void test_large_values_of_a_bound_control_variable(void)
{
	enum { ELEMENTS = 16384 };
	uint64_t words, end, objects;
	struct frame f;
	int listening, fd;
	uint64_t enumerations[4];
	size_t count;

	fake_reset();
	open_session("", 100);
	for (int i = 0; i < 64; i++)
		make(BIND_COMM, 1 + i);
	fake_bound_count = ELEMENTS;
	fd = open_conversation(&listening);
	f = cvars_page(fd, 3, enumerations, &count);
	CHECK(take(&f) == 4 && take(&f) == 1); /* the next index, one record */
	words = take(&f);
	end = f.at + words;
	f.at += 9; /* to the strings */
	skip_string(&f);
	skip_string(&f);
	objects = take(&f);
	CHECK(objects > 1 && objects < 64);
	for (uint64_t i = 0; i < objects; i++) {
		words = take(&f);
		CHECK(words == 4 + ELEMENTS && f.words[f.at] == i + 1);
		f.at += words;
	}
	CHECK(f.at == end && end == f.header.words);
	free(f.words);
	close_conversation(fd, listening);
}

static void test_categories_have_a_stamp(void)
{
	const uint64_t unseen[4] = { 0 };
	struct frame f;
	int listening, fd;

	fake_reset();
	variable("calls", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1);
	open_session("", 10);
	fake_stamp = 41;
	fd = open_conversation(&listening);
	request(fd, REQUEST_CATEGORIES, 1, unseen, 1);
	f = next_frame(fd);
	CHECK(f.header.type == FRAME_CATEGORIES && f.words[f.header.words - 1] == 42);
	free(f.words);
	request(fd, REQUEST_SAMPLE, 2, unseen, 4);
	CHECK(sample_statistic(fd, 2, SAMPLE_FRESH, STATISTIC_STAMP) == 42);
	fake_stamp = -1; /* a library that can't say */
	request(fd, REQUEST_SAMPLE, 3, unseen, 4);
	CHECK(sample_statistic(fd, 3, SAMPLE_FRESH, STATISTIC_STAMP) == 0);
	close_conversation(fd, listening);
}

static void test_tools_stay_out_of_a_passive_rank(void)
{
	const uint64_t create = CREATE;
	struct frame f;
	int listening, fd;

	fake_reset();
	variable("a", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1)->value[0][0].i = 5;
	open_session("", 10);
	CHECK(sample_with(NULL));
	listening = begin_conversation(true);
	fd = accept(listening, NULL, NULL);
	expect_hello(fd, CONNECTION_STAYS);
	request(fd, REQUEST_TOOL, 1, &create, 1);
	f = next_frame(fd);
	CHECK(f.header.type == FRAME_ERROR && take(&f) == ERROR_NOT_NOW && fake_open_sessions == 1);
	free(f.words);

	/* Its program's own MPI_Pcontrol works all the same. */
	CHECK(gate_enter());
	pcontrol_called(&session, 0);
	fake_variables[0].value[0][0].i = 9;
	CHECK(sample_with(NULL));
	gate_leave();
	request(fd, REQUEST_SAMPLE, 2, (const uint64_t[4]){ 0 }, 4);
	CHECK(expect_sample(fd, 2, SAMPLE_PAUSED, 2) == 5);
	close_conversation(fd, listening);
}

/* Takes the frames of an answer up to KEPT, which must come. */
static struct frame expect_kept(int fd, uint64_t number)
{
	struct frame f = next_frame(fd);

	while (f.header.type != FRAME_KEPT) {
		CHECK(f.header.type != FRAME_SAMPLE);
		free(f.words);
		f = next_frame(fd);
	}
	CHECK(take(&f) == number);
	return f;
}

static void test_a_sample_is_kept_and_told_until_it_has_been_seen(void)
{
	const uint64_t none = 0, kept[] = {
		8, 0, BIND_NONE, 0, 0, 2, 7, 8, 0,                                 /* calls, unbound, no name, two values, nothing to subtract */
		9, 1, BIND_COMM, 1, 4, 0x6f6c6168, 1, (uint64_t)-4, 1, (uint64_t)-6 /* balance on "halo", origin and excluded */
	};
	struct frame f;
	int listening, fd, final;
	struct object *o;

	fake_reset();
	variable("calls", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 2)->value[0][0].i = 7;
	fake_variables[0].value[0][1].i = 8;
	variable("balance", COUNTER, TYPE_INT, 4, BIND_COMM, 1)->value[1][0].i = (uint32_t)-1;
	variable("broken", COUNTER, TYPE_INT, 4, BIND_NONE, 1);
	open_session("", 10);
	o = make(BIND_COMM, 1);
	session_object_named(&session, o, "halo");
	pcontrol_called(&session, 0);
	fake_variables[1].value[1][0].i = (uint32_t)-6;
	pcontrol_called(&session, 1);
	CHECK((int64_t)first_handle(o)->excluded[0] == -5 && (int64_t)first_handle(o)->origin[0] == -1);
	fake_variables[1].value[1][0].i = (uint32_t)-4;
	session_select(&session, false, &none, 1); /* selected or not */
	fake_variables[2].read_code = CODE_INVALID;
	fd = open_conversation(&listening);

	request(fd, REQUEST_SAMPLE, 1, (const uint64_t[4]){ 0 }, 4);
	CHECK(sample_statistic(fd, 1, SAMPLE_FRESH, STATISTIC_KEPT) == 0);
	CHECK(gate_enter());
	pcontrol_called(&session, 2);
	gate_leave();
	fake_variables[0].value[0][0].i = 99;
	request(fd, REQUEST_SAMPLE, 2, (const uint64_t[4]){ 0 }, 4);
	f = expect_kept(fd, 1);
	CHECK(f.header.sequence == 2 && take(&f) != 0 && take(&f) != 0 && take(&f) == 2);
	CHECK(f.header.words - f.at == sizeof kept / sizeof kept[0] && memcmp(f.words + f.at, kept, sizeof kept) == 0);
	free(f.words);
	CHECK(sample_statistic(fd, 2, SAMPLE_FRESH, STATISTIC_KEPT) == 1);
	request(fd, REQUEST_SAMPLE, 3, (const uint64_t[4]){ session.catalogue.generation, session.layout_generation, session.remains.generation, 1 }, 4);
	f = next_frame(fd);
	CHECK(f.header.type == FRAME_SAMPLE); /* it has been seen */
	free(f.words);

	/* Switched off, what is kept is what is frozen. */
	CHECK(gate_enter());
	pcontrol_called(&session, 0);
	fake_variables[0].value[0][0].i = 1000;
	pcontrol_called(&session, 2);
	gate_leave();
	request(fd, REQUEST_SAMPLE, 4, (const uint64_t[4]){ 0, 0, 0, 1 }, 4);
	f = expect_kept(fd, 2);
	CHECK(take(&f) == session.pcontrol.realtime && take(&f) == session.pcontrol.monotonic);
	CHECK(f.words[f.at + 7] == 99);
	free(f.words);
	CHECK(sample_statistic(fd, 4, SAMPLE_PAUSED, STATISTIC_PAUSED_NS) > 0);
	CHECK(gate_enter());
	pcontrol_called(&session, -5);
	gate_leave();
	request(fd, REQUEST_SAMPLE, 5, (const uint64_t[4]){ 0 }, 4);
	CHECK((int64_t)sample_statistic(fd, 5, SAMPLE_PAUSED, STATISTIC_LEVEL) == -5);

	/* The last sample, switched off: frozen values, and what was kept. */
	CHECK(gate_enter());
	session_select(&session, true, NULL, 0);
	CHECK(session_sample(&session, NULL));
	agent_move(AGENT_RUNNING, AGENT_FINAL);
	last_send(&link_of_rank.paths, &identity, &session, END_EXIT);
	link_stop();
	gate_leave();
	final = accept(listening, NULL, NULL);
	expect_hello(final, CONNECTION_FINAL);
	f = expect_kept(final, 2);
	free(f.words);
	CHECK(expect_sample(final, 0, SAMPLE_FINAL, 0) == 99);
	close(final);
	close(fd);
	CHECK(agent_move(AGENT_FINAL, AGENT_IDLE));
	end_conversation(listening);
}

static void test_what_is_kept_gives_way_to_the_last_sample(void)
{
	static unsigned char room[6144];
	struct wire small = { .bytes = room, .room = sizeof room, .fixed = true }, large = { 0 };
	const struct agent_statistics statistics = { 0 };

	fake_reset();
	variable("many", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 400);
	open_session("", 10);
	CHECK(sample_with(NULL));
	pcontrol_called(&session, 2);
	frame_answer(&large, 0, &session, (struct generations){ 0 }, SAMPLE_FINAL, END_EXIT, &statistics);
	frame_answer(&small, 0, &session, (struct generations){ 0 }, SAMPLE_FINAL, END_EXIT, &statistics);
	CHECK(!small.failed && !large.failed && large.length == small.length + session.pcontrol.kept.length);
	wire_free(&large);
	session_drop(&session);
}

static void test_what_is_too_large_is_not_kept(void)
{
	char name[256];

	memset(name, 'n', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	fake_reset();
	for (int i = 0; i < 60; i++)
		variable("calls", COUNTER, TYPE_UNSIGNED, 4, BIND_COMM, 1);
	open_session("", 1000);
	for (int i = 0; i < 200; i++)
		session_object_named(&session, make(BIND_COMM, 1), name);
	pcontrol_called(&session, 2);
	CHECK(session.pcontrol.keeps == 1); /* 12,000 handles of some 40 words each */
	for (int i = 0; i < 100; i++)
		session_object_named(&session, make(BIND_COMM, 1), name);
	pcontrol_called(&session, 2);
	CHECK(session.pcontrol.keeps == 1 && session.pcontrol.calls == 2 && session.pcontrol.kept.length > 0);
	session_drop(&session);
}

static void test_conversation(void)
{
	uint64_t unseen[3] = { 0 }, seen[3], blob[2] = { 5, 0x6f6c6c6568 }, first = 0;
	struct frame f;
	int listening, fd, final;

	fake_reset();
	variable("mood", STATE, TYPE_INT, 4, BIND_NONE, 1)->value[0][0].i = 7;
	variable("calls", COUNTER, TYPE_UNSIGNED, 4, BIND_COMM, 1)->value[1][0].i = 41;
	CHECK(gate_try());
	open_session("", 10);
	session_object_freed(&session, make(BIND_COMM, 1));
	make(BIND_COMM, 2);
	gate_leave();
	listening = begin_conversation(false);
	fd = accept(listening, NULL, NULL);
	CHECK(expect_hello(fd, CONNECTION_STAYS) == 0);
	request(fd, REQUEST_SAMPLE, 1, unseen, 3);
	CHECK(expect_sample(fd, 1, SAMPLE_FRESH, 4) == 7); /* ENUMS, VARIABLES, LAYOUT, REMAINS */
	seen[0] = session.catalogue.generation;
	seen[1] = session.layout_generation;
	seen[2] = session.remains.generation;
	request(fd, REQUEST_SAMPLE, 2, seen, 3);
	expect_sample(fd, 2, SAMPLE_FRESH, 0); /* numbers only */

	request(fd, 99, 3, NULL, 0);
	f = next_frame(fd);
	CHECK(f.header.type == FRAME_ERROR && take(&f) == ERROR_UNSUPPORTED && f.header.sequence == 3);
	free(f.words);

	/* 3,000 control variables come in several parts. */
	for (unsigned parts = 0; first < FAKE_CVARS; parts++) {
		uint64_t enumerations[4];
		size_t count;

		CHECK(parts < 100);
		f = cvars_page(fd, first, enumerations, &count);
		CHECK(f.words[1] > first);
		first = take(&f);
		free(f.words);
	}
	first = 0;
	request(fd, REQUEST_CATEGORIES, 5, &first, 1);
	f = next_frame(fd);
	CHECK(f.header.type == FRAME_CATEGORIES && take(&f) == 1 && take(&f) == 1 && take(&f) == 1);
	free(f.words);

	/* The blob comes back after the exporter went away and returned. */
	request(fd, REQUEST_BLOB, 6, blob, 2);
	request(fd, REQUEST_SAMPLE, 7, seen, 3);
	expect_sample(fd, 7, SAMPLE_FRESH, 0);
	close(fd);
	fd = accept(listening, NULL, NULL);
	CHECK(expect_hello(fd, CONNECTION_STAYS) == 5);

	/* Garbage ends the connection, nothing else. */
	CHECK(send(fd, "not the protocol at all", 23, 0) == 23);
	close(fd);
	fd = accept(listening, NULL, NULL);
	CHECK(expect_hello(fd, CONNECTION_STAYS) == 5);

	/* The last sample, over a connection of its own; the thread leaves, so that pthread_exit can end the program. */
	CHECK(gate_enter());
	agent_move(AGENT_RUNNING, AGENT_FINAL);
	last_send(&link_of_rank.paths, &identity, &session, END_FINALIZE);
	link_stop();
	gate_leave();
	final = accept(listening, NULL, NULL);
	CHECK(expect_hello(final, CONNECTION_FINAL) == 5);
	CHECK(expect_sample(final, 0, SAMPLE_FINAL, 4) == 7);
	close(final);
	CHECK(recv(fd, &first, sizeof first, 0) == 0);
	close(fd);

	/* exit in a signal handler: the same without an allocation. */
	CHECK(gate_enter());
	last_send(&link_of_rank.paths, &identity, &session, END_EXIT);
	gate_leave();
	final = accept(listening, NULL, NULL);
	CHECK(expect_hello(final, CONNECTION_FINAL) == 5);
	CHECK(expect_sample(final, 0, SAMPLE_FINAL, 4) == 7);
	close(final);

	/* Nobody listens: the last sample is lost at once, without a wait. */
	close(listening);
	unlink(path);
	CHECK(gate_enter());
	last_send(&link_of_rank.paths, &identity, &session, END_FINALIZE);
	gate_leave();
	end_conversation(-1);
}

int main(void)
{
	test_a_string_is_padded_with_zeros();
	test_a_frame_over_the_bound_is_never_sent();
	test_deny_list();
	test_values_are_widened();
	test_what_cannot_be_opened_is_said();
	test_continuous_variables_are_never_started();
	test_variables_appear_later_and_come_to_life();
	test_a_sample_gives_way();
	test_what_comes_to_life_is_not_forgotten_when_a_sample_gives_way();
	test_a_watermark_of_zero_remains();
	test_a_counter_of_zero_remains_and_a_level_does_not();
	test_a_failed_read_is_zero_and_counted();
	test_selection();
	test_a_freed_object_leaves_what_it_counted();
	test_a_source_that_starts_anywhere();
	test_a_rename_starts_a_new_contribution();
	test_bounds();
	test_an_object_got_repeatedly_ends_with_its_last_reference();
	test_a_handle_that_is_used_again_is_another_object();
	test_a_bound_handle_is_closed_before_its_objects_end();
	test_thousands_of_objects_come_and_go();
	test_each_kind_has_a_bound_of_its_own();
	test_details_are_bounded();
	test_the_layouts_size_is_known();
	test_keys_come_and_go();
	test_details_on_the_wire();
	test_what_a_constructors_name_tells();
	test_a_name_too_long_for_the_layout_is_cut();
	test_values_are_narrowed_or_refused();
	test_what_is_counted_while_switched_off_is_subtracted();
	test_an_object_that_goes_while_switched_off_ends_where_it_was();
	test_a_rename_while_switched_off();
	test_what_cannot_be_read_is_not_subtracted();
	test_what_is_kept_gives_way_to_the_last_sample();
	test_what_is_too_large_is_not_kept();
	test_gate();
	test_waking_a_thread_that_leaves_hurts_nobody();
	test_a_passive_rank_is_read_by_its_program_alone();
	test_a_tool_has_sessions_and_handles_of_its_own();
	test_a_tools_handle_ends_before_its_object();
	test_tools_are_forgotten_when_mpi_is_over();
	test_all_handles_of_a_session();
	test_tools_are_bounded();
	test_writing_must_be_allowed();
	test_control_variables_one_by_one();
	test_control_variables_name_their_enumerations();
	test_large_values_of_a_bound_control_variable();
	test_categories_have_a_stamp();
	test_tools_stay_out_of_a_passive_rank();
	test_a_sample_is_kept_and_told_until_it_has_been_seen();
	test_conversation();
	puts("agent tests: 51 passed, 0 failed");
	return 0;
}
