/* tools_test.c - what tools do through TOOL: sessions and handles of their own, values narrowed and written, control
 * variables, categories. */
#define _GNU_SOURCE
#include "gate.h"
#include "pcontrol.h"
#include "test.h"
#include "tools/sessions.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

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

void test_values_are_narrowed_or_refused(void)
{
	const uint64_t words[3] = { 1, (uint64_t)-2, 3 };
	const double tenth = 0.1;
	int32_t ints[3];
	float f;

	CHECK(narrow(TYPE_INT, 4, words, 3, ints) && ints[0] == 1 && ints[1] == -2 && ints[2] == 3);
	CHECK(fits(TYPE_INT, 4, INT32_MAX) && !fits(TYPE_INT, 4, (uint64_t)INT32_MAX + 1));
	CHECK(fits(TYPE_INT, 4, (uint64_t)(int64_t)INT32_MIN) && !fits(TYPE_INT, 4, (uint64_t)((int64_t)INT32_MIN - 1)));
	CHECK(fits(TYPE_UNSIGNED, 4, UINT32_MAX) && !fits(TYPE_UNSIGNED, 4, (uint64_t)UINT32_MAX + 1) &&
	      !fits(TYPE_UNSIGNED, 4, (uint64_t)-1));
	CHECK(fits(TYPE_INT64, 8, (uint64_t)-1) && fits(TYPE_UINT64, 8, (uint64_t)-1));
	CHECK(fits(TYPE_BOOL, 1, 1) && !fits(TYPE_BOOL, 1, 2));
	CHECK(narrow(TYPE_FLOAT, 4, &(uint64_t){ as_word(tenth) }, 1, &f) && f == 0.1f);
	CHECK(fits(TYPE_DOUBLE, 8, as_word(1e300)) && !fits(TYPE_FLOAT, 4, as_word(1e300)) &&
	      !fits(TYPE_FLOAT, 4, as_word(-1e300)));
	CHECK(fits(TYPE_FLOAT, 4, as_word(1e300 * 1e300))); /* infinity is one of its values */
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

#define WORDS(...) (const uint64_t[]){ __VA_ARGS__ }, sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t)
#define TOOL(given, ...) tool(fd, WORDS(__VA_ARGS__), given)

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

#define NUMBER(...) tool_number(fd, WORDS(__VA_ARGS__))

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

enum tool { CREATE, FREE_SESSION, ALLOC, FREE, START, STOP, READ, WRITE, RESET, READRESET, CVAR_READ, CVAR_WRITE,
	PVAR_INDEX, CVAR_INDEX, CATEGORY_INDEX };

void test_a_tool_has_sessions_and_handles_of_its_own(void)
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

	CHECK(TOOL(NULL, START, mine, level) == CODE_PVAR_NO_STARTSTOP &&
	      TOOL(NULL, STOP, mine, level) == CODE_PVAR_NO_STARTSTOP);
	CHECK(TOOL(NULL, RESET, mine, level) == CODE_PVAR_NO_WRITE &&
	      TOOL(NULL, READRESET, mine, level) == CODE_PVAR_NO_WRITE);
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

void test_a_tools_handle_ends_before_its_object(void)
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
	object_freed(&session, o);
	gate_leave();
	CHECK(fake_open_handles == 2);
	CHECK(TOOL(NULL, READ, mine, handle) == CODE_INVALID_HANDLE && TOOL(NULL, FREE, mine, handle) == CODE_INVALID_HANDLE);
	CHECK(tool_read(fd, READ, mine, again) == 0);
	CHECK(TOOL(NULL, ALLOC, mine, 0, 1) == CODE_INVALID_HANDLE);
	close_conversation(fd, listening);
}

void test_tools_are_forgotten_when_mpi_is_over(void)
{
	bool gone = false;
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
	for (int i = 0; !gone; i++) {
		CHECK(i < 1000);
		usleep(10000);
		CHECK(gate_enter());
		gone = session.tools == NULL;
		gate_leave();
	}
	CHECK(fake_open_sessions == 2); /* nothing of MPI_T is called any more */
	CHECK(agent_move(AGENT_FINAL, AGENT_IDLE));
	close(fd);
	end_conversation(listening);
}

void test_all_handles_of_a_session(void)
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
	CHECK(TOOL(NULL, STOP, mine, plain) == CODE_SUCCESS && TOOL(NULL, STOP, mine, 0) == CODE_SUCCESS &&
	      fake_stopped == 2);

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

void test_tools_are_bounded(void)
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

void test_writing_must_be_allowed(void)
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

void test_control_variables_one_by_one(void)
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
	CHECK(TOOL(NULL, CVAR_READ, FAKE_CVARS, 0) == CODE_INVALID_INDEX &&
	      TOOL(NULL, CVAR_READ, 1ull << 40, 0) == CODE_INVALID_INDEX);

	/* Bound: each object has a value of its own. */
	CHECK(TOOL(NULL, CVAR_WRITE, 3, o->number, 1, 1, 42) == CODE_SUCCESS && fake_bound[1] == 42);
	CHECK(cvar_word(fd, 3, o->number) == 42);
	CHECK(TOOL(NULL, CVAR_READ, 3, 0) == CODE_INVALID_HANDLE &&
	      TOOL(NULL, CVAR_READ, 3, win->number) == CODE_INVALID_HANDLE);

	CHECK(TOOL(NULL, CVAR_WRITE, 1, 0, 1, 1, 5) == CODE_CVAR_SET_NEVER &&
	      TOOL(NULL, CVAR_WRITE, 2, 0, 1, 1, 5) == CODE_CVAR_SET_NEVER);
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
	CHECK(TOOL(NULL, CVAR_WRITE, 7, 0, 1, 1, 5) == CODE_NOT_ACCESSIBLE &&
	      TOOL(NULL, CVAR_WRITE, 8, 0, 1, 1, 5) == CODE_NOT_SUPPORTED);

	/* Indices by name: "calls" (class COUNTER), "cvar_12", "all". */
	CHECK(TOOL(&f, PVAR_INDEX, COUNTER, 5, 0x736c6c6163) == CODE_SUCCESS && take(&f) == 0 && take(&f) == 1);
	free(f.words);
	CHECK(TOOL(NULL, PVAR_INDEX, LEVEL, 5, 0x736c6c6163) == CODE_INVALID_NAME &&
	      TOOL(NULL, PVAR_INDEX, 10, 5, 0x736c6c6163) == CODE_INVALID_NAME);
	CHECK(NUMBER(CVAR_INDEX, 7, 0x32315f72617663) == 12 && NUMBER(CATEGORY_INDEX, 3, 0x6c6c61) == 0);
	CHECK(TOOL(NULL, CATEGORY_INDEX, 3, 0x6c0061) == CODE_INVALID_NAME);
	close_conversation(fd, listening);
}

void test_control_variables_name_their_enumerations(void)
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
				CHECK(take(&f) == 5 && take(&f) == 1 && take(&f) == CODE_SUCCESS && take(&f) == 1 &&
				      take(&f) == 1 && take(&f) == 0);
				CHECK(take(&f) == 5 && take(&f) == 2 && take(&f) == CODE_SUCCESS && take(&f) == 1 &&
				      take(&f) == 1 && take(&f) == 9);
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
void test_large_values_of_a_bound_control_variable(void)
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

void test_categories_have_a_stamp(void)
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

void test_tools_stay_out_of_a_passive_rank(void)
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
