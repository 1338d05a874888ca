/*
 * source.c - what the agent sees of the call profile (source.h): its variables, on which objects they are, and their
 * values.
 *
 * All but measure is called under the agent's gate, by one thread at a time.
 *
 * A child made by fork has a copy of the blocks and one thread. The agent switches measuring off there; nothing else
 * is to be done, for nothing is shared, no lock can have been taken by a thread that isn't there, and nobody asks any
 * more. The libraries that a program loads and unloads (dlclose) don't matter either: nothing of theirs is kept, and
 * this one is never unloaded (-z nodelete).
 */
#define _GNU_SOURCE
#include "source.h"

#include "asked.h"
#include "block.h"
#include "functions.h"
#include "library.h"
#include "order.h"
#include "peers.h"
#include "persistent.h"
#include "place.h"
#include "requests.h"
#include "sites.h"

#include <stdio.h>
#include <string.h>

enum { COUNTER = 6, AGGREGATE = 7, TIMER = 8, USER_BASIC = 1 }; /* docs/internals/protocol.md, VARIABLES */

enum what { UNCOUNTED, TIME, OUT, IN, SIZE, MESSAGES, BYTES }; /* UNCOUNTED is the first variable's, and no other's */

#define NAME_BYTES 96
#define MOST_VARIABLES (1 + 4 * MOST_FUNCTIONS + 2 * (PEERS_MOST + 1))

/*
 * The gate's: filled as functions are called for the first time, but for the first, which is always there. A
 * variable's number is its place. All zero at first, so that it takes no room in the file and memory as it is filled.
 */
static struct variable {
	enum what what;
	unsigned of; /* the function, or the peer's place */
	char name[NAME_BYTES];
} variables[MOST_VARIABLES];
static size_t variable_count = 1;
static size_t first_variable[MOST_FUNCTIONS]; /* of a function, its others follow; 0: it has none yet */
static bool (*filtered)(void); /* source_mpi's */
static bool uncounted_told;
static bool zero_told[MOST_FUNCTIONS]; /* on object 0 */
static unsigned peers_told;            /* places */
static uint64_t seen;                  /* of blocks_made */

static bool begin(const struct source_mpi *mpi, const char **why)
{
	if (function_count > MOST_FUNCTIONS) {
		*why = "the build has more functions than a block";
		return false;
	}
	for (const struct calls_abi *const *abi = calls_abi_list; *abi != NULL; abi++)
		if ((*abi)->number == mpi->abi)
			calls_abi = *abi;
	if (calls_abi == NULL) {
		*why = "the call profile's library doesn't know the ABI: it is older than the agent";
		return false;
	}
	filtered = mpi->filtered;
	calls_ask(mpi->calls);
	calls_state.sizes = calls_asked("sizes");
	if (!library_find(mpi->find, why))
		return false;
	calls_comm_null = calls_abi->comm_null(mpi->find);
	world_open(calls_abi->comm_world(mpi->find));
	peers_open();
	calls_state.peers = calls_state.peers && persistent_open();
	sites_open();
	if (!blocks_open(why) || !clock_choose(&calls_state.clock, why))
		return false;
	if (!registry_open()) {
		*why = "no memory";
		return false;
	}
	calls_state.poll_gap = (uint32_t)ratio_ticks(&calls_state.clock.ratio, (1 << 30) / 1000000 + 1); /* which are cut */
	calls_state.handle_mask = calls_abi->handle_mask;
	calls_datatype_null = calls_abi->datatype_null(mpi->find);
	calls_no_op = calls_abi->no_op(mpi->find);
	calls_comm_world = calls_abi->comm_world(mpi->find);
	calls_request_null = calls_abi->request_null(mpi->find);
	*why = calls_asked_unknown();
	order_open();
	return true;
}

/* Calls that are being made count to their end, or not, as they began. No lock, so that a signal handler may. Release:
 * see call_begins. */
static void measure(bool on)
{
	uint64_t observed = atomic_load_explicit(&calls_state.observed, memory_order_relaxed), changed;

	if (!on)
		atomic_store_explicit(&calls_state.measuring, false, memory_order_release);
	/* Several may switch at once. */
	do {
		uint64_t now = clock_now(&calls_state.clock);

		changed = is_running(observed) == on ? observed : on ? observed - now : observed + now;
	} while (!atomic_compare_exchange_weak_explicit(&calls_state.observed, &observed, changed, memory_order_relaxed,
							memory_order_relaxed));
	if (on) {
		requests_forget();
		atomic_store_explicit(&calls_state.measuring, true, memory_order_release);
	}
}

static size_t count(void)
{
	return variable_count;
}

static bool of_function(const struct variable *v)
{
	return v->what == TIME || v->what == OUT || v->what == IN || v->what == SIZE;
}

static void describe(size_t i, struct source_variable *out)
{
	static const struct {
		int mpi_class;
		bool distribution;
		const char *description;
	} kinds[] = {
		[UNCOUNTED] = {
			COUNTER, false,
			"Calls that could not be counted: no memory for a thread's block, or their object or datatype was freed meanwhile"
		},
		[TIME] = { TIMER, true, "Duration of the program's calls of this function" },
		[OUT] = { AGGREGATE, false, "Bytes of the program's calls of this function, to send or write" },
		[IN] = { AGGREGATE, false, "Bytes of the program's calls of this function, received or read, or the room for them" },
		[SIZE] = { AGGREGATE, true, "Sizes of the program's calls of this function, in bytes of the larger buffer" },
		[MESSAGES] = { COUNTER, false, "Messages sent to this rank of MPI_COMM_WORLD, one-sided operations included; other: to ranks without a variable" },
		[BYTES] = { AGGREGATE, false, "Bytes sent to this rank of MPI_COMM_WORLD, one-sided operations included; other: to ranks without a variable" },
	};
	const struct variable *v = &variables[i];

	*out = (struct source_variable){
		.name = v->what == UNCOUNTED ? "mpit_call_uncounted" : v->name,
		.description = kinds[v->what].description,
		.mpi_class = kinds[v->what].mpi_class,
		.verbosity = USER_BASIC,
		.bind = of_function(v) ? functions[v->of].bind : BIND_NONE,
		.distribution = kinds[v->what].distribution,
	};
}

static void add_variable(enum what what, unsigned of, const char *prefix, const char *direction, const char *name)
{
	struct variable *v = &variables[variable_count++];

	v->what = what;
	v->of = of;
	snprintf(v->name, sizeof v->name, "%s%s_%s", prefix, direction, name);
}

static bool has_sizes(const struct function *f)
{
	return counts_sizes() && (f->out != NULL || f->in != NULL);
}

/* How many variables a function has. */
static size_t count_of(const struct function *f)
{
	return 1u + (f->out != NULL) + (f->in != NULL) + has_sizes(f);
}

/* The first of a function's variables, made at its first call that is seen. */
static size_t variables_of(unsigned function)
{
	const struct function *f = &functions[function];

	if (first_variable[function] != 0)
		return first_variable[function];
	first_variable[function] = variable_count;
	add_variable(TIME, function, "mpit_call_time", "", f->name);
	if (f->out != NULL)
		add_variable(OUT, function, "mpit_call_bytes_", f->out, f->name);
	if (f->in != NULL)
		add_variable(IN, function, "mpit_call_bytes_", f->in, f->name);
	if (has_sizes(f))
		add_variable(SIZE, function, "mpit_call_size", "", f->name);
	return first_variable[function];
}

typedef void found_function(void *context, size_t variable, uint32_t object);

/* A cell with that key has counted: tells of it, unless it is known from another thread's cell. */
static void tell(uint64_t key, found_function *found, void *context)
{
	unsigned function = key_function(key), slot = key_slot(key);
	uint32_t object = key_object(key);
	size_t variable;

	if (object == 0) {
		if (zero_told[function])
			return;
		zero_told[function] = true;
	} else if (!registry_alive(slot, object) || registry_told(slot, function)) {
		return;
	}
	variable = variables_of(function);
	for (size_t i = 0, n = count_of(&functions[function]); i < n; i++)
		found(context, variable + i, object);
}

static void discover_block(struct block *b, found_function *found, void *context)
{
	uint64_t made = atomic_load_explicit(&b->made, memory_order_acquire);
	unsigned used;

	if (made == b->seen)
		return;
	b->seen = made;
	used = atomic_load_explicit(&b->used, memory_order_acquire);
	for (unsigned i = 0; i < function_count + used; i++) {
		uint64_t key = atomic_load_explicit(&b->keys[i], memory_order_acquire);

		if (key != 0)
			tell(key, found, context);
	}
}

static void discover_peers(found_function *found, void *context)
{
	for (unsigned count = peers_look(); peers_told < count; peers_told++) {
		int rank = peers_rank(peers_told);
		char name[16] = "other";

		if (rank != WORLD_NOBODY)
			snprintf(name, sizeof name, "%d", rank);
		add_variable(MESSAGES, peers_told, "mpit_call_peer", "_messages", name);
		found(context, variable_count - 1, 0);
		add_variable(BYTES, peers_told, "mpit_call_peer", "_bytes", name);
		found(context, variable_count - 1, 0);
	}
}

/* What is made while it looks is met now or the next time: blocks_made was read first. */
static void discover(found_function *found, void *context)
{
	uint64_t made = atomic_load_explicit(&blocks_made, memory_order_acquire);

	if (!uncounted_told) {
		uncounted_told = true;
		found(context, 0, 0);
	}
	discover_peers(found, context);
	if (made == seen)
		return;
	seen = made;
	for (struct block *b = atomic_load_explicit(&blocks, memory_order_acquire); b != NULL; b = b->next)
		discover_block(b, found, context);
}

/* Ticks of all threads are added before they become units: cut once, the sum never falls. */
static void read_times(unsigned function, uint32_t object, uint64_t *elements)
{
	uint64_t ticks = 0;

	memset(elements, 0, DISTRIBUTION_ELEMENTS * sizeof *elements);
	for (struct block *b = atomic_load_explicit(&blocks, memory_order_acquire); b != NULL; b = b->next) {
		const struct cell *c = block_cell(b, function, object);

		if (c == NULL)
			continue;
		ticks += atomic_load_explicit(&c->ticks, memory_order_relaxed);
		for (size_t i = 0; i < DISTRIBUTION_BUCKETS; i++)
			elements[1 + i] += atomic_load_explicit(&c->buckets[i], memory_order_relaxed);
	}
	elements[0] = ratio_units(&calls_state.clock.ratio, ticks);
}

static void read_sizes(unsigned function, uint32_t object, uint64_t *elements)
{
	memset(elements, 0, DISTRIBUTION_ELEMENTS * sizeof *elements);
	for (struct block *b = atomic_load_explicit(&blocks, memory_order_acquire); b != NULL; b = b->next) {
		const struct cell *c = block_cell(b, function, object);
		struct sizes *sizes = c == NULL ? NULL : block_sizes(b, c);

		if (sizes == NULL)
			continue;
		elements[0] += atomic_load_explicit(&sizes->bytes, memory_order_relaxed);
		for (size_t i = 0; i < DISTRIBUTION_BUCKETS; i++)
			elements[1 + i] += atomic_load_explicit(&sizes->buckets[i], memory_order_relaxed);
	}
}

static uint64_t read_bytes(unsigned function, uint32_t object, enum what what)
{
	uint64_t bytes = 0;

	for (struct block *b = atomic_load_explicit(&blocks, memory_order_acquire); b != NULL; b = b->next) {
		const struct cell *c = block_cell(b, function, object);

		if (c != NULL)
			bytes += atomic_load_explicit(what == OUT ? &c->out : &c->in, memory_order_relaxed);
	}
	return bytes;
}

static void read(size_t variable, uint32_t object, uint64_t *elements)
{
	const struct variable *v = &variables[variable];

	switch (v->what) {
	case UNCOUNTED: *elements = atomic_load_explicit(&calls_uncounted, memory_order_relaxed); break;
	case TIME: read_times(v->of, object, elements); break;
	case OUT:
	case IN: *elements = read_bytes(v->of, object, v->what); break;
	case SIZE: read_sizes(v->of, object, elements); break;
	case MESSAGES: *elements = peers_messages(v->of); break;
	case BYTES: *elements = peers_bytes(v->of); break;
	}
}

static uint64_t nanoseconds(uint64_t ticks)
{
	return (uint64_t)((unsigned __int128)ratio_units(&calls_state.clock.ratio, ticks) * 1000000000u >> 30);
}

static uint64_t gain(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

/* Ticks inside by what the calls do, the one that goes on included. */
static uint64_t ticks_of(const struct moment_inside *m, unsigned activity)
{
	bool goes_on = m->key != 0 && functions[key_function(m->key)].activity == activity;

	return m->ended[activity] + (goes_on ? m->now - m->begin : 0) + (activity == POLLING ? m->gap : 0);
}

/*
 * Time inside MPI and time observed of a block's thread, as they have been told: what was told never falls.
 *
 * What is read may: a call that is left by longjmp counts until the thread's next one begins, and not after that. And
 * a call that goes on while another thread has switched measuring off gains time that isn't observed. So what has been
 * gained since the last reading is added, and no more than was observed; in nanoseconds, so that what is cut from ticks
 * makes no share above 1.
 */
static void tell_inside(struct inside_told *last, const struct moment_inside *m)
{
	uint64_t observed = atomic_load_explicit(&calls_state.observed, memory_order_relaxed), inside, gained, passed;

	if (is_running(observed))
		observed += m->now;
	if (is_running(observed)) /* switched on since */
		observed = 0;
	inside = nanoseconds(m->ticks);
	gained = gain(inside, last->read);
	passed = gain(nanoseconds(observed), last->observed);
	last->read = inside;
	last->observed += passed;
	gained = gained < passed ? gained : passed;
	last->inside += gained;
	for (unsigned i = 0; i < ACTIVITIES; i++) {
		uint64_t now = nanoseconds(ticks_of(m, i)), more = gain(now, last->read_by[i]);

		last->read_by[i] = now;
		more = more < gained ? more : gained;
		last->by[i] += more;
		gained -= more;
	}
}

static void tell_collective(const struct requested *r, const struct function *f, struct source_thread *out)
{
	if (r->names == 0 || key_object(r->key) == 0)
		return;
	out->collective = f->name;
	out->collective_on = key_object(r->key);
	out->collective_number = r->names;
}

/*
 * Whose requests a call waits for: nothing is told unless all are known, nor where the system call that reads them may
 * be denied. Some may have completed, which only the library knows until the call sets them to null.
 */
static void tell_requests(const struct block *b, const struct moment_inside *m, struct source_thread *out)
{
	struct requested requests[REQUESTS_MOST];
	int open = requests_of(b, m, requests), peers[SOURCE_PEERS], count = 0, tag = -1;

	for (int i = 0; i < open; i++) {
		const struct requested *r = &requests[i];
		const struct function *f;
		int rank = (int)r->names, peer, k = 0;

		if (r->key == 0) /* made without a cell, or with one of another thread's */
			return;
		f = &functions[key_function(r->key)];
		if (f->ordered && open == 1)
			tell_collective(r, f, out);
		if (f->names != NAMES_PEER || f->bind != BIND_COMM)
			return;
		tag = (int)(r->names >> 32);
		if (rank == calls_abi->proc_null)
			continue;
		peer = peers_of(r->key, rank);
		if (peer == NO_PEER || (peer == ANY_PEER && open > 1))
			return;
		while (k < count && peers[k] != peer)
			k++;
		if (k == SOURCE_PEERS)
			return;
		if (k == count)
			peers[count++] = peer;
	}
	if (count == 1)
		out->peer = peers[0];
	if (open == 1)
		out->tag = tag < 0 ? -1 : tag;
	if (count < 2)
		return;
	memcpy(out->peers, peers, (size_t)count * sizeof *peers);
	out->peer_count = (size_t)count;
}

static void tell_names(const struct block *b, const struct moment_inside *m, struct source_thread *out)
{
	int rank = (int)m->names, tag = (int)(m->names >> 32);

	switch (functions[key_function(m->key)].names) {
	case NAMES_NOBODY: break;
	case NAMES_ROOT: out->root = rank < 0 ? -1 : rank; break;
	case NAMES_PEER:
		out->peer = peers_of(m->key, rank);
		out->tag = tag < 0 ? -1 : tag;
		break;
	case NAMES_REQUESTS:
		if (calls_state.peers && !filtered())
			tell_requests(b, m, out);
		break;
	}
}

/* A thread that is never met at rest makes call after call: what was told last stands, and it is in no call. */
static void tell_thread(struct block *b, uint64_t id, const struct moment_inside *m, struct source_thread *out)
{
	uint64_t now = nanoseconds(m == NULL ? clock_now(&calls_state.clock) : m->now);

	if (m != NULL)
		tell_inside(&b->told, m);
	*out = (struct source_thread){
		.id = id,
		.tid = atomic_load_explicit(&b->tid, memory_order_relaxed),
		.inside_ns = b->told.inside,
		.observed_ns = b->told.observed,
		.now_ns = now,
		.ended_ns = m == NULL ? now : nanoseconds(m->last),
		.peer = NO_PEER,
		.tag = -1,
		.root = -1,
	};
	memcpy(out->activity_ns, b->told.by, sizeof out->activity_ns);
	if (m == NULL || m->key == 0)
		return;
	out->begun_ns = nanoseconds(m->begin);
	out->function = functions[key_function(m->key)].name;
	out->bind = functions[key_function(m->key)].bind;
	out->object = key_object(m->key);
	out->number = m->number;
	tell_names(b, m, out);
}

static void tell_longest(const struct moment_inside *m, struct source_calls *out)
{
	uint64_t running = nanoseconds(m->now - m->begin);

	if (m->key == 0 || running <= out->running_ns)
		return;
	out->running_ns = running;
	out->function = functions[key_function(m->key)].name;
	out->bind = functions[key_function(m->key)].bind;
	out->object = key_object(m->key);
	out->from = m->from;
	out->frame = m->frame;
}

static bool calls(struct source_calls *out)
{
	*out = (struct source_calls){ .thread_count = 1 };
	if (blocks_first == NULL)
		return false;
	for (struct block *b = atomic_load_explicit(&blocks, memory_order_acquire); b != NULL; b = b->next) {
		uint64_t thread = atomic_load_explicit(&b->thread, memory_order_acquire);
		struct moment_inside m;
		bool met = block_inside(b, &m);

		/* Of a block that has changed hands meanwhile nobody knows whose moment that is. */
		if (thread == 0 || atomic_load_explicit(&b->thread, memory_order_acquire) != thread)
			continue;
		if (b == blocks_first)
			tell_thread(b, thread, met ? &m : NULL, &out->threads[0]);
		else if (out->thread_count < SOURCE_THREADS)
			tell_thread(b, thread, met ? &m : NULL, &out->threads[out->thread_count++]);
		if (met)
			tell_longest(&m, out);
	}
	return true;
}

static size_t sites(size_t first, struct source_site *out, size_t *count, size_t *made)
{
	size_t next = sites_read(first, out, count, made);

	for (size_t i = 0; i < *count; i++)
		out[i].time_ns = nanoseconds(out[i].time_ns);
	return next;
}

static void object_made(int kind, uint64_t handle, uint32_t number, int rank, int size)
{
	struct place place = { .rank = rank, .size = size };

	if (kind != BIND_COMM && kind != BIND_WIN && kind != BIND_FILE)
		return;
	if (kind == BIND_COMM)
		place_complete((intptr_t)handle, &place);
	if (calls_state.peers && kind != BIND_FILE)
		world_ranks(kind, (intptr_t)handle, place.inter, &place.world);
	else if (kind == BIND_COMM && (intptr_t)handle == calls_comm_world)
		place.world = (struct world_ranks){ .count = size, .stride = 1 };
	if (registry_add(kind, (intptr_t)handle, number, &place))
		order_object_made(kind, (intptr_t)handle);
}

static void object_freed(int kind, uint64_t handle, uint32_t number)
{
	registry_remove(kind, (intptr_t)handle, number);
}

static const struct source source = {
	.version = SOURCE_VERSION,
	.category = "mpit_calls",
	.category_description = "MPI calls made by the program, measured by the exporter's call profile",
	.begin = begin,
	.measure = measure,
	.count = count,
	.describe = describe,
	.discover = discover,
	.read = read,
	.calls = calls,
	.comms = order_tell,
	.sites = sites,
	.object_made = object_made,
	.object_freed = object_freed,
};

extern __attribute__((visibility("default"))) source_function mpit_agent_source;

const struct source *mpit_agent_source(uint32_t version)
{
	return version == SOURCE_VERSION ? &source : NULL;
}
