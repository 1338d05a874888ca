/* peers_test.c - whose rank in the world a rank is, and what is told of messages by peer. */
#define _GNU_SOURCE
#include "test.h"

#include "peers.h"
#include "persistent.h"
#include "requests.h"
#include "world.h"

#include <string.h>

/* ---- ranks ---- */

/* The next object's processes: `count` of them, `stride` apart. */
static void line(int count, int first, int stride)
{
	fake_rank_count = count;
	for (int i = 0; i < count; i++)
		fake_ranks[i] = first + i * stride;
}

static struct world_ranks asked(int kind, intptr_t handle)
{
	struct world_ranks ranks;

	world_ranks(kind, handle, false, &ranks);
	CHECK(fake_groups == 0);
	for (int i = 0; ranks.count != 0 && handle != FAKE_WORLD && i < fake_rank_count; i++)
		CHECK(world_rank(&ranks, i) == (fake_ranks[i] < 0 ? WORLD_NOBODY : fake_ranks[i]));
	CHECK(world_rank(&ranks, -1) == WORLD_NOBODY && world_rank(&ranks, ranks.count) == WORLD_NOBODY);
	return ranks;
}

void test_ranks_of_the_world(void)
{
	struct world_ranks ranks = asked(BIND_COMM, FAKE_WORLD);

	CHECK(ranks.count == FAKE_WORLD_SIZE && ranks.table == 0 && world_rank(&ranks, 77) == 77);

	/* Lines, of which two ranks are looked for in the whole world: a duplicate, rows and columns, one turned round,
	 * one's own. */
	const struct { int count, first, stride; } lines[] = {
		{ FAKE_WORLD_SIZE, 0, 1 }, { 10, 20, 1 }, { 20, 3, 10 }, { FAKE_WORLD_SIZE, FAKE_WORLD_SIZE - 1, -1 }, { 64, 0, 1 },
		{ 65, 130, -2 }, { 2, 7, -7 }, { 1, 199, 1 }, { 1, 0, 1 },
	};
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		line(lines[i].count, lines[i].first, lines[i].stride);
		fake_translated = 0;
		ranks = asked(i % 2 == 0 ? BIND_COMM : BIND_WIN, 0x500);
		CHECK(ranks.count == lines[i].count && ranks.table == 0 && fake_translated <= 2);
	}

	/* What is a line up to its end only. */
	line(150, 0, 1);
	fake_ranks[149] = 170;
	ranks = asked(BIND_COMM, 0x500);
	CHECK(ranks.count == 150 && ranks.table != 0);
	world_drop(&ranks);
	/* One that would leave the world. */
	line(3, 0, 100);
	fake_ranks[2] = 150;
	ranks = asked(BIND_COMM, 0x500);
	CHECK(ranks.count == 3 && ranks.table != 0);
	world_drop(&ranks);

	/* Processes of other worlds: some, all, the first. */
	line(5, 10, 1);
	fake_ranks[3] = FAKE_NOBODY;
	ranks = asked(BIND_COMM, 0x500);
	CHECK(ranks.count == 5 && world_rank(&ranks, 3) == WORLD_NOBODY && world_rank(&ranks, 4) == 14);
	world_drop(&ranks);
	fake_ranks[0] = FAKE_NOBODY;
	ranks = asked(BIND_WIN, 0x500);
	CHECK(ranks.count == 5 && world_rank(&ranks, 0) == WORLD_NOBODY && world_rank(&ranks, 1) == 11);
	world_drop(&ranks);
	fake_rank_count = 0;
	CHECK(asked(BIND_COMM, 0x500).count == 0);
}

void test_tables_are_shared_and_bounded(void)
{
	enum { MOST = (16 << 20) / (int)sizeof(int) / FAKE_WORLD_SIZE };
	static struct world_ranks own[MOST + 1];
	struct world_ranks first, same, other;
	unsigned there = 0;

	line(4, 0, 1);
	fake_ranks[2] = 50;
	first = asked(BIND_COMM, 0x500);
	same = asked(BIND_WIN, 0x500);
	fake_rank_count = 3;
	other = asked(BIND_COMM, 0x500);
	CHECK(first.table != 0 && same.table == first.table && other.table != first.table);
	/* Nobody uses it any more: the next one takes it. */
	world_drop(&first);
	world_drop(&other);
	fake_ranks[0] = 100;
	other = asked(BIND_COMM, 0x500);
	CHECK(other.table != 0 && other.table != same.table && world_rank(&same, 0) == 0);
	world_drop(&other);
	world_drop(&same);

	/* Each has other processes. */
	fake_rank_count = 4;
	for (int i = 0; i < MOST + 1; i++) {
		fake_ranks[0] = i / 150;
		fake_ranks[1] = 5;
		fake_ranks[2] = i % 150;
		fake_ranks[3] = i % 150 + 30;
		own[i] = asked(BIND_COMM, 0x500);
		there += own[i].count != 0;
	}
	CHECK(there == MOST);
	for (int i = 0; i < MOST + 1; i++)
		world_drop(&own[i]);
	CHECK(asked(BIND_COMM, 0x500).count == 4);
	world_drop(&own[MOST - 1]); /* the same table */
}

/* ---- messages ---- */

static uint32_t make_line(int kind, intptr_t handle, int count, int first, int stride)
{
	line(count, first, stride);
	return make(kind, handle);
}

enum { NO_PLACE = -2 };

/* Of which peer a variable is; -1: of all that have no place. */
static int peer_of(const char *name, const char *what)
{
	char prefix[64];
	size_t length = (size_t)snprintf(prefix, sizeof prefix, "mpit_call_peer_%s_", what);

	if (strncmp(name, prefix, length) != 0)
		return NO_PLACE;
	return strcmp(name + length, "other") == 0 ? -1 : atoi(name + length);
}

static size_t place_of(const char *what, int peer)
{
	struct source_variable v;

	for (size_t i = 0; i < source->count(); i++) {
		source->describe(i, &v);
		if (peer_of(v.name, what) == peer)
			return i;
	}
	return SIZE_MAX;
}

static bool is_there(const char *what, int peer)
{
	return place_of(what, peer) != SIZE_MAX;
}

static uint64_t told_of(const char *what, int peer)
{
	size_t place = place_of(what, peer);
	uint64_t value = 0;

	if (place != SIZE_MAX)
		source->read(place, 0, &value);
	return value;
}

static void looks(void)
{
	static struct told told;

	told.count = 0;
	tells(&told);
}

void test_peers_have_what_was_sent(void)
{
	uint32_t comm, turned, win, inter;
	struct source_variable v;

	calls_state.peers = true;
	comm = make_line(BIND_COMM, 0x200, FAKE_WORLD_SIZE, 0, 1);
	turned = make_line(BIND_COMM, 0x201, FAKE_WORLD_SIZE, FAKE_WORLD_SIZE - 1, -1);
	win = make_line(BIND_WIN, 0x300, 3, 10, 5);
	fake_place = (struct place){ .inter = true };
	inter = make_line(BIND_COMM, 0x202, 3, 5, 10);
	fake_place = (struct place){ 0 };

	CHECK(MPI_Send(5, 10, 4, 0x200) == 0 && MPI_Isend(5, 0, 4, 0x200) == 0);
	CHECK(MPI_Sendrecv(FAKE_WORLD_SIZE - 6, 1, 2, 0x201) == 0); /* to 5 */
	CHECK(MPI_Put(1, 100, 1, 0x300) == 0);      /* to 15 */
	CHECK(MPI_Send(1, 1000, 1, 0x202) == 0);    /* to 15 */
	/* What is no message, or fails, has no peer. */
	CHECK(MPI_Recv(9, 1, 1, 0x200) == 0 && MPI_Bcast(9, 1, 1, 0x200) == 0 && MPI_Barrier(9, 0, 0, 0x200) == 0);
	fake_answer = 3;
	CHECK(MPI_Send(9, 1, 1, 0x200) == 3);
	fake_answer = 0;
	source->measure(false);
	CHECK(MPI_Send(9, 1, 1, 0x200) == 0);
	source->measure(true);
	looks();
	CHECK(told_of("messages", 5) == 3 && told_of("bytes", 5) == 42);
	CHECK(told_of("messages", 15) == 2 && told_of("bytes", 15) == 1100);
	CHECK(!is_there("messages", 9) && !is_there("messages", -1) && !is_there("bytes", -1));
	source->describe(variable("mpit_call_peer_bytes_15"), &v);
	CHECK(v.bind == BIND_NONE && v.mpi_class == 7 && !v.distribution);

	/* An object that nobody knows, a rank that isn't there. */
	CHECK(MPI_Send(5, 7, 1, 0x2ff) == 0 && MPI_Put(3, 1, 1, 0x300) == 0);
	looks();
	CHECK(told_of("messages", -1) == 2 && told_of("bytes", -1) == 8 && told_of("messages", 5) == 3);
	/* A handle that is used again. */
	freed(BIND_COMM, 0x200, comm);
	comm = make_line(BIND_COMM, 0x200, 2, 14, 1);
	CHECK(MPI_Send(1, 1, 1, 0x200) == 0 && told_of("messages", 15) == 3);

	freed(BIND_COMM, 0x200, comm);
	freed(BIND_COMM, 0x201, turned);
	freed(BIND_COMM, 0x202, inter);
	freed(BIND_WIN, 0x300, win);
	calls_state.peers = false;
}

/* What all places have, each of which has not fallen since the last time; how many there are. */
static int check_places(const char *what, uint64_t *last, uint64_t *all)
{
	bool seen[FAKE_WORLD_SIZE + 1] = { false };
	struct source_variable v;
	int there = 0;

	*all = 0;
	for (size_t i = 0; i < source->count(); i++) {
		uint64_t now = 0;
		int peer;

		source->describe(i, &v);
		peer = peer_of(v.name, what);
		if (peer == NO_PLACE)
			continue;
		source->read(i, 0, &now);
		CHECK(!seen[peer + 1] && now >= last[peer + 1]);
		seen[peer + 1] = true;
		last[peer + 1] = now;
		*all += now;
		there += peer >= 0;
	}
	for (int peer = -1; peer < FAKE_WORLD_SIZE; peer++)
		CHECK(last[peer + 1] == 0 || seen[peer + 1]);
	return there;
}

static struct {
	uint64_t messages, bytes;
} sent;

static void send_to(int peer, int elements)
{
	CHECK(MPI_Send(peer, elements, 8, 0x200) == 0);
	sent.messages++;
	sent.bytes += 8 * (uint64_t)elements;
}

/* Places there are; with a look before, they have all that was sent. */
static int check_all(bool look)
{
	static uint64_t messages_then[FAKE_WORLD_SIZE + 1], bytes_then[FAKE_WORLD_SIZE + 1];
	uint64_t messages, sum;
	int there;

	if (look)
		looks();
	there = check_places("messages", messages_then, &messages);
	CHECK(check_places("bytes", bytes_then, &sum) == there);
	if (look && sent.messages == 0) {
		sent.messages = messages;
		sent.bytes = sum;
	}
	CHECK(look ? messages == sent.messages && sum == sent.bytes : messages <= sent.messages && sum <= sent.bytes);
	return there;
}

/* Whoever is sent to, in whatever order: no counter falls, nothing is lost or told twice, and places are bounded. */
void test_no_place_of_a_peer_ever_falls(void)
{
	uint32_t comm;
	int there, most;

	calls_state.peers = true;
	comm = make_line(BIND_COMM, 0x200, FAKE_WORLD_SIZE, 0, 1);
	srand(20);
	check_all(true);
	/* About as much to each of twenty: chance gives nobody a place. */
	for (int round = 0; round < 50; round++) {
		for (int peer = 0; peer < 20; peer++)
			send_to(peer, 100 + rand() / 7 % 50);
		if (round >= 20)
			CHECK(check_all(round % 3 == 2) == PEERS_AT_FIRST);
	}
	/* Peers come one after the other, at times in bursts; later ones get more. */
	most = PEERS_AT_FIRST;
	for (int round = 0; round < 400; round++) {
		for (int n = rand() / 7 % (round % 10 == 0 ? 300 : 3); n > 0; n--) {
			int to = rand() / 7 % (1 + round / 2);

			send_to(to, rand() / 7 % (1 + to * to));
		}
		if (rand() / 7 % 4 == 0)
			continue;
		there = check_all(rand() / 7 % 3 != 0);
		CHECK(there >= most && there <= PEERS_MOST);
		most = there;
	}
	check_all(true);
	CHECK(most == PEERS_MOST);
	freed(BIND_COMM, 0x200, comm);
	calls_state.peers = false;
}

enum { THREADS = 4, MESSAGES = 20000 };

static void *sends(void *unused)
{
	(void)unused;
	for (int i = 0; i < MESSAGES; i++)
		CHECK(MPI_Send(i % 10, 1, 1, 0x200) == 0);
	return NULL;
}

void test_peers_of_threads(void)
{
	static uint64_t then[FAKE_WORLD_SIZE + 1];
	uint64_t before, all;
	pthread_t threads[THREADS];
	uint32_t comm;

	calls_state.peers = true;
	comm = make_line(BIND_COMM, 0x200, FAKE_WORLD_SIZE, 0, 1);
	check_places("messages", then, &before);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, sends, NULL) == 0);
	for (int i = 0; i < 100; i++) {
		looks();
		check_places("messages", then, &all);
		CHECK(all <= before + THREADS * MESSAGES);
	}
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	looks();
	check_places("messages", then, &all);
	CHECK(all == before + THREADS * MESSAGES);
	freed(BIND_COMM, 0x200, comm);
	calls_state.peers = false;
}

/* ---- persistent requests ---- */

static uint32_t persists(uint32_t handle, int rank, uint64_t bytes)
{
	const struct call c = { .handle = 0x200, .epoch = EPOCH_PAUSED };

	call_persists(&c, FUNCTION_MPI_Isend, (intptr_t)&handle, call_names(rank, 0), bytes);
	return handle;
}

/* The library gives the first one the handle `becomes`, if it isn't 0. */
static void starts(uint32_t *requests, int count, uint32_t becomes, uint64_t epoch)
{
	const struct call c = { .epoch = epoch };

	call_starts((intptr_t)requests, count);
	requests[0] = becomes != 0 ? becomes : requests[0];
	call_started(&c, (intptr_t)requests, count);
}

void test_persistent_sends_count_at_each_start(void)
{
	enum { SO_MANY = 8192 };
	static uint32_t r[SO_MANY];
	uint64_t messages, sent;
	uint32_t comm;

	calls_state.peers = true;
	CHECK(persistent_open() && requests_open());
	comm = make_line(BIND_COMM, 0x200, FAKE_WORLD_SIZE, 0, 1);
	CHECK(MPI_Send(5, 0, 1, 0x200) == 0 && MPI_Send(6, 0, 1, 0x200) == 0); /* so that there is a block, and a place */
	looks();
	messages = told_of("messages", 5);
	sent = told_of("bytes", 5);
	r[0] = persists(0x101, 5, 40);
	r[1] = persists(0x102, 5, NO_MESSAGE);
	r[2] = 0x999; /* nothing is known of it */
	CHECK(told_of("messages", 5) == messages);
	starts(r, 3, 0, EPOCH_STEP);
	starts(r, 1, 0, EPOCH_STEP);
	CHECK(told_of("messages", 5) == messages + 2 && told_of("bytes", 5) == sent + 80);
	starts(r, 3, 0, EPOCH_PAUSED);
	starts(r, 0, 0, EPOCH_STEP);
	starts(r, -1, 0, EPOCH_STEP);
	call_starts(0, 3); /* the library answers that with an error */
	CHECK(told_of("messages", 5) == messages + 2);
	/* The handle is another's. */
	persists(0x101, 6, 40);
	starts(r, 1, 0, EPOCH_STEP);
	CHECK(told_of("messages", 5) == messages + 2);
	persists(0x101, 5, 40);

	/* The request gets another handle, also while nothing is measured; its communicator has gone. */
	freed(BIND_COMM, 0x200, comm);
	starts(r, 1, 0x103, EPOCH_STEP);
	starts(r, 1, 0x104, EPOCH_PAUSED);
	starts(r, 1, 0, EPOCH_STEP);
	CHECK(r[0] == 0x104 && told_of("messages", 5) == messages + 4);

	/* Half as many as there are places are all known; no number of them does harm. */
	comm = make_line(BIND_COMM, 0x200, FAKE_WORLD_SIZE, 0, 1);
	for (uint32_t i = 0; i < SO_MANY; i++) {
		r[i] = persists(0x98000000 + 8 * i, 5, 1);
		if (i + 1 != STARTS_MOST)
			continue;
		starts(r, STARTS_MOST, 0, EPOCH_STEP);
		CHECK(told_of("messages", 5) == messages + 4 + STARTS_MOST);
	}
	for (uint32_t i = 0; i < SO_MANY; i++)
		persists(0x44000000 + i, 5, 1);
	freed(BIND_COMM, 0x200, comm);
	calls_state.peers = false;
}

static _Atomic bool over;

static void *sends_on_it(void *unused)
{
	(void)unused;
	while (!atomic_load(&over))
		CHECK(MPI_Send(1, 1, 1, 0x201) == 0);
	return NULL;
}

/*
 * Its table is another object's by then: no message counts for a rank of that one. Where threads run as they do in a
 * program this needs many turns to be seen; under valgrind and the thread sanitizer, which look for other things, it
 * is hardly ever seen, and FEW_TURNS is set.
 */
void test_an_object_freed_while_it_is_sent_on(void)
{
	const int turns = getenv("FEW_TURNS") == NULL ? 20000 : 500;
	uint64_t before;
	pthread_t thread;

	calls_state.peers = true;
	looks();
	before = told_of("messages", 5);
	CHECK(before > 0);
	CHECK(pthread_create(&thread, NULL, sends_on_it, NULL) == 0);
	for (int i = 0; i < turns; i++) {
		uint32_t doomed, other;

		line(3, 0, 1);
		fake_ranks[2] = 40;
		doomed = make(BIND_COMM, 0x201);
		freed(BIND_COMM, 0x201, doomed);
		line(3, 0, 1);
		fake_ranks[1] = 5;
		other = make(BIND_COMM, 0x202);
		freed(BIND_COMM, 0x202, other);
	}
	atomic_store(&over, true);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(told_of("messages", 5) == before);
	calls_state.peers = false;
}
