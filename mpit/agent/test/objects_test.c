/* objects_test.c - objects, what remains of them, their handles and references, their details, and the layout that
 * tells of them. */
#include "test.h"

#include <stdio.h>
#include <string.h>

/* ---- objects and what remains of them ---- */

void test_a_freed_object_leaves_what_it_counted(void)
{
	struct object *o;

	fake_reset();
	variable("calls", COUNTER, TYPE_UNSIGNED, 4, BIND_COMM, 2);
	open_session("", 10);
	for (int i = 1; i <= 3; i++) {
		o = make(BIND_COMM, 1);
		fake_variables[0].value[1][0].i = i;
		fake_variables[0].value[1][1].i = 10;
		object_freed(&session, o);
		fake_variables[0].value[1][0].i = fake_variables[0].value[1][1].i = 0;
	}
	CHECK(session.objects == 0 && fake_open_handles == 0 && session.remains.count == 1);
	CHECK(remain_of("", 0)->contributions == 3);
	CHECK(remain_of("", 0)->gained[0] == 6 && remain_of("", 0)->gained[1] == 30);
	CHECK(remain_of("", 0)->max[0] == 3 && remain_of("", 0)->min[0] == 1);
	session_drop(&session);
}

/* The same variable may have more elements on one object than on another of the same name. */
void test_remains_grow_with_the_elements(void)
{
	struct fake_variable *v;
	const struct remain *m;

	fake_reset();
	v = variable("calls", COUNTER, TYPE_UNSIGNED, 4, BIND_COMM, 1);
	open_session("", 10);
	for (int count = 1; count <= 2; count++) {
		struct object *o;

		v->count = count;
		v->value[1][0].i = 3;
		v->value[1][1].i = 4;
		o = make(BIND_COMM, 1);
		v->value[1][0].i = 3 + 10 * count;
		v->value[1][1].i = 24;
		object_freed(&session, o);
	}
	m = remain_of("", 0);
	CHECK(m->count == 2 && m->contributions == 2);
	CHECK(m->gained[0] == 30 && m->first[0] == 6 && m->max[0] == 23 && m->min[0] == 13);
	CHECK(m->gained[1] == 20 && m->first[1] == 4 && m->max[1] == 24 && m->min[1] == 24);
	session_drop(&session);
}

void test_a_source_that_starts_anywhere(void)
{
	struct object *o;

	fake_reset();
	variable("time", TIMER, TYPE_DOUBLE, 8, BIND_COMM, 1)->value[1][0].d = -1.8e9;
	open_session("", 10);
	o = make(BIND_COMM, 1);
	fake_variables[0].value[1][0].d = -1.8e9 + 2.5;
	object_freed(&session, o);
	CHECK(as_double(remain_of("", 0)->gained[0]) == 2.5);
	CHECK(as_double(remain_of("", 0)->first[0]) == -1.8e9);
	session_drop(&session);
}

void test_a_rename_starts_a_new_contribution(void)
{
	struct object *o;

	fake_reset();
	variable("calls", COUNTER, TYPE_UNSIGNED_LONG, 8, BIND_COMM, 1);
	open_session("", 10);
	o = make(BIND_COMM, 1);
	o->handles[0].created = 1;
	object_named(&session, o, "born"); /* nothing counted yet: nothing to remember but when it got the name */
	CHECK(session.remains.count == 0 && o->handles[0].origin == NULL && o->handles[0].created > 1);
	fake_variables[0].value[1][0].i = 5;
	o->handles[0].created = 2;
	object_named(&session, o, "halo");
	CHECK(remain_of("born", 0)->gained[0] == 5 && o->handles[0].origin[0] == 5);
	CHECK(remain_of("born", 0)->created == 2 && o->handles[0].created > 2);
	fake_variables[0].value[1][0].i = 12;
	object_named(&session, o, "halo"); /* the same name: no rename */
	object_freed(&session, o);
	CHECK(remain_of("halo", 0)->gained[0] == 7 && remain_of("halo", 0)->first[0] == 0);
	CHECK(remain_of("born", 0)->gained[0] == 5);
	session_drop(&session);
}

void test_bounds(void)
{
	struct object *kept[3];

	fake_reset();
	variable("calls", COUNTER, TYPE_UNSIGNED, 4, BIND_COMM, 1)->value[1][0].i = 1;
	open_session("", 2);
	for (int i = 0; i < 3; i++)
		kept[i] = make(BIND_COMM, 1);
	CHECK(kept[1] != NULL && kept[2] == NULL && session.objects_over == 1);
	object_named(&session, kept[0], "a");
	object_freed(&session, kept[0]);
	object_freed(&session, kept[1]);
	kept[0] = make(BIND_COMM, 1);
	fake_variables[0].value[1][0].i = 2;
	object_named(&session, kept[0], "third");
	object_freed(&session, kept[0]); /* names "" and "a" are there: no room for a third */
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

/* ---- objects found by their handle ---- */

static union mpi_object handle(int number)
{
	return (union mpi_object){ .integer = number };
}

static void handle_made(int kind, int number)
{
	union mpi_object mpi = handle(number);

	byhandle_made(&session, kind, &mpi, NULL, 0);
}

static void handle_freed(int kind, int number)
{
	union mpi_object mpi = handle(number);

	byhandle_freed(&session, kind, &mpi);
}

static struct object *find(int kind, int number)
{
	union mpi_object mpi = handle(number);

	return byhandle_find(&session, kind, &mpi);
}

void test_an_object_got_repeatedly_ends_with_its_last_reference(void)
{
	union mpi_object five = handle(5), six = handle(6);

	fake_reset();
	variable("members", LEVEL, TYPE_UNSIGNED, 4, BIND_GROUP, 1);
	open_session("", 10);
	handle_made(BIND_GROUP, 5);
	handle_made(BIND_GROUP, 5);
	byhandle_got(&session, BIND_GROUP, &five); /* by the library itself, inside another call */
	byhandle_got(&session, BIND_GROUP, &six);  /* the library's own: no object of the program's */
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

void test_a_handle_that_is_used_again_is_another_object(void)
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
void test_a_bound_handle_is_closed_before_its_objects_end(void)
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

void test_thousands_of_objects_come_and_go(void)
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

void test_each_kind_has_a_bound_of_its_own(void)
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

void test_details_are_bounded(void)
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

void test_the_layouts_size_is_known(void)
{
	struct wire w = { 0 };
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
	object_made(&session, BIND_REQUEST, &(union mpi_object){ .integer = 3 }, 0, &how, 1);
	object_named(&session, make(BIND_COMM, 4), "a name of some length");
	fake_has = true;
	byhandle_key_changed(&session, o, "and another");
	CHECK(o->detail_words == 6);
	frame_answer(&w, 1, &session, (struct generations){ session.catalogue.generation, 0, session.remains.generation, false },
		     SAMPLE_FRESH, END_NONE, &(struct under_way){ 0 });
	memcpy(&words, w.bytes + 8, sizeof words);
	CHECK(words == 5 + session.layout_words - before); /* four words before the objects, one for the handles */
	wire_free(&w);
	session_drop(&session);
}

/* Only the key that the program has used is asked for: others may be gone by now. */
void test_keys_come_and_go(void)
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
		byhandle_key_changed(&session, o, steps[i].key);
		details_first_list(o->details, o->detail_words, &keys);
		CHECK(strcmp(keys.text, steps[i].keys) == 0 && keys.length == strlen(keys.text));
		CHECK(o->detail_count == (keys.length > 0 ? 1 : 0));
	}
	memset(wide, 'w', sizeof wide);
	wide[sizeof wide - 1] = '\0';
	fake_has = true;
	byhandle_key_changed(&session, o, wide); /* no room for it */
	details_first_list(o->details, o->detail_words, &keys);
	CHECK(strcmp(keys.text, "x") == 0);
	object_freed(&session, o);
	CHECK(session.layout_words == before);
	session_drop(&session);
}

void test_details_on_the_wire(void)
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
	struct making request = { .by = "Send_init" }, file = { .by = "File_open", .name = "/dat" };
	struct wire w = { 0 };
	uint64_t got;

	fake_reset();
	open_session("", 1);
	fake_detail = "a,b";
	CHECK(object_made(&session, BIND_REQUEST, &(union mpi_object){ .integer = 3 }, 0, &request, 9) != NULL);
	CHECK(object_made(&session, BIND_REQUEST, &(union mpi_object){ .integer = 4 }, 0, &request, 9) == NULL);
	CHECK(object_made(&session, BIND_FILE, &(union mpi_object){ .integer = 5 }, 0, &file, 0) != NULL);
	session.unbound.after->created = session.unbound.after->after->created = 0;
	frame_answer(&w, 1, &session, (struct generations){ session.catalogue.generation, 0, session.remains.generation, false },
		     SAMPLE_FRESH, END_NONE, &(struct under_way){ 0 });
	for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
		memcpy(&got, w.bytes + WIRE_HEADER_BYTES + 8 + 8 * i, sizeof got);
		if (got != expected[i])
			fprintf(stderr, "word %zu of LAYOUT is %#llx, not %#llx\n", i, (unsigned long long)got,
				(unsigned long long)expected[i]);
		CHECK(got == expected[i]);
	}
	wire_free(&w);
	session_drop(&session);
}

void test_what_a_constructors_name_tells(void)
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
		o = object_made(&session, cases[i].kind, &(union mpi_object){ .integer = 1 }, 0,
				&(struct making){ .by = cases[i].by }, 0);
		details_reset(&want);
		if (cases[i].key != NULL)
			details_add(&want, cases[i].key, cases[i].value);
		CHECK(o->detail_count == want.count && o->detail_words == want.words);
		CHECK(want.words == 0 || memcmp(o->details, want.packed, want.words * sizeof want.packed[0]) == 0);
		session_drop(&session);
	}
}

void test_a_name_too_long_for_the_layout_is_cut(void)
{
	struct object *o;

	fake_reset();
	open_session("", 10);
	o = make(BIND_COMM, 1);
	session.layout_words += MAX_FRAME_WORDS - session.layout_words - 2; /* as if there were others: room for two words */
	object_named(&session, o, "communicator of the halo exchange");
	CHECK(strcmp(o->name, "communicator of ") == 0 && session.layout_words == MAX_FRAME_WORDS);
	CHECK(make(BIND_COMM, 2) == NULL && session.objects_over == 1);
	session_drop(&session);
}
