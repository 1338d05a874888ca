/*
 * calls.h - how a call of MPI is measured: what the generated wrappers use, and the only part that runs in every
 * call.
 *
 *	struct call call;
 *
 *	if (!call_begins(&call, FUNCTION_MPI_Send, BIND_COMM, comm, UNORDERED, call_names(dest, tag),
 *			 __builtin_dwarf_cfa()))
 *		return next(...);
 *	int rc = next(...);
 *	call_returns(&call, SENDING);
 *	call_counts(&call, rc == 0 ? count * type_bytes(type) : 0, 0);
 *	return rc;
 *
 * Each thread counts in memory of its own (block.h), so that nothing here is a locked instruction, a lock or an
 * allocation; the reader reads while it is written. Only the outermost call counts: what a call calls inside passes
 * through.
 *
 * What a call that is left by longjmp or by an exception took is not known: it is not counted, and the thread goes on
 * being measured. A thread that switches stacks inside a call (user-level threads of an MPI library) may count calls
 * that are not outermost, or leave some out; it never writes where it must not. A call inside one that began before
 * measuring was switched on counts as outermost. MPI must not be called in signal handlers, and is not measured there
 * as if it might.
 */
#ifndef MPIT_CALLS_H
#define MPIT_CALLS_H

#include "abi.h"
#include "clock.h"
#include "source.h"
#include "world.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HIDDEN __attribute__((visibility("hidden")))
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/*
 * What is known of a communicator's collectives (order.h). In its slot (registry.h), so that it is there for as long
 * as the communicator. Whole words, relaxed: MPI itself orders the collectives on a communicator, also those of
 * several threads.
 */
struct order {
	_Atomic uint64_t begun;    /* how many this process has begun, + 1; 0: not known, for good */
	_Atomic uint64_t identity; /* the same in all members, 0: not known */
};

/*
 * What one thread counts of one function on one object. Written by the thread that owns the block, and by nobody
 * else, with plain stores that are whole (relaxed); read by whoever holds the agent's gate. Whole cache lines.
 */
struct cell {
	_Alignas(64) _Atomic uint64_t ticks; /* of the clock: the reader converts the sum */
	_Atomic uint64_t out, in;            /* bytes */
	struct order *order;                 /* the owner's: of the object; NULL: of no one, or of many */
	_Atomic uint64_t buckets[DISTRIBUTION_BUCKETS];
};

#define CACHE_BITS 10
#define CACHE_ENTRIES (1u << CACHE_BITS)

/* Which cell a function's calls on a handle go to, as long as no object is made or freed. */
struct cached_cell {
	intptr_t handle;
	uint64_t key; /* epoch | function; 0: nothing */
	struct cell *cell;
};

/* Where in the cache. Handles are consecutive integers or addresses of structures; a function's share is a constant
 * where it is called. */
static inline size_t call_hash(unsigned function, intptr_t handle)
{
	return (size_t)(((uint64_t)handle + function * 0x9e3779b97f4a7c15u) * 0xd6e8feb86659fd93u >> (64 - CACHE_BITS));
}

/*
 * How long a thread has been inside MPI or polling, and the call it is in. Written by the thread that owns the block
 * with plain stores that are whole; read by whoever holds the agent's gate. Two cache lines of its own.
 *
 * inside is one word, so that it is right whenever it is read: ticks inside MPI of the calls that have ended, less,
 * during a call, the tick at which that one began. A clock runs longer than anything is inside a call, so that during
 * a call it is negative, and inside + now the time inside MPI to the moment.
 *
 * begin, cell, from, frame and names belong to the call that inside is negative for if inside is the same before and after they are
 * read: all of them are stored with release, in the order below, and loaded with acquire. Who sees a word of the next
 * call sees that this one has ended. (Only where no tick passes between the two is inside the same in both; then they
 * are one call to this clock.) ended changes before inside says that a call is over: its sum tells whether they agree.
 *
 * A loop of tests is polling also between them: the first microsecond of the gap after one is, the rest is outside MPI.
 * The gap is added when the thread's next call begins; until then a reader counts it from last, which it reads before
 * ended: who sees the gap over in ended sees that the sum doesn't agree.
 */
struct under_way {
	_Alignas(64) _Atomic uint64_t begin; /* ticks; of the last call after its end */
	struct cell *_Atomic cell;
	_Atomic uintptr_t from, frame; /* the address that the outermost wrapper returns to, and the stack pointer there */
	_Atomic uint64_t names; /* call_names or call_requests */
	_Atomic uint64_t inside;
	_Atomic uint64_t last; /* 2 * the tick at which the last call ended, + 1: it was a test or probe */
	_Atomic uint64_t ended[ACTIVITIES]; /* ticks inside, of the calls and gaps that have ended */
};

/* Ticks, of a word of under_way.inside or calls_state.observed. */
static inline bool is_running(uint64_t word)
{
	return (int64_t)word < 0;
}

struct block;

/* What the thread is in the middle of. initial-exec: no call into the dynamic linker; 48 bytes of a preloaded
 * library's static TLS, 56 where wrappers leave their return address there. */
struct calls_thread {
	struct cached_cell *cache;   /* of its block; NULL: it has none */
	struct under_way *under_way; /* likewise */
	struct block *block;
	const void *mark;           /* where the frame of the outermost call's wrapper begins; NULL: it is in none */
	const struct call *running; /* below, in a frame that is there as long as the call */
	uint64_t types;             /* calls_state.types when that call began */
#if !defined __x86_64__
	uintptr_t from; /* see FRAME in wrappers.h */
#endif
};
extern __thread struct calls_thread calls_thread __attribute__((tls_model("initial-exec"))) HIDDEN;

/* What every call reads. Written in begin, except measuring, the epochs, which who holds the gate changes, and types. A
 * cache line of its own; what stands behind it is in the next. */
struct calls_state {
	_Alignas(64) _Atomic bool measuring;
	_Atomic bool begun; /* collectives are counted from then on, also while nothing is measured */
	bool sizes; /* calls are counted by size, too: written in begin */
	bool peers; /* messages are counted by peer (peers.h): likewise */
	uint32_t poll_gap; /* ticks, of a microsecond: likewise */
	struct clock clock;
	/* Bits of an argument's register that are the handle, but for a file's, which is a pointer everywhere. */
	uint64_t handle_mask;
	_Atomic uint64_t epoch;  /* steps of EPOCH_STEP, from EPOCH_STEP on: changes when an object is made or freed */
	_Atomic uint64_t types;  /* from 1 on: grows before a datatype is freed, by any thread (types.c) */
	/* epoch, as calls compare it when they end. With sites it is none: then each call ends in call_counts_late, and one
	 * that counts no sites pays nothing for them. */
	_Atomic uint64_t epoch_at_end;

	/* Not read in every call. Ticks for which measuring has been on, less, while it is on, the tick at which that began. */
	_Alignas(64) _Atomic uint64_t observed;
	bool sites, stacks; /* calls are counted by where they are made (sites.h): written in begin */
};
extern struct calls_state calls_state HIDDEN;

#define EPOCH_STEP ((uint64_t)1 << 16) /* a function's number is below */
#define EPOCH_NEVER 1                  /* of a call that can't be counted */
#define EPOCH_PAUSED 2                 /* of one that isn't measured */

/* What a function is to the communicator that it names. */
enum ordering {
	UNORDERED,
	ORDERED, /* a collective: all members begin it, in one order */
	MAKES,   /* no collective on it, but it makes another one */
	NOTED,   /* neither, but where peers are counted its requests are noted also while nothing is measured */
};

/* In the frame of the function around the call. */
struct call {
	struct cell *cell; /* NULL: no memory for this thread's block */
	uint64_t begin;    /* ticks; after call_returns how many it took */
	uint64_t epoch;
	intptr_t handle;
	uintptr_t there;   /* call_there of its frame: says whether a mark's frame is still there */
};

/*
 * A word that goes with a call and its wrapper's frame, and on x86-64 with where that returns to, which the call
 * instruction has put where the frame begins. Elsewhere that is in a register, and then wherever a compiler likes.
 */
ALWAYS_INLINE uintptr_t call_there(const struct call *c, const void *frame)
{
#if defined __x86_64__
	return (uintptr_t)c ^ 0x5ca1ab1ebadcab1e ^ ((const uintptr_t *)frame)[-1];
#else
	return (uintptr_t)c ^ 0x5ca1ab1ebadcab1e ^ (uintptr_t)frame;
#endif
}

/* Where the program called the wrapper whose frame begins there. */
ALWAYS_INLINE uintptr_t call_from(const struct calls_thread *t, const void *frame)
{
#if defined __x86_64__
	(void)t;
	return ((const uintptr_t *)frame)[-1];
#else
	(void)frame;
	return t->from;
#endif
}

/* How much of the time since a poll ended counts as polling. Cores' counters may differ. */
ALWAYS_INLINE uint64_t poll_gap(uint64_t ended, uint64_t now)
{
	uint64_t gap = now > ended ? now - ended : 0;

	return gap < calls_state.poll_gap ? gap : calls_state.poll_gap;
}

/* Whom a function's calls name. */
enum names {
	NAMES_NOBODY,
	NAMES_PEER, /* a rank of its communicator (the remote group's of an intercommunicator) or window, and a tag */
	NAMES_ROOT, /* a rank of its communicator */
	NAMES_REQUESTS, /* an array of requests */
};
#define NO_TAG (-1)

/* That, as the program gives it: of the registers only the lower halves count. 0 where it is nobody. */
ALWAYS_INLINE uint64_t call_names(intptr_t rank, intptr_t tag)
{
	return (uint64_t)tag << 32 | (uint32_t)rank;
}

#define REQUESTS_MOST 128 /* of how many requests of a call it is looked up whose they are */

/* Where the requests of a call are, and how many; 0: more than are looked up, or an address that leaves no room. */
ALWAYS_INLINE uint64_t call_requests(intptr_t array, intptr_t count)
{
	return (uint32_t)count <= REQUESTS_MOST && (uint64_t)array >> 48 == 0 ? (uint64_t)(uint32_t)count << 48 | (uint64_t)array
									      : 0;
}

/* The thread is in a call, which began at c->begin. */
ALWAYS_INLINE void under_way_begins(const struct calls_thread *t, const struct call *c, uint64_t names,
				    const void *frame)
{
	struct under_way *u = t->under_way;
	uint64_t inside, last;

	if (UNLIKELY(u == NULL))
		return;
	inside = atomic_load_explicit(&u->inside, memory_order_relaxed);
	last = atomic_load_explicit(&u->last, memory_order_relaxed);
	if (UNLIKELY(is_running(inside))) {
		/* A call that was left by longjmp: how long it took isn't known. */
		inside += atomic_load_explicit(&u->begin, memory_order_relaxed);
	} else if (UNLIKELY(last & 1)) {
		uint64_t gap = poll_gap(last >> 1, c->begin);

		inside += gap;
		atomic_store_explicit(&u->ended[POLLING],
				      atomic_load_explicit(&u->ended[POLLING], memory_order_relaxed) + gap,
				      memory_order_release);
	}
	atomic_store_explicit(&u->begin, c->begin, memory_order_release);
	atomic_store_explicit(&u->cell, c->cell, memory_order_release);
	atomic_store_explicit(&u->from, call_from(t, frame), memory_order_release);
	atomic_store_explicit(&u->frame, (uintptr_t)frame, memory_order_release);
	atomic_store_explicit(&u->names, names, memory_order_release);
	atomic_store_explicit(&u->inside, inside - c->begin, memory_order_release);
}

/* It has returned. A call that returns on another thread than it began on leaves that one's as it is. */
ALWAYS_INLINE void under_way_ends(const struct calls_thread *t, enum activity activity, uint64_t begin, uint64_t took)
{
	struct under_way *u = t->under_way;
	uint64_t inside;

	if (UNLIKELY(u == NULL))
		return;
	inside = atomic_load_explicit(&u->inside, memory_order_relaxed);
	if (LIKELY(is_running(inside)) && LIKELY(atomic_load_explicit(&u->begin, memory_order_relaxed) == begin)) {
		atomic_store_explicit(&u->ended[activity],
				      atomic_load_explicit(&u->ended[activity], memory_order_relaxed) + took,
				      memory_order_release);
		atomic_store_explicit(&u->last, (begin + took) << 1 | (activity == POLLING), memory_order_release);
		atomic_store_explicit(&u->inside, inside + begin + took, memory_order_release);
	}
}

/* block.c: whether the call that the thread is marked as being in is really there, so that the new one, of which only
 * the address counts, is inside it. */
bool call_nested(struct call *c, const void *frame) HIDDEN;
/* block.c: the cell, found or made; NULL: no memory. */
struct cell *call_find_cell(unsigned function, int kind, intptr_t handle, uint64_t epoch) HIDDEN;
/* sites.c: of a call during which objects have been made or freed, or of each where sites are counted: counts its site,
 * and says whether it may be counted in its cell. If not, that is counted. Bytes as call_counts has them. */
bool call_counts_late(const struct call *c, uint64_t out, uint64_t in) HIDDEN;

/* order.c: the same as order_counts, the slot looked for: the cell is none of the communicator's. */
void order_counts_found(intptr_t handle) HIDDEN;
/* block.c: of a call that isn't UNORDERED and seems to be inside another. If nobody can be sure, what it counts isn't
 * known any more. */
void call_doubts(const struct call *c, intptr_t handle, enum ordering ordering) HIDDEN;
/* block.c: call_begins of what isn't UNORDERED while nothing is measured. True: it is the program's own call, and goes
 * on as if it were measured, but nothing of it is counted except its number. */
bool call_begins_paused(struct call *c, intptr_t handle, enum ordering ordering, const void *frame) HIDDEN;

/* Before the collective is under way: who sees it under way sees its number. */
ALWAYS_INLINE void order_counts(const struct call *c, intptr_t handle)
{
	struct order *order = LIKELY(c->cell != NULL) ? c->cell->order : NULL;

	if (LIKELY(order != NULL)) {
		uint64_t begun = atomic_load_explicit(&order->begun, memory_order_relaxed);

		/* Release: not before the end of the call that was counted last. */
		atomic_store_explicit(&order->begun, begun + (begun != 0), memory_order_release);
	} else {
		order_counts_found(handle);
	}
}

/*
 * False: the call passes through unmeasured, because measuring is off or the call is inside another. frame is where
 * the wrapper's begins. kind is BIND_NONE (any handle), BIND_COMM, BIND_WIN or BIND_FILE; it and ordering are constants,
 * and always the same of a function; handle is the argument's register.
 *
 * measuring is loaded with acquire for the one case that a thread calls MPI while another initialises it (sessions):
 * then everything that begin has set is seen with it. On x86-64 that is the same instruction as a relaxed load.
 */
ALWAYS_INLINE bool call_begins(struct call *c, unsigned function, int kind, intptr_t handle, enum ordering ordering,
			       uint64_t names, const void *frame)
{
	struct calls_thread *t = &calls_thread;

	if (!LIKELY(atomic_load_explicit(&calls_state.measuring, memory_order_acquire)))
		return ordering != UNORDERED && call_begins_paused(c, handle, ordering, frame);
	if (UNLIKELY(t->mark != NULL) && call_nested(c, frame)) {
		if (ordering != UNORDERED)
			call_doubts(c, handle, ordering);
		return false;
	}
	if (kind == BIND_NONE)
		handle = 0;
	else if (kind != BIND_FILE)
		handle &= (intptr_t)calls_state.handle_mask;

	/*
	 * Acquire: what the slow path then finds of objects is not older than the epoch that the result is kept under. Of
	 * the object that is named here it is never too old: the thread has the handle from the one that made it, which
	 * changed the epoch before.
	 */
	uint64_t epoch = atomic_load_explicit(&calls_state.epoch, memory_order_acquire);
	const struct cached_cell *cached = t->cache == NULL ? NULL : &t->cache[call_hash(function, handle)];

	if (LIKELY(cached != NULL) && LIKELY(cached->key == (epoch | function)) && LIKELY(cached->handle == handle)) {
		c->cell = cached->cell;
	} else {
		c->cell = call_find_cell(function, kind, handle, epoch);
		if (c->cell == NULL)
			epoch = EPOCH_NEVER;
	}
	if (ordering == ORDERED)
		order_counts(c, handle);
	c->epoch = epoch;
	c->handle = handle;
	c->there = call_there(c, frame);
	t->mark = frame;
	t->running = c;
	/* Before the call, which another thread's free may follow. */
	t->types = atomic_load_explicit(&calls_state.types, memory_order_acquire);
	c->begin = clock_now(&calls_state.clock);
	under_way_begins(t, c, names, frame);
	return true;
}

/* Right after the real call, whatever it has returned: reads the clock and ends the mark. The activity is always the
 * same of a function. */
ALWAYS_INLINE void call_returns(struct call *c, enum activity activity)
{
	uint64_t now = clock_now(&calls_state.clock);
	/* Cores' counters may differ by less than a call takes. */
	uint64_t took = now > c->begin ? now - c->begin : 0;

	under_way_ends(&calls_thread, activity, c->begin, took);
	c->begin = took;
	calls_thread.mark = NULL;
	calls_thread.running = NULL;
}

/* Only the owner writes, so that this needs no locked instruction; the reader gets the old value or the new one. */
ALWAYS_INLINE void cell_add(_Atomic uint64_t *to, uint64_t value)
{
	atomic_store_explicit(to, atomic_load_explicit(to, memory_order_relaxed) + value, memory_order_relaxed);
}

/* The call, its duration and its bytes: of the function's directions out and in. After call_returns. */
ALWAYS_INLINE void call_counts(struct call *c, uint64_t out, uint64_t in)
{
	if (UNLIKELY(c->epoch != atomic_load_explicit(&calls_state.epoch_at_end, memory_order_relaxed)) &&
	    !call_counts_late(c, out, in))
		return;
	cell_add(&c->cell->ticks, c->begin);
	cell_add(&c->cell->buckets[ratio_bucket(&calls_state.clock.ratio, c->begin)], 1);
	if (out != 0)
		cell_add(&c->cell->out, out);
	if (in != 0)
		cell_add(&c->cell->in, in);
}

/* Whether the call's size is to be counted, too. */
ALWAYS_INLINE bool counts_sizes(void)
{
	return UNLIKELY(calls_state.sizes);
}
/* block.c: the size of a call that has succeeded. Where counts_sizes, after call_counts. */
void call_size(const struct call *c, uint64_t bytes) HIDDEN;

/*
 * Size of a datatype in bytes, from the argument's register; 0: it has none. Cached per thread until a datatype is
 * freed. Program's threads, after a call that has succeeded with it, before the thread's next one; meanwhile other
 * threads may have freed it.
 */
uint64_t type_bytes(intptr_t datatype) HIDDEN;

/* Where the process stands in the call's communicator, and that one's neighbourhood, whose degrees are 0 without a
 * topology. */
struct place {
	int rank, size, remote_size, indegree, outdegree; /* remote_size: 0 unless inter */
	bool inter;
	struct world_ranks world; /* of a window, too */
};
/* Of a function of BIND_COMM; valid until the thread asks again. Program's threads, after a successful call. */
const struct place *call_place(const struct call *c) HIDDEN;

ALWAYS_INLINE bool counts_peers(void)
{
	return UNLIKELY(calls_state.peers);
}
/* peers.c: the call has sent something to a rank of its communicator or window. Where counts_peers, after
 * call_counts. */
void call_sends(const struct call *c, int kind, int rank, uint64_t bytes) HIDDEN;

/* requests.c: the call has begun an operation that ends later; request is where its handle is, names its call_names, or
 * call_number if it is a collective. Where counts_peers, after call_counts. */
void call_requested(const struct call *c, intptr_t request, uint64_t names) HIDDEN;
/* order.c: the number of a collective that has been begun, on its communicator, while the program can't have begun the
 * next; 0: not known. */
uint64_t call_number(const struct call *c) HIDDEN;

#define NO_MESSAGE UINT64_MAX
/*
 * persistent.c, all where counts_peers. After call_counts of a call that has made a persistent request: names as above,
 * bytes that each start sends, NO_MESSAGE: none. Before and after the library's call that starts requests.
 */
void call_persists(const struct call *c, unsigned function, intptr_t request, uint64_t names, uint64_t bytes) HIDDEN;
void call_starts(intptr_t requests, intptr_t count) HIDDEN;
void call_started(const struct call *c, intptr_t requests, intptr_t count) HIDDEN;

/* How a constructor's communicators are told apart, and what its argument is. */
enum makes {
	MAKES_ONE,        /* one for all who get any; 0 */
	MAKES_COLOURS,    /* one for each colour; the colour */
	MAKES_PARTS,      /* parts that have no process in common; 0 */
	MAKES_OF_GROUP,   /* MPI_Comm_create_group; the tag */
	MAKES_OF_GROUPS,  /* MPI_Intercomm_create; the tag */
	MAKES_FROM_GROUP, /* MPI_Comm_create_from_group; the string */
	MAKES_FROM_GROUPS /* MPI_Intercomm_create_from_groups; the string */
};
/* order.c, all after call_returns but for order_turn. */
/* Of a call that has failed: whether the others have counted it is not known. */
void order_failed(const struct call *c, enum ordering ordering) HIDDEN;
/* Before a constructor of MAKES_OF_GROUPS: what order_made is to be given; 0 of the others. */
uint64_t order_turn(void) HIDDEN;
/* After a constructor that has succeeded. newcomm: where the library has put the handle. */
void order_made(const struct call *c, enum makes makes, intptr_t argument, intptr_t newcomm, uint64_t turn) HIDDEN;

/* What differs between the ABIs and is no handle. */
struct calls_abi {
	uint64_t number; /* docs/internals/protocol.md, HELLO: ABI */
	const void *in_place, *status_ignore;
	int proc_null, root, any_source;
	int cart, graph, dist_graph; /* MPI_Topo_test's */
	size_t handle_size;          /* bytes of a handle in an array: of a datatype, a request */
	uint64_t handle_mask;
	bool asks_status; /* status_bytes calls library.get_count_c, which must be there */
	/* Bytes that the status of a receive or a file's access tells of, one that has waited for its end: nothing
	 * cancels that. */
	uint64_t (*status_bytes)(const void *status);
	/* Handles that a call may name though they stand for nothing, and MPI_COMM_WORLD: what they are in a register. find
	 * is source_mpi's. */
	intptr_t (*datatype_null)(void *(*find)(const char *symbol));
	intptr_t (*no_op)(void *(*find)(const char *symbol));
	intptr_t (*comm_world)(void *(*find)(const char *symbol));
	intptr_t (*comm_null)(void *(*find)(const char *symbol));
	intptr_t (*request_null)(void *(*find)(const char *symbol));
};
extern const struct calls_abi *calls_abi HIDDEN; /* set in begin, before measuring is on */
extern const struct calls_abi *const calls_abi_list[] HIDDEN;
/* calls_abi's, asked once in begin. */
extern intptr_t calls_datatype_null HIDDEN, calls_no_op HIDDEN, calls_comm_world HIDDEN,
	calls_comm_null HIDDEN, calls_request_null HIDDEN;

#endif
