/*
 * helpers.c - what several files of tests need: the session and variables that they work on, and the exporter, which
 * a test plays over a real socket.
 */
#define _GNU_SOURCE
#include "test.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct session session; /* 10 KiB of selection: not for a stack */

struct fake_variable *variable(const char *name, int mpi_class, int datatype, int bytes, int bind, int count)
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

void open_session(const char *deny, size_t most_objects)
{
	CHECK(session_open(&session, &fake_abi, deny, "", most_objects));
}

/* As the agent's thread does it. */
bool sample_with(bool (*stop)(void))
{
	return session_discover(&session, stop) && session_sample(&session, stop);
}

struct object *make(int kind, int handle)
{
	return object_made(&session, kind, &(union mpi_object){ .integer = handle }, 0, NULL, 0);
}

double as_double(uint64_t word)
{
	double d;

	memcpy(&d, &word, sizeof d);
	return d;
}

const struct remain *remain_of(const char *name, uint32_t number)
{
	for (size_t i = 0; i < REMAINS_BUCKETS; i++)
		for (const struct remains_name *n = session.remains.buckets[i]; n != NULL; n = n->next)
			for (const struct remain *m = n->list; strcmp(n->name, name) == 0 && m != NULL; m = m->next)
				if (m->variable->number == number)
					return m;
	return NULL;
}

/* ---- frames over a real socket: the test plays the exporter ---- */

static void receive(int fd, void *to, size_t length)
{
	CHECK(recv(fd, to, length, MSG_WAITALL) == (ssize_t)length);
}

struct frame next_frame(int fd)
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

uint64_t take(struct frame *f)
{
	CHECK(f->at < f->header.words);
	return f->words[f->at++];
}

void skip_string(struct frame *f)
{
	uint64_t length = take(f);

	f->at += (length + 7) / 8;
	CHECK(f->at <= f->header.words);
}

void request(int fd, enum frame_type type, uint32_t sequence, const uint64_t *words, size_t count)
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

/* Takes the HELLO that comes next. */
void expect_hello(int fd, enum connection_kind kind)
{
	struct frame f = next_frame(fd);
	uint64_t attributes;

	CHECK(f.header.type == FRAME_HELLO && take(&f) == kind);
	f.at = 10;
	for (int i = 0; i < 4; i++)
		skip_string(&f);
	attributes = take(&f);
	CHECK(attributes >= 1);
	for (; attributes > 0; attributes--)
		f.at += take(&f);
	CHECK(take(&f) == 0); /* where agents kept something for exporters */
	free(f.words);
}

uint64_t expect_sample(int fd, uint32_t sequence, enum sample_status status, unsigned frames_before)
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
uint64_t sample_statistic(int fd, uint32_t sequence, enum sample_status status, unsigned which)
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

static void take_string(struct frame *f, char *to, size_t size)
{
	uint64_t length = take(f);

	CHECK(length < size);
	memcpy(to, &f->words[f->at], length);
	to[length] = '\0';
	f->at += (length + 7) / 8;
}

static void take_thread(struct frame *f, struct told_calls *told, size_t i)
{
	struct source_thread *t = &told->threads[i];
	char function[sizeof told->function_of_second];
	size_t end = take(f);

	end += f->at;
	t->id = take(f);
	t->tid = take(f);
	CHECK(take(f) == (i == 0));
	t->now_ns = take(f);
	t->observed_ns = take(f);
	CHECK(take(f) == ACTIVITIES);
	for (size_t k = 0; k < ACTIVITIES; k++)
		t->inside_ns += t->activity_ns[k] = take(f);
	CHECK(take(f) == UINT64_MAX && take(f) == UINT64_MAX); /* its number isn't a thread's of this process */
	t->begun_ns = take(f);
	t->ended_ns = take(f);
	take_string(f, function, sizeof function);
	if (i == 1)
		memcpy(told->function_of_second, function, sizeof function);
	t->bind = (int)take(f);
	t->object = (uint32_t)take(f);
	t->peer = (int)(int64_t)take(f);
	t->tag = (int)(int64_t)take(f);
	t->root = (int)(int64_t)take(f);
	t->number = take(f);
	take_string(f, function, sizeof function);
	CHECK(function[0] == '\0');
	CHECK(take(f) == 0); /* no peers beside peer */
	take_string(f, function, sizeof function);
	if (i == 1)
		memcpy(told->collective_of_second, function, sizeof function);
	else
		CHECK(function[0] == '\0');
	t->collective_on = (uint32_t)take(f);
	t->collective_number = take(f);
	CHECK(f->at == end);
}

static void take_phase(struct frame *f, struct phase *p)
{
	CHECK(take(f) == 3 + ACTIVITIES);
	p->level = (int)(int64_t)take(f);
	p->observed_ns = take(f);
	CHECK(take(f) == ACTIVITIES);
	for (size_t i = 0; i < ACTIVITIES; i++)
		p->activity_ns[i] = take(f);
}

struct told_calls sample_calls(int fd, uint32_t sequence, enum sample_status status)
{
	struct told_calls told = { 0 };
	struct frame f = next_frame(fd);

	while (f.header.type != FRAME_SAMPLE) {
		free(f.words);
		f = next_frame(fd);
	}
	CHECK(f.header.sequence == sequence && f.words[1] == status);
	f.at = 7;
	f.at += take(&f);
	f.at += take(&f);
	f.at += 2 * take(&f);
	told.known = take(&f);
	if (told.known != 0) {
		size_t end = take(&f);

		end += f.at;
		CHECK(told.known == 1);
		told.inside_ns = take(&f);
		told.observed_ns = take(&f);
		told.running_ns = take(&f);
		told.bind = take(&f);
		told.object = take(&f);
		take_string(&f, told.function, sizeof told.function);
		take_string(&f, told.module, sizeof told.module);
		told.offset = take(&f);
		CHECK(take(&f) == ACTIVITIES);
		for (size_t i = 0; i < ACTIVITIES; i++)
			told.activity_ns[i] = take(&f);
		told.finalize_ns = take(&f);
		told.cpu_ns = take(&f);
		told.thread_count = take(&f);
		CHECK(told.thread_count >= 1 && told.thread_count <= SOURCE_THREADS);
		for (size_t i = 0; i < told.thread_count; i++)
			take_thread(&f, &told, i);
		if (take(&f) != 0)
			f.at += take(&f);
		told.phases.count = take(&f);
		CHECK(told.phases.count <= PHASES);
		for (size_t i = 0; i < told.phases.count; i++)
			take_phase(&f, &told.phases.list[i]);
		CHECK(f.at == end);
	}
	told.comm_count = status == SAMPLE_BUSY ? 0 : take(&f);
	for (size_t i = 0; i < told.comm_count; i++) {
		CHECK(take(&f) == 3);
		told.comm.object = (uint32_t)take(&f);
		told.comm.identity = take(&f);
		told.comm.begun = take(&f);
	}
	CHECK(f.at == f.header.words);
	free(f.words);
	return told;
}

struct identity identity;
struct link link_of_rank;
char path[128];
static char directory[64];
static pthread_t agents_threads[2];
static size_t agents_thread_count; /* the second is made by the first, which is joined before that is looked at */

/*
 * The linker puts it in pthread_create's place (--wrap). The agent's threads, the only ones with attributes, are
 * detached: here they aren't, so that a test can wait for their end, and ThreadSanitizer sees that it did.
 */
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
	pthread_t *made;

	if (attributes == NULL)
		return __real_pthread_create(thread, NULL, run, argument);
	made = &agents_threads[agents_thread_count++]; /* before there is a thread that makes another one */
	CHECK(pthread_attr_setdetachstate((pthread_attr_t *)attributes, PTHREAD_CREATE_JOINABLE) == 0);
	CHECK(__real_pthread_create(thread, attributes, run, argument) == 0);
	*made = *thread;
	return 0;
}

/*
 * Likewise. ThreadSanitizer takes what one side sends for done before what the other one does when it has received it only
 * where it knows the descriptors, whose numbers mean something else in the agent's thread. Here it sees it.
 */
static _Atomic unsigned said;

ssize_t __real_send(int fd, const void *bytes, size_t length, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t length, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t length, int flags)
{
	atomic_fetch_add(&said, 1);
	return __real_send(fd, bytes, length, flags);
}

ssize_t __real_recv(int fd, void *bytes, size_t length, int flags);
ssize_t __wrap_recv(int fd, void *bytes, size_t length, int flags);
ssize_t __wrap_recv(int fd, void *bytes, size_t length, int flags)
{
	ssize_t n = __real_recv(fd, bytes, length, flags);

	atomic_fetch_add(&said, 1);
	return n;
}

int __real_accept(int fd, struct sockaddr *address, socklen_t *length);
int __wrap_accept(int fd, struct sockaddr *address, socklen_t *length);
int __wrap_accept(int fd, struct sockaddr *address, socklen_t *length)
{
	int accepted = __real_accept(fd, address, length);

	atomic_fetch_add(&said, 1);
	return accepted;
}

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
	atomic_fetch_add(&said, 1);
	return __real_close(fd);
}

/* Lets the agent's thread run against a socket of the test's own; the session is open. */
int begin_conversation(bool passive)
{
	int listening;

	snprintf(directory, sizeof directory, "/tmp/mpit-agent-test.XXXXXX");
	CHECK(mkdtemp(directory) != NULL);
	snprintf(path, sizeof path, "%s/agent.sock", directory);
	setenv("MPIT_SOCKET", path, 1);
	listening = listen_at(path);
	identity_fill(&identity, "Fake MPI 1\nsecond line", NULL);
	CHECK(strcmp(identity.library_version, "Fake MPI 1") == 0);
	link_of_rank = (struct link){ .identity = &identity, .session = &session };
	identity.passive = passive;
	link_paths(&link_of_rank);
	CHECK(agent_move(AGENT_IDLE, AGENT_RUNNING));
	CHECK(link_start(&link_of_rank));
	return listening;
}

void end_conversation(int listening)
{
	close(listening);
	unlink(path);
	rmdir(directory);
	for (size_t i = 0; i < agents_thread_count; i++)
		/* The first sees its end of file and leaves, the second follows. */
		CHECK(pthread_join(agents_threads[i], NULL) == 0);
	agents_thread_count = 0;
	session_drop(&session);
}

int open_conversation(int *listening)
{
	int fd;

	*listening = begin_conversation(false);
	fd = accept(*listening, NULL, NULL);
	expect_hello(fd, CONNECTION_STAYS);
	return fd;
}

/* The tools' side is over when the agent has connected again. */
int reconnect(int fd, int listening)
{
	close(fd);
	fd = accept(listening, NULL, NULL);
	expect_hello(fd, CONNECTION_STAYS);
	return fd;
}

void close_conversation(int fd, int listening)
{
	fd = reconnect(fd, listening);
	CHECK(session.tools == NULL && fake_open_sessions == 1);
	CHECK(agent_move(AGENT_RUNNING, AGENT_IDLE));
	close(fd);
	end_conversation(listening);
}

/* A page of control variables: the enumerations that stand before it, and the frame at its list. */
struct frame cvars_page(int fd, uint64_t first, uint64_t enumerations[4], size_t *count)
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
