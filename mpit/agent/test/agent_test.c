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

enum { STATE = 0, LEVEL = 1, LOWWATERMARK = 5, COUNTER = 6, TIMER = 8 };

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
	for (unsigned parts = 0; first < 3000; parts++) {
		CHECK(parts < 100);
		request(fd, REQUEST_CVARS, 4, &first, 1);
		f = next_frame(fd);
		CHECK(f.header.type == FRAME_CVARS && take(&f) == 3000);
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
	test_gate();
	test_waking_a_thread_that_leaves_hurts_nobody();
	test_a_passive_rank_is_read_by_its_program_alone();
	test_conversation();
	puts("agent tests: 21 passed, 0 failed");
	return 0;
}
