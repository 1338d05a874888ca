/*
 * block.h - what a thread counts in, and how it is read.
 *
 * A thread's first call maps a block and puts it at the head of the list, which only grows; when the thread ends the
 * block stays, with its counts, and the next thread that needs one takes it over, counts and all. So nothing is lost
 * with a thread, and there are as many blocks as there were threads at one time. A block is mapped whole, but memory
 * is used by the page as it is touched.
 *
 * A block has one cell for each function without an object (object 0), which also takes what finds no other, and
 * CELLS more for pairs of a function and an object. A cell's key says whose it is. Cells are made, and those of
 * objects that have gone made anew, by the owner alone. Where sizes are asked for, each cell has its own of them.
 */
#ifndef MPIT_CALLS_BLOCK_H
#define MPIT_CALLS_BLOCK_H

#include "calls.h"
#include "index.h"
#include "registry.h"

#ifndef CELLS
#define CELLS 4096u
#endif
#define CELL_PLACES (2 * CELLS) /* more than twice as many as ever stand in it: one is left free */
#define TYPES 128u
#define STARTS_MOST 4096 /* requests of one MPI_Startall that are looked at */

/* object << 32 | function + 1 << 16 | the object's slot; 0: unused. */
static inline uint64_t key_of(unsigned function, uint32_t object, unsigned slot)
{
	return (uint64_t)object << 32 | (uint64_t)(function + 1) << 16 | slot;
}

static inline unsigned key_function(uint64_t key)
{
	return (unsigned)(key >> 16 & 0xffff) - 1;
}

static inline uint32_t key_object(uint64_t key)
{
	return (uint32_t)(key >> 32);
}

static inline unsigned key_slot(uint64_t key)
{
	return (unsigned)(key & 0xffff);
}

/* What one thread counts of the sizes of a cell's calls; as a cell. Whole cache lines. */
struct sizes {
	_Alignas(64) _Atomic uint64_t bytes; /* of all */
	_Atomic uint64_t buckets[DISTRIBUTION_BUCKETS];
};

struct type_size {
	intptr_t handle;
	uint64_t epoch; /* 0: nothing */
	uint64_t bytes;
};

/* What a thread has sent to a peer (peers.h). */
struct peer_count {
	_Atomic uint64_t messages, bytes;
};

/* Calls of one function on one object from one place (sites.h). A cache line, of the table that it stands in. */
struct site {
	_Alignas(64) const struct cell *cell; /* the owner's; NULL: it has another key now */
	_Atomic uintptr_t from;               /* the address that the calls return to */
	/* Whom messages are for or from: SITE_PEER of a rank of the object; 0: not told. Its upper half is the number of the
	 * site that code here has called; 0: it has called MPI. */
	_Atomic uint64_t more;
	_Atomic uint64_t key;                 /* that of the cell; 0: unused */
	_Atomic uint64_t calls, ticks, bytes;
	_Atomic uint32_t frame; /* the reader's: source.h, source_site */
	uint32_t number;        /* among all threads'; the owner's */
};

#define SITE_PEER(rank) ((uint32_t)(rank) ^ 1u << 31)

/* A thread's time inside MPI, in nanoseconds. */
struct inside_told {
	uint64_t read, read_by[ACTIVITIES];        /* as it was read last */
	uint64_t inside, observed, by[ACTIVITIES]; /* as it has been told: it never falls */
};

struct block {
	struct block *next;   /* written before the block is in the list, as are sizes, peers and sites */
	struct sizes *sizes;  /* of the cells, in their order, behind them; NULL: not asked for */
	struct peer_count *peers; /* of block_peers, at the end */
	struct site *sites;       /* block_sites of them; NULL: not asked for */
	_Atomic bool owned;   /* by a thread that lives */
	_Atomic uint64_t thread, tid; /* whose it is: never the same of two threads, 0: nobody's; and the kernel's number */
	_Atomic intptr_t asking; /* handle of the datatype that the owner asks the library about now; 0: none */
	_Atomic uint64_t made; /* how often a cell has got a key */
	_Atomic unsigned used; /* of the cells behind the functions' own */
	struct under_way under_way;

	/* the gate's */
	uint64_t seen; /* of made */
	struct inside_told told;

	/* the owner's */
	uintptr_t stack_low, stack_high; /* of the thread; both 0: not known */
	unsigned sites_used;
	unsigned hand;    /* where the search for cells of gone objects goes on */
	uint64_t swept;   /* epoch at which it has last found none */
	struct place place;
	struct type_size types[TYPES];
	struct cached_cell cache[CACHE_ENTRIES];
	uint16_t starts[STARTS_MOST]; /* persistent.c's, of the call under way */

	index_place index[CELL_PLACES];            /* of cells with an object: 1 is the first behind the functions' own */
	_Atomic uint64_t keys[MOST_FUNCTIONS + CELLS]; /* of cells, in their order */
	struct cell cells[];                       /* function_count + CELLS */
};

/* Once, in begin, by the thread that initialises MPI. False: *why says what is missing. */
bool blocks_open(const char **why);
/* How many peers a block has room for. Written before blocks_open. */
extern size_t block_peers HIDDEN;
/* How many sites, likewise. */
extern size_t block_sites HIDDEN;
/* That thread's, which no other one takes over; NULL: there was no memory. Written in begin. */
extern struct block *blocks_first HIDDEN;

/* The gate is held. */
extern struct block *_Atomic blocks HIDDEN; /* the newest, each with the next */
extern _Atomic uint64_t blocks_made HIDDEN; /* how often a cell of any has got a key */
/* How many calls could not be counted. */
extern _Atomic uint64_t calls_uncounted HIDDEN;
/* A thread's time inside MPI at one moment, and the call it is in. */
struct moment_inside {
	uint64_t ticks, now; /* inside MPI, the call it is in or the gap included; of the clock, at that moment */
	uint64_t ended[ACTIVITIES]; /* ticks inside, without these */
	uint64_t gap;        /* ticks of polling since the last call, which was a test or a probe */
	uint64_t key;        /* of the call's function and object; 0: it is in none, or just between two */
	uint64_t number;     /* of a collective on its communicator, from 1; 0: it is none, or not known */
	uint64_t begin;      /* ticks, of that call */
	uint64_t last;       /* ticks: when the last call before it ended; 0: there was none */
	uintptr_t from, frame; /* the address that it returns to, and the stack pointer there */
	uint64_t names;      /* call_names or call_requests */
};
/* The gate is held. False: the thread makes call after call and is never met in one; then it is in no long one. */
bool block_inside(struct block *b, struct moment_inside *out);
/* That call has not ended. */
bool block_goes_on(const struct block *b, const struct moment_inside *m);
/* The key of a cell, which may be another block's or NULL; then 0. The block may be NULL. */
uint64_t block_cell_key(const struct block *b, const struct cell *cell);
/* The cell of a pair in a block; NULL: it has none. Its object lives (or is 0). */
const struct cell *block_cell(struct block *b, unsigned function, uint32_t object);
/* Whether a call during which objects have been made or freed may be counted in its cell. If not, that is counted. */
bool block_counts(const struct call *c);
/* An address is on the stack of the block's thread. False where that isn't known; the block may be NULL. */
bool block_on_stack(const struct block *b, const void *at);
/* What a cell of the block's counts of sizes; NULL: not asked for. */
struct sizes *block_sizes(const struct block *b, const struct cell *cell);

#endif
