/*
 * source_test.c - variables that another library measures: which of it is taken, what becomes of its variables and
 * pairs, when it is switched on and off, and how the exporter is told.
 */
#define _GNU_SOURCE
#include "caller.h"
#include "fake_source.h"
#include "gate.h"
#include "identity.h"
#include "mapped.h"
#include "now.h"
#include "pcontrol.h"
#include "test.h"
#include "tools/tools.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static void *find_nothing(const char *function)
{
	(void)function;
	return NULL;
}

static const struct source_mpi mpi = { .abi = 9, .find = find_nothing };

/* The session with the source, in a rank that runs, as in MPI_Init; fake_reset and fake_source_reset have been
 * called. */
static void open_with(const char *deny, source_function *offered)
{
	open_session(deny, 1000);
	sources_begin(&session, offered, &mpi);
	CHECK(agent_move(AGENT_IDLE, AGENT_RUNNING));
	agent_measure(true);
}

static void open_with_source(void)
{
	fake_reset();
	fake_source_reset();
	open_with("", fake_source_function);
}

static void close_session(void)
{
	CHECK(agent_move(AGENT_RUNNING, AGENT_IDLE));
	session_drop(&session);
	CHECK(fake_open_handles == 0);
}

/* The handle of a variable on an object (NULL: on none); NULL: there is none. */
static struct handle *handle_of(const struct object *o, const char *name)
{
	if (o == NULL)
		o = &session.unbound;
	for (size_t i = 0; i < o->count; i++)
		if (strcmp(o->handles[i].variable->name, name) == 0)
			return &o->handles[i];
	return NULL;
}

static uint32_t number_of(const char *name)
{
	for (size_t i = 0; i < session.catalogue.count; i++)
		if (strcmp(session.catalogue.variables[i]->name, name) == 0)
			return (uint32_t)i;
	CHECK(false);
	return 0;
}

/* What a handle shows now. */
static const uint64_t *shown(struct handle *h)
{
	static uint64_t values[DISTRIBUTION_ELEMENTS];

	handle_values(&session, h, values);
	return values;
}

/* ---- which source ---- */

void test_a_source_is_taken_or_left(void)
{
	static const struct source of_tomorrow = { .version = SOURCE_VERSION + 1 };
	const struct {
		source_function *offered;
		const struct source *is;
		const char *refusal;
	} left[] = {
		{ NULL, NULL, NULL },                                           /* nobody is there */
		{ fake_source_function, NULL, NULL },                           /* it doesn't know our version */
		{ fake_source_function, &of_tomorrow, NULL },                   /* it thinks that it does */
		{ fake_source_function, &fake_source, "no clock can be trusted" }, /* it can't measure */
	};

	for (size_t i = 0; i < sizeof left / sizeof left[0]; i++) {
		struct object *o;

		fake_reset();
		fake_source_reset();
		fake_offered = left[i].is;
		fake_refusal = left[i].refusal;
		variable("calls", COUNTER, TYPE_UNSIGNED, 4, BIND_COMM, 1)->value[1][0].i = 7;
		open_with("", left[i].offered);
		o = make(BIND_COMM, 1);
		fake_call_ends(SEND_BYTES, o->number, 100);
		pcontrol_called(&session, 0);
		pcontrol_called(&session, 1);
		CHECK(sample_with(NULL) && session.value_count == 1 && session.values[0] == 7 && session.catalogue.count == 1);
		object_freed(&session, o);
		CHECK(session.sourced.source == NULL && fake_switched == 0 && fake_events[0] == '\0');
		close_session();
	}
	open_with_source();
	CHECK(session.sourced.source == &fake_source && fake_measuring);
	close_session();
	CHECK(!fake_measuring);
}

/* ---- variables and pairs ---- */

void test_variables_of_a_source_appear_among_the_librarys(void)
{
	const struct variable *v;
	struct object *comm;
	uint64_t layout;

	fake_reset();
	fake_source_reset();
	variable("first", COUNTER, TYPE_UNSIGNED, 4, BIND_COMM, 1)->value[1][0].i = 3;
	open_with("", fake_source_function);
	comm = make(BIND_COMM, 1);
	CHECK(sample_with(NULL) && session.catalogue.count == 1 && session.value_count == 1);
	layout = session.layout_generation;

	fake_call(SEND_TIME, comm->number, 5);
	CHECK(sample_with(NULL) && session.catalogue.count == 2 && session.value_count == 1 + DISTRIBUTION_ELEMENTS);
	CHECK(session.values[0] == 3 && session.values[1] == 5 && session.values[2 + 3] == 1); /* 5 units: above 4, up to 8 */
	CHECK(session.layout_generation > layout);
	v = session.catalogue.variables[1];
	CHECK(v->number == 1 && v->index == SOURCE_INDEX && v->distribution && v->state == VARIABLE_OPEN &&
	      v->is.mpi_class == TIMER);
	CHECK(v->is.datatype == TYPE_UINT64 && v->is.datatype_bytes == 8 && v->is.bind == BIND_COMM);
	CHECK(v->is.readonly && v->is.continuous && !v->is.atomic && v->enumeration == NULL);

	/* One more of the library's behind it, and then two of the source's at once, of which only one has a pair. */
	variable("second", COUNTER, TYPE_UNSIGNED, 4, BIND_COMM, 1)->value[1][0].i = 4;
	CHECK(sample_with(NULL) && session.catalogue.count == 3 && session.catalogue.variables[2]->index == 1);
	fake_call(PUT_TIME, 0, 1);
	CHECK(sample_with(NULL) && session.catalogue.count == 5 && session.handles == 4);
	CHECK(session.catalogue.variables[3]->index == SOURCE_INDEX + 1 && !session.catalogue.variables[3]->distribution);
	CHECK(session.catalogue.variables[4]->index == SOURCE_INDEX + 2);

	/* A further object has the library's two, and what is called on it. */
	comm = make(BIND_COMM, 2);
	CHECK(comm->count == 2 && session.bound[BIND_COMM] == 2 && session.bound[BIND_WIN] == 0);
	CHECK(sample_with(NULL) && comm->count == 2);
	fake_call(SEND_BYTES, comm->number, 1000);
	CHECK(sample_with(NULL) && comm->count == 3 && *shown(handle_of(comm, "send_bytes")) == 1000);
	CHECK(session.sampled_layout == session.layout_generation);
	close_session();
}

void test_a_pair_counts_since_its_object_was_made(void)
{
	struct object *comm, *win;
	const struct handle *h;

	open_with_source();
	comm = make(BIND_COMM, 1);
	win = make(BIND_WIN, 2);
	usleep(1000);
	fake_call(SEND_TIME, comm->number, 1);
	fake_call(PUT_TIME, win->number, 2);
	fake_call(PUT_TIME, 0, 3); /* on a window that isn't tracked */
	fake_call(LATE_COUNT, 0, 4);
	CHECK(sample_with(NULL) && session.handles == 4);
	h = handle_of(comm, "send_time");
	CHECK(h->created == comm->created && h->first == NULL && h->origin == NULL && h->object == comm->number);
	CHECK(handle_of(win, "put_time")->created == win->created && *shown(handle_of(win, "put_time")) == 2);
	CHECK(handle_of(NULL, "put_time")->created == session.unbound.created && *shown(handle_of(NULL, "put_time")) == 3);
	CHECK(session.unbound.created != 0 && session.unbound.created <= comm->created);
	CHECK(handle_of(NULL, "late_count")->count == 1 && *shown(handle_of(NULL, "late_count")) == 4);
	close_session();
}

static bool always(void)
{
	return true;
}

static int patience;

static bool when_patience_ends(void)
{
	return patience-- == 0;
}

void test_new_pairs_give_way(void)
{
	struct object *comm;

	open_with_source();
	comm = make(BIND_COMM, 1);
	for (int i = 0; i < 6; i++)
		fake_call(MORE_TIMES + i, comm->number, 1);
	CHECK(!sample_with(always) && comm->count == 0);
	patience = 3;
	CHECK(!sample_with(when_patience_ends) && comm->count == 3);
	fake_call(SEND_BYTES, comm->number, 9); /* comes up before the others have been taken */
	CHECK(sample_with(NULL) && comm->count == 7 && *shown(handle_of(comm, "send_bytes")) == 9);
	CHECK(sample_with(NULL) && comm->count == 7 && session.sourced.told_count == 0); /* no list that only grows */
	close_session();
}

void test_variables_of_a_source_may_be_denied(void)
{
	struct object *comm;

	fake_reset();
	fake_source_reset();
	open_with("send_*", fake_source_function);
	comm = make(BIND_COMM, 1);
	fake_call(SEND_TIME, comm->number, 1);
	fake_call(LATE_COUNT, 0, 1);
	CHECK(sample_with(NULL) && session.handles == 1 && comm->count == 0);
	CHECK(session.catalogue.variables[number_of("send_time")]->state == VARIABLE_DENIED);
	CHECK(session.catalogue.variables[number_of("late_count")]->state == VARIABLE_OPEN);
	close_session();
}

void test_variables_of_a_source_are_selected(void)
{
	uint64_t second_only = 2;

	open_with_source();
	fake_call(SEND_BYTES, 0, 100); /* which is number 1, because send_time comes before it */
	fake_call(SEND_TIME, 0, 7);
	CHECK(sample_with(NULL) && session.value_count == 1 + DISTRIBUTION_ELEMENTS);
	session_select(&session, false, &second_only, 1);
	CHECK(sample_with(NULL) && session.value_count == 1 && session.values[0] == 100);
	fake_call(LATE_COUNT, 0, 1); /* new, and inside the map's word: not selected */
	CHECK(sample_with(NULL) && session.value_count == 1 && session.handles == 3);
	session_select(&session, true, NULL, 0);
	CHECK(sample_with(NULL) && session.value_count == 2 + DISTRIBUTION_ELEMENTS);
	close_session();
}

void test_pairs_are_bounded(void)
{
	const size_t times = FAKE_MEASURED - MORE_TIMES;
	size_t pairs = 0;
	uint64_t over;

	open_with_source();
	for (int i = 0; i < 900; i++)
		make(BIND_COMM, i + 1);
	for (const struct object *o = session.unbound.after; o != NULL; o = o->after)
		for (size_t k = 0; k < times; k++, pairs++)
			fake_call(MORE_TIMES + k, o->number, 1);
	CHECK(sample_with(NULL));
	over = session.handles_over;
	CHECK(over > 0 && session.handles + over == pairs && session.layout_words <= MAX_FRAME_WORDS &&
	      session.values_in_all <= MAX_VALUES);
	CHECK(session.handles > 4000); /* that many have room: it is not the first few */
	CHECK(sample_with(NULL) && session.handles_over == over);

	/* What LAYOUT can need at most fits the frame, and what has gone makes room. */
	while (session.unbound.after != NULL)
		object_freed(&session, session.unbound.after);
	CHECK(session.handles == 0 && session.values_in_all == 0 && session.layout_words == 16);
	close_session();
}

/* ---- objects ---- */

void test_a_source_is_told_of_objects(void)
{
	struct object *comm, *file, *group;

	open_with_source();
	comm = make(BIND_COMM, 5);
	group = make(BIND_GROUP, 6); /* no call names one */
	file = make(BIND_FILE, 5);
	make(BIND_WIN, -2147483647); /* an MPICH handle: its sign isn't extended */
	object_freed(&session, comm);
	object_freed(&session, group);
	object_freed(&session, file);
	CHECK(strcmp(fake_events, "made kind 1 handle 5 number 1 rank 1 of 2; made kind 4 handle 5 number 3 rank -1 of -1; "
				  "made kind 8 handle 2147483649 number 4 rank 1 of 2; "
				  "freed kind 1 handle 5 number 1; freed kind 4 handle 5 number 3; ") == 0);
	close_session();
}

void test_an_object_that_is_not_tracked_is_not_told(void)
{
	fake_reset();
	fake_source_reset();
	open_session("", 1);
	sources_begin(&session, fake_source_function, &mpi);
	make(BIND_COMM, 1);
	CHECK(make(BIND_COMM, 2) == NULL && session.objects_over == 1);
	CHECK(strcmp(fake_events, "made kind 1 handle 1 number 1 rank 1 of 2; ") == 0);
	session_drop(&session);
}

/* What came up since the last sample is taken along, and nothing is read afterwards (the fake's read looks). */
void test_a_freed_object_leaves_what_was_measured(void)
{
	struct object *o;
	const struct remain *m;

	open_with_source();
	for (int i = 1; i <= 3; i++) {
		o = make(BIND_COMM, 1);
		object_named(&session, o, "halo");
		fake_call(SEND_TIME, o->number, 1);
		fake_call(SEND_BYTES, o->number, (uint64_t)i);
		if (i == 2)
			CHECK(sample_with(NULL)); /* with or without one */
		fake_call(SEND_TIME, o->number, 6);
		object_freed(&session, o);
	}
	CHECK(session.handles == 0 && session.remains.lost == 0);
	m = remain_of("halo", number_of("send_time"));
	CHECK(m->contributions == 3 && m->count == DISTRIBUTION_ELEMENTS && m->gained[0] == 21 && m->gained[1] == 3 &&
	      m->gained[1 + 3] == 3);
	CHECK(m->gained[2] == 0 && m->first[0] == 0 && m->max[0] == 7);
	m = remain_of("halo", number_of("send_bytes"));
	CHECK(m->gained[0] == 6 && m->max[0] == 3 && m->min[0] == 1);
	CHECK(sample_with(NULL) && session.value_count == 0);
	close_session();
}

void test_a_rename_splits_what_was_measured(void)
{
	struct object *o;

	open_with_source();
	o = make(BIND_COMM, 1);
	fake_call(SEND_TIME, o->number, 2);
	object_named(&session, o, "old"); /* no sample has seen the pair yet */
	CHECK(remain_of("", number_of("send_time"))->gained[0] == 2 && handle_of(o, "send_time")->origin[0] == 2);
	fake_call(SEND_TIME, o->number, 10);
	object_named(&session, o, "new");
	fake_call(SEND_TIME, o->number, 100);
	CHECK(*shown(handle_of(o, "send_time")) == 112);
	object_freed(&session, o);
	CHECK(remain_of("old", number_of("send_time"))->gained[0] == 10 &&
	      remain_of("old", number_of("send_time"))->created != 0);
	CHECK(remain_of("new", number_of("send_time"))->gained[0] == 100 &&
	      remain_of("new", number_of("send_time"))->gained[1 + 7] == 1);
	close_session();
}

void test_a_pair_of_an_object_that_has_gone_is_lost_and_counted(void)
{
	struct object *o;

	open_with_source();
	o = make(BIND_COMM, 1);
	make(BIND_COMM, 2);
	object_freed(&session, o);
	fake_call(SEND_BYTES, 1, 10); /* a call that ends after its communicator */
	fake_call(SEND_BYTES, 2, 20);
	fake_call(SEND_BYTES, 9, 30); /* there never was one */
	CHECK(sample_with(NULL) && session.handles == 1 && session.values[0] == 20 && session.remains.lost == 2);
	CHECK(session.remains.generation > 0);
	close_session();
}

/* ---- on and off ---- */

void test_a_source_is_switched_off_with_the_program(void)
{
	struct object *comm, *meanwhile;

	open_with_source();
	comm = make(BIND_COMM, 1);
	fake_call(SEND_TIME, comm->number, 1);
	pcontrol_called(&session, 0); /* the pair comes up with it */
	CHECK(!fake_measuring && comm->count == 1);
	fake_call(SEND_TIME, comm->number, 10);      /* isn't measured */
	fake_call_ends(SEND_TIME, comm->number, 30); /* had begun before */
	CHECK(sample_with(NULL) && session.values[0] == 1);
	meanwhile = make(BIND_COMM, 2);
	fake_call_ends(SEND_BYTES, meanwhile->number, 40);
	CHECK(sample_with(NULL) && *shown(handle_of(meanwhile, "send_bytes")) == 40);
	fake_call_ends(SEND_BYTES, meanwhile->number, 2);
	CHECK(*shown(handle_of(meanwhile, "send_bytes")) == 40);

	pcontrol_called(&session, 1);
	CHECK(fake_measuring);
	fake_call(SEND_TIME, comm->number, 100);
	CHECK(*shown(handle_of(comm, "send_time")) == 131 && handle_of(comm, "send_time")->excluded[0] == 30);
	CHECK(handle_of(meanwhile, "send_bytes")->excluded[0] == 2);
	object_freed(&session, comm);
	CHECK(remain_of("", number_of("send_time"))->gained[0] == 101 &&
	      remain_of("", number_of("send_time"))->gained[1 + 5] == 0);

	/* What ends while switched off ends where it was, and 0 twice or 1 without 0 switches nothing. */
	pcontrol_called(&session, 0);
	fake_call_ends(SEND_BYTES, meanwhile->number, 1000);
	object_freed(&session, meanwhile);
	CHECK(remain_of("", number_of("send_bytes"))->gained[0] == 40);
	fake_switched = 0;
	pcontrol_called(&session, 0);
	pcontrol_called(&session, 7);
	CHECK(!fake_measuring && fake_switched == 0);
	pcontrol_called(&session, 1);
	pcontrol_called(&session, 1);
	CHECK(fake_measuring && fake_switched == 1);
	close_session();
}

void test_a_source_measures_only_while_the_agent_runs(void)
{
	open_with_source();
	agent_give_up("a test wants it to");
	CHECK(!fake_measuring);
	agent_measure(true); /* MPI_Pcontrol(1) in another thread, which had looked before */
	CHECK(!fake_measuring);
	CHECK(agent_move(AGENT_OFF, AGENT_RUNNING));
	agent_measure(true);
	CHECK(fake_measuring);
	close_session();
	agent_measure(true); /* there is none any more */
	CHECK(!fake_measuring);
}

/* ---- the exporter ---- */

/* An operation's code, and its first word of what it gives where that is asked for. */
static int tool(int fd, const uint64_t *words, size_t count, uint64_t *given)
{
	struct frame f;
	int code;

	request(fd, REQUEST_TOOL, 5, words, count);
	f = next_frame(fd);
	CHECK(f.header.type == FRAME_TOOL && take(&f) == words[0]);
	code = (int)take(&f);
	CHECK(code == CODE_SUCCESS || given != NULL || f.words[f.at] > 0); /* refused in words */
	skip_string(&f);
	for (size_t i = 0; code == CODE_SUCCESS && given != NULL && f.at < f.header.words; i++)
		given[i] = take(&f);
	free(f.words);
	return code;
}

/* Words of a string behind its length, at most 16 bytes of it. */
static void put_name(uint64_t to[2], const char *name)
{
	to[0] = to[1] = 0;
	memcpy(to, name, strlen(name));
}

void test_tools_are_refused_what_the_library_does_not_have(void)
{
	enum { CREATE = 0, ALLOC = 2, PVAR_INDEX = 12, CATEGORY_INDEX = 14 };
	uint64_t words[5], given[3] = { 0 };
	int listening, fd;

	fake_reset();
	fake_source_reset();
	variable("calls", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1);
	open_session("", 10);
	sources_begin(&session, fake_source_function, &mpi);
	fake_call_ends(SEND_TIME, 0, 1);
	CHECK(sample_with(NULL) && session.catalogue.count == 2);
	fd = open_conversation(&listening);
	CHECK(tool(fd, &(uint64_t){ CREATE }, 1, given) == CODE_SUCCESS);
	CHECK(tool(fd, (uint64_t[]){ ALLOC, given[0], 0, 0 }, 4, given + 1) == CODE_SUCCESS);
	CHECK(tool(fd, (uint64_t[]){ ALLOC, given[0], 1, 0 }, 4, NULL) == CODE_NOT_SUPPORTED);

	words[0] = PVAR_INDEX;
	words[1] = TIMER;
	words[2] = 9;
	put_name(words + 3, "send_time");
	CHECK(tool(fd, words, 5, given) == CODE_SUCCESS && given[0] == SOURCE_INDEX && given[1] == 2);
	words[1] = COUNTER;
	CHECK(tool(fd, words, 5, given) == CODE_INVALID_NAME);
	words[2] = 5;
	put_name(words + 3, "calls");
	CHECK(tool(fd, words, 4, given) == CODE_SUCCESS && given[0] == 0 && given[1] == 1);
	words[0] = CATEGORY_INDEX;
	words[1] = 10;
	put_name(words + 2, "fake_calls");
	CHECK(tool(fd, words, 4, given) == CODE_SUCCESS && given[0] == 1); /* behind the library's only one */
	words[1] = 3;
	put_name(words + 2, "all");
	CHECK(tool(fd, words, 3, given) == CODE_SUCCESS && given[0] == 0);
	put_name(words + 2, "alm");
	CHECK(tool(fd, words, 3, given) == CODE_INVALID_NAME);
	close_conversation(fd, listening);
}

/* Category `number` of the answer, at its lists of members; the frame's words are the caller's to free. */
static struct frame category(int fd, uint64_t number)
{
	struct frame f;

	request(fd, REQUEST_CATEGORIES, 6, (const uint64_t[1]){ 0 }, 1);
	f = next_frame(fd);
	CHECK(f.header.type == FRAME_CATEGORIES && take(&f) == 2 && take(&f) == 2 && take(&f) == 2);
	for (uint64_t i = 0; i < number; i++)
		f.at += take(&f);
	take(&f);
	CHECK(take(&f) == number);
	skip_string(&f);
	skip_string(&f);
	return f;
}

void test_a_source_has_a_category(void)
{
	const uint64_t unseen[4] = { 0 };
	struct frame f;
	int listening, fd;

	fake_reset();
	fake_source_reset();
	fake_stamp = 41;
	variable("calls", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1);
	open_session("", 10);
	sources_begin(&session, fake_source_function, &mpi);
	fd = open_conversation(&listening);
	request(fd, REQUEST_SAMPLE, 1, unseen, 4);
	CHECK(sample_statistic(fd, 1, SAMPLE_FRESH, STATISTIC_STAMP) == 42);
	f = category(fd, 1);
	CHECK(take(&f) == 0 && take(&f) == 0 && take(&f) == 0 && take(&f) == 42);
	free(f.words);

	CHECK(gate_enter());
	fake_call_ends(SEND_BYTES, 0, 1); /* and so two variables */
	gate_leave();
	request(fd, REQUEST_SAMPLE, 2, unseen, 4);
	CHECK(sample_statistic(fd, 2, SAMPLE_FRESH, STATISTIC_STAMP) == 44);
	f = category(fd, 1);
	CHECK(take(&f) == 2 && take(&f) == SOURCE_INDEX && take(&f) == SOURCE_INDEX + 1 && take(&f) == 0 &&
	      take(&f) == 0 && take(&f) == 44);
	free(f.words);
	f = category(fd, 0); /* the library's is as it was */
	CHECK(take(&f) == 1 && take(&f) == 0 && take(&f) == 2);
	free(f.words);

	fake_stamp = -1; /* of a library that can't say nobody knows */
	request(fd, REQUEST_SAMPLE, 3, unseen, 4);
	CHECK(sample_statistic(fd, 3, SAMPLE_FRESH, STATISTIC_STAMP) == 0);
	close_conversation(fd, listening);
}

void test_variables_of_a_source_on_the_wire(void)
{
	const uint64_t unseen[4] = { 0 };
	struct frame f;
	int listening, fd;

	fake_reset();
	fake_source_reset();
	open_session("", 10);
	sources_begin(&session, fake_source_function, &mpi);
	make(BIND_COMM, 1);
	fake_call_ends(SEND_TIME, 1, 3);
	fake_call_ends(SEND_BYTES, 1, 30);
	fd = open_conversation(&listening);
	request(fd, REQUEST_SAMPLE, 1, unseen, 4);
	f = next_frame(fd);
	CHECK(f.header.type == FRAME_VARIABLES && f.words[1] == 2);
	f.at = 3;
	CHECK(take(&f) == 0 && take(&f) == SOURCE_INDEX && take(&f) == TIMER && take(&f) == 1 &&
	      take(&f) == TYPE_UINT64 && take(&f) == 8);
	CHECK(take(&f) == BIND_COMM && take(&f) == (1 | 2 | 8) && take(&f) == 0 && take(&f) == VARIABLE_OPEN &&
	      take(&f) == 0);
	skip_string(&f);
	skip_string(&f);
	take(&f);
	CHECK(take(&f) == 1 && take(&f) == SOURCE_INDEX + 1 && f.words[f.at + 5] == (1 | 2));
	free(f.words);
	f = next_frame(fd);
	CHECK(f.header.type == FRAME_LAYOUT);
	/* The last two records: handle, variable, object, count, created, flags and nothing behind them, for all count
	 * from zero. */
	CHECK(f.words[f.header.words - 15] == 2 && f.words[f.header.words - 14] == 6);
	CHECK(f.words[f.header.words - 11] == 1 && f.words[f.header.words - 10] == DISTRIBUTION_ELEMENTS &&
	      f.words[f.header.words - 8] == 4);
	CHECK(f.words[f.header.words - 9] == session.last->created && f.words[f.header.words - 3] == 1);
	free(f.words);
	CHECK(expect_sample(fd, 1, SAMPLE_FRESH, 0) == 3);
	close_conversation(fd, listening);
}

/* ---- calls under way ---- */

static void sample_now(int fd, uint32_t sequence)
{
	request(fd, REQUEST_SAMPLE, sequence, (const uint64_t[4]){ 0 }, 4);
}

/* What the source says next, as the agent's thread reads it: under the gate. */
static void happens(struct source_calls calls)
{
	CHECK(gate_enter());
	fake_calls = calls;
	gate_leave();
}

static struct source_calls calls_of_one(uint64_t inside_ns, uint64_t observed_ns)
{
	return (struct source_calls){
		.threads[0] = { .id = 1, .inside_ns = inside_ns, .observed_ns = observed_ns },
		.thread_count = 1,
	};
}

void test_calls_under_way_on_the_wire(void)
{
	const struct source_calls brief = {
		.threads = {
			{ .id = 1, .tid = 11, .inside_ns = 5, .observed_ns = 7, .activity_ns = { 1, 0, 3, 1 }, .now_ns = 20, .ended_ns = 19 },
			{ .id = 4, .tid = 12, .observed_ns = 7, .now_ns = 30, .begun_ns = 29, .ended_ns = 28, .function = "MPI_Send",
			  .bind = BIND_COMM, .object = 3, .peer = ANY_PEER, .tag = 7, .root = -1,
			  .collective = "MPI_Ibarrier", .collective_on = 5, .collective_number = 44 },
		},
		.thread_count = 2,
		.running_ns = 999999999, .function = "MPI_Send", .bind = BIND_COMM, .object = 3, .from = (uintptr_t)sample_now,
	};
	struct source_calls longer = brief;
	char program[4096] = "";
	struct told_calls told;
	int listening, fd, file;
	void *loaded;

	fake_reset();
	fake_source_reset();
	open_session("", 10);
	sources_begin(&session, fake_source_function, &mpi);
	fd = open_conversation(&listening);
	sample_now(fd, 1);
	CHECK(sample_calls(fd, 1, SAMPLE_FRESH).known == 0);

	happens(brief);
	sample_now(fd, 2);
	told = sample_calls(fd, 2, SAMPLE_FRESH);
	CHECK(told.known == 1 && told.inside_ns == 5 && told.observed_ns == 7 && told.running_ns == 999999999);
	CHECK(told.bind == BIND_COMM && told.object == 3 && strcmp(told.function, "MPI_Send") == 0);
	CHECK(memcmp(told.activity_ns, brief.threads[0].activity_ns, sizeof told.activity_ns) == 0);
	CHECK(told.cpu_ns > 0 && told.cpu_ns < (uint64_t)1 << 40);
	CHECK(told.thread_count == 2 && memcmp(told.threads, brief.threads, sizeof brief.threads[0]) == 0);
	CHECK(told.threads[1].id == 4 && told.threads[1].tid == 12 && told.threads[1].begun_ns == 29);
	CHECK(told.threads[1].peer == ANY_PEER && told.threads[1].tag == 7 && told.threads[1].root == -1);
	CHECK(told.threads[1].object == 3 && strcmp(told.function_of_second, "MPI_Send") == 0);
	CHECK(told.threads[1].collective_on == 5 && told.threads[1].collective_number == 44);
	CHECK(strcmp(told.collective_of_second, "MPI_Ibarrier") == 0);
	/* Where a short call was made nobody asks: it would be another place at each scrape. */
	CHECK(told.module[0] == '\0' && told.offset == 0);

	longer.running_ns = 1000000000;
	happens(longer);
	sample_now(fd, 3);
	told = sample_calls(fd, 3, SAMPLE_FRESH);
	CHECK(readlink("/proc/self/exe", program, sizeof program - 1) > 0);
	CHECK(told.running_ns == 1000000000 && strcmp(told.module, program) == 0 && told.offset != 0);

	/* Code that was loaded meanwhile. */
	loaded = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file = open(program, O_RDONLY), 0);
	CHECK(loaded != MAP_FAILED && close(file) == 0);
	longer.from = (uintptr_t)loaded + 16;
	happens(longer);
	sample_now(fd, 7);
	told = sample_calls(fd, 7, SAMPLE_FRESH);
	CHECK(strcmp(told.module, program) == 0 && told.offset == 16);
	CHECK(munmap(loaded, 4096) == 0);

	/* Code that is in no file has no place; the next call's is not the last one's. */
	longer.from = (uintptr_t)&longer;
	happens(longer);
	sample_now(fd, 4);
	told = sample_calls(fd, 4, SAMPLE_FRESH);
	CHECK(strcmp(told.function, "MPI_Send") == 0 && told.module[0] == '\0' && told.offset == 0);

	/* Busy: what was read last. */
	happens(brief);
	sample_now(fd, 5);
	CHECK(sample_calls(fd, 5, SAMPLE_FRESH).running_ns == 999999999);
	CHECK(gate_enter());
	fake_calls = calls_of_one(6, 9);
	sample_now(fd, 6);
	told = sample_calls(fd, 6, SAMPLE_BUSY);
	CHECK(told.known == 1 && told.inside_ns == 5 && strcmp(told.function, "MPI_Send") == 0);
	gate_leave();
	close_conversation(fd, listening);
}

/* Its own thread may not call MPI_T, and needs not. */
void test_a_passive_rank_tells_of_calls_under_way(void)
{
	const uint64_t nothing[2] = { 0, 0 };
	struct source_calls calls;
	struct told_calls told;
	int listening, fd;

	fake_reset();
	fake_source_reset();
	variable("calls", COUNTER, TYPE_UNSIGNED, 4, BIND_NONE, 1);
	open_session("", 10);
	sources_begin(&session, fake_source_function, &mpi);
	CHECK(sample_with(NULL));
	listening = begin_conversation(true);
	fd = accept(listening, NULL, NULL);
	expect_hello(fd, CONNECTION_STAYS);
	calls = calls_of_one(5, 7);
	calls.running_ns = 2;
	calls.function = "MPI_Recv";
	happens(calls);
	sample_now(fd, 1);
	told = sample_calls(fd, 1, SAMPLE_PASSIVE);
	CHECK(told.known == 1 && told.inside_ns == 5 && told.running_ns == 2 && strcmp(told.function, "MPI_Recv") == 0);
	CHECK(told.finalize_ns == 0);
	/* Selected anew there are no values until the program's next call, in which it may hang. */
	request(fd, REQUEST_SELECT, 2, nothing, 2);
	happens(calls_of_one(8, 10));
	atomic_store(&session.finalizing, monotonic_ns() - 5000000000);
	sample_now(fd, 3);
	told = sample_calls(fd, 3, SAMPLE_BUSY);
	CHECK(told.inside_ns == 8 && told.finalize_ns > 5000000000 && told.finalize_ns < 500000000000);
	CHECK(agent_move(AGENT_RUNNING, AGENT_IDLE));
	close(fd);
	end_conversation(listening);
}

/* All on a new connection, and then what has changed. */
void test_communicators_on_the_wire(void)
{
	struct told_calls told;
	int listening, fd;

	fake_reset();
	fake_source_reset();
	open_session("", 10);
	sources_begin(&session, fake_source_function, &mpi);
	fake_comm = (struct source_comm){ .object = 3, .identity = (uint64_t)1 << 63, .begun = 9 };
	fd = open_conversation(&listening);
	for (uint32_t i = 1; i <= 2; i++) {
		sample_now(fd, 2 * i);
		told = sample_calls(fd, 2 * i, SAMPLE_FRESH);
		CHECK(told.comm_count == 1 && told.comm.object == 3 && told.comm.identity == (uint64_t)1 << 63 &&
		      told.comm.begun == 9);
		sample_now(fd, 2 * i + 1);
		CHECK(sample_calls(fd, 2 * i + 1, SAMPLE_FRESH).comm_count == 0);
		if (i == 1)
			fd = reconnect(fd, listening);
	}
	close_conversation(fd, listening);
}

/* Each byte of this program's code is where it is said to be. */
void test_where_an_address_is_mapped_from(void)
{
	const uintptr_t addresses[] = {
		(uintptr_t)test_where_an_address_is_mapped_from, (uintptr_t)sample_now, (uintptr_t)dlsym(RTLD_DEFAULT, "strtol"),
	};
	struct mapped m = { 0 };
	const char *path = NULL;
	uint64_t offset;

	CHECK(!mapped_find(&m, addresses[0], &path, &offset));
	mapped_read(&m);
	mapped_read(&m);
	for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
		unsigned char there[8];
		int fd;

		CHECK(mapped_find(&m, addresses[i], &path, &offset));
		fd = open(path, O_RDONLY);
		CHECK(fd >= 0 && pread(fd, there, sizeof there, (off_t)offset) == sizeof there);
		CHECK(memcmp(there, (const void *)addresses[i], sizeof there) == 0);
		close(fd);
	}
	CHECK(!mapped_find(&m, (uintptr_t)&offset, &path, &offset)); /* [stack] */
	CHECK(!mapped_find(&m, 1, &path, &offset) && !mapped_find(&m, UINTPTR_MAX, &path, &offset));
	mapped_free(&m);
}

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SANITIZED true
#else
#define SANITIZED false
#endif

/* What a binding is like: no frame pointer, and a frame of some size. */
#define LIKE_A_BINDING __attribute__((noinline, noclone, optimize("omit-frame-pointer")))

static struct stack_frame innermost;
static uintptr_t returns_to[2], walked[2], of_is_called; /* 0: not known */
static struct mapped code;

static LIKE_A_BINDING void calls_mpi(volatile char *mine)
{
	struct stack_frame at = { (uintptr_t)__builtin_return_address(0), (uintptr_t)__builtin_dwarf_cfa() };
	const char *path;
	uint64_t offset;
	uint32_t frame;

	innermost = at;
	if (mapped_find(&code, at.from, &path, &offset) && (frame = frame_of(at.from, offset)) != SITE_HERE &&
	    (frame & SITE_BY_POINTER) == 0)
		CHECK(((uintptr_t *)(at.stack + SITE_FRAME_BYTES(frame)))[-1] == of_is_called);
	for (int i = 0; i < 2 && mapped_find(&code, at.from, &path, &offset) && caller_of(&at, offset, &at); i++)
		walked[i] = at.from;
	mine[0] = 1;
}

static LIKE_A_BINDING int is_called(int deep)
{
	volatile char mine[200];

	of_is_called = (uintptr_t)__builtin_return_address(0);
	if (deep == 0)
		calls_mpi(mine);
	else
		mine[0] = (char)is_called(deep - 1);
	returns_to[deep] = (uintptr_t)__builtin_return_address(0);
	return mine[0];
}

#if defined __x86_64__ && !defined __SANITIZE_ADDRESS__
static uintptr_t pointer_there;

static LIKE_A_BINDING void looks_at_its_caller(volatile char *mine)
{
	uintptr_t from = (uintptr_t)__builtin_return_address(0);
	const char *path;
	uint64_t offset;
	uint32_t frame;

	CHECK(mapped_find(&code, from, &path, &offset));
	frame = frame_of(from, offset);
	CHECK((frame & SITE_BY_POINTER) != 0 && SITE_FRAME_BYTES(frame) == 16 && SITE_FRAME_SAVED(frame) == 16);
	CHECK(((uintptr_t *)(pointer_there + SITE_FRAME_BYTES(frame)))[-1] == of_is_called);
	mine[0] = 1;
}

/* A frame of a size that the compiler doesn't know begins where the frame pointer says. */
static __attribute__((noinline, noclone)) void has_a_frame_pointer(int bytes)
{
	volatile char mine[bytes];

	of_is_called = (uintptr_t)__builtin_return_address(0);
	pointer_there = (uintptr_t)__builtin_frame_address(0);
	looks_at_its_caller(mine);
	mine[bytes - 1] = 1;
}
#else
static void has_a_frame_pointer(int bytes)
{
	(void)bytes;
}
#endif

/* Up two frames, and not where the stack, the file or the place is none. */
void test_the_caller_of_a_frame(void)
{
	struct stack_frame none;
	const char *path;
	uint64_t offset;

	mapped_read(&code);
	CHECK(is_called(1) == 1);
	for (int i = 0; i < 2; i++) /* sanitizers' frames may be found in another way */
		CHECK(walked[i] == returns_to[i] || (walked[i] == 0 && SANITIZED));
	CHECK(mapped_find(&code, innermost.from, &path, &offset));
	has_a_frame_pointer(77);
	none = (struct stack_frame){ innermost.from, 0 };
	CHECK(!caller_of(&none, offset, &none));
	none = (struct stack_frame){ innermost.from, 4096 };
	CHECK(!caller_of(&none, offset, &none));
	CHECK(!caller_of(&innermost, offset + 4096, &none) && !caller_of(&innermost, 1, &none));
	none = (struct stack_frame){ (uintptr_t)&none, innermost.stack };
	CHECK(!caller_of(&none, 0, &none));
	mapped_free(&code);
}

void test_which_files_are_bindings(void)
{
	CHECK(binding_of("/usr/lib/libmpi_mpifh.so.40.30.0") == BINDING_NATIVE);
	CHECK(binding_of("/opt/lib/libmpi_usempif08.so.40") == BINDING_NATIVE && binding_of("libmpifort.so.12") == BINDING_NATIVE);
	CHECK(binding_of("/usr/lib/libmpi.so.40") == BINDING_NONE && binding_of("/home/ada/libmpifort/solver") == BINDING_NONE);
	CHECK(binding_of("/usr/lib/python3/dist-packages/mpi4py/MPI.cpython-311-x86_64-linux-gnu.so") == BINDING_PYTHON);
}

void test_what_python_runs(void)
{
	static const struct {
		const char *arguments;
		size_t length;
		const char *want; /* NULL: nothing */
	} all[] = {
#define ARGUMENTS(text) text, sizeof text
		{ ARGUMENTS("run.py\0-m\0x"), "run.py" },
		{ ARGUMENTS("-u\0-W\0ignore\0-Xdev\0dir/run.py"), "dir/run.py" },
		{ ARGUMENTS("-um\0package.solver\0run.py"), "-m package.solver" },
		{ ARGUMENTS("-mpackage"), "-m package" },
		{ ARGUMENTS("-m\0mpi4py\0run.py"), "run.py" },
		{ ARGUMENTS("-m\0mpi4py.futures\0-m\0solver"), "-m solver" },
		{ ARGUMENTS("-c\0print()\0run.py"), NULL },
		{ ARGUMENTS("-m"), NULL },
		{ "", 0, NULL },
	};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		char room[64];
		const char *script = identity_script(all[i].arguments, all[i].arguments + all[i].length, room, sizeof room);

		CHECK(all[i].want == NULL ? script == NULL : script != NULL && strcmp(script, all[i].want) == 0);
	}
}
