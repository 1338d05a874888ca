/* sites.c - counts by the place that MPI is called from. */
#include "sites.h"

#include "asked.h"
#include "functions.h"
#include "peers.h"

#define MOST_FRAMES 16

static struct site *_Atomic numbered[SITES_OF_ALL]; /* NULL: it is just being made */
static _Atomic unsigned made = 1;
/* Calls that return on another thread than they began on: from where they were made isn't known any more. */
static struct site strayed;

void sites_open(void)
{
	calls_state.stacks = calls_asked("stacks");
	calls_state.sites = calls_state.stacks || calls_asked("sites");
	if (!calls_state.sites)
		return;
	block_sites = SITES + 1; /* the last one: what has found no place */
	atomic_store_explicit(&calls_state.epoch_at_end, 0, memory_order_relaxed);
}

/* ---- a call ---- */

/* Where in a table the search for a site begins; the lower bits count. */
static inline size_t place_of(const struct cell *cell, uintptr_t from, uint64_t more)
{
	return (size_t)(((uintptr_t)cell ^ (uint64_t)from << 20 ^ more << 40 ^ more >> 24) * 0x9e3779b97f4a7c15u >> 32);
}

static inline bool is_site(const struct site *s, const struct cell *cell, uintptr_t from, uint64_t more)
{
	return LIKELY(s->cell == cell) && LIKELY(atomic_load_explicit(&s->from, memory_order_relaxed) == from) &&
	       LIKELY(atomic_load_explicit(&s->more, memory_order_relaxed) == more);
}

/* Where peers are counted: whom the call that has just returned has sent to or received from; 0: it names nobody. */
static uint32_t peer_of(const struct block *b, const struct cell *cell)
{
	uint64_t key = !calls_state.peers ? 0 : block_cell_key(b, cell);

	if (key_object(key) == 0 || functions[key_function(key)].bind != BIND_COMM ||
	    functions[key_function(key)].names != NAMES_PEER)
		return 0;
	return SITE_PEER(atomic_load_explicit(&b->under_way.names, memory_order_relaxed));
}

/* In the thread's own table, found or made. NULL: it would need `more` than half of it. */
static struct site *find(struct block *b, const struct cell *cell, uintptr_t from, uint64_t more)
{
	struct site *s;
	unsigned number;

	for (size_t place = place_of(cell, from, more);; place++) {
		s = &b->sites[place & (SITES - 1)];
		if (is_site(s, cell, from, more))
			return s;
		if (atomic_load_explicit(&s->key, memory_order_relaxed) == 0)
			break;
	}
	if (more != 0 && b->sites_used >= SITES_MOST / 2)
		return NULL;
	if (b->sites_used == SITES_MOST || atomic_load_explicit(&made, memory_order_relaxed) >= SITES_OF_ALL ||
	    (number = atomic_fetch_add_explicit(&made, 1, memory_order_relaxed)) >= SITES_OF_ALL)
		return more != 0 ? NULL : &b->sites[SITES];
	b->sites_used++;
	s->cell = cell;
	atomic_store_explicit(&s->from, from, memory_order_relaxed);
	atomic_store_explicit(&s->more, more, memory_order_relaxed);
	s->number = number;
	atomic_store_explicit(&s->key, block_cell_key(b, cell), memory_order_relaxed);
	atomic_store_explicit(&numbered[number], s, memory_order_release);
	return s;
}

/* A place that calls count at in any case, if need be without the peer. */
static struct site *find_place(struct block *b, const struct cell *cell, uintptr_t from, uint64_t *peer)
{
	struct site *s = find(b, cell, from, *peer);

	return s != NULL ? s : find(b, cell, from, *peer = 0);
}

/* Where the thread's frames are: what a function returns to, and the registers there. */
struct frames {
	uintptr_t from, stack, pointer;
};

/* To what has called the code that is there. False: it isn't known. */
static bool go_up(const struct block *b, uint32_t frame, struct frames *at)
{
	uintptr_t begin = ((frame & SITE_BY_POINTER) != 0 ? at->pointer : at->stack) + SITE_FRAME_BYTES(frame);
	uintptr_t saved = SITE_FRAME_SAVED(frame);

	if (SITE_FRAME_BYTES(frame) == 0 || begin % sizeof begin != 0 || begin <= at->stack || begin - at->stack < saved ||
	    !block_on_stack(b, (const uintptr_t *)begin - 1))
		return false;
	at->from = ((const uintptr_t *)begin)[-1];
	at->stack = begin;
	if (saved != 0)
		at->pointer = *(const uintptr_t *)(begin - saved);
	return true;
}

/*
 * The call has just returned, so that the frames of what has called it are there, and only the thread's own stack is
 * read. What a frame's size was found for may have been unloaded, and other code be there now: then a word is read that
 * is no address, and the site is in no file.
 */
static struct site *site_of(struct block *b, const struct cell *cell)
{
	struct frames at = { .from = atomic_load_explicit(&b->under_way.from, memory_order_relaxed),
			     .stack = atomic_load_explicit(&b->under_way.frame, memory_order_relaxed) };
	uint64_t peer = peer_of(b, cell), of = 0;
	struct site *s = find_place(b, cell, at.from, &peer), *caller;

#if defined __x86_64__
	/* Wrappers are compiled with frame pointers: each begins with saving that of what has called it. */
	if (calls_state.stacks && block_on_stack(b, (const uintptr_t *)at.stack - 2))
		at.pointer = ((const uintptr_t *)at.stack)[-2];
#endif
	for (int up = 0; up < MOST_FRAMES; up++) {
		uint32_t frame = atomic_load_explicit(&s->frame, memory_order_relaxed);

		if (frame <= SITE_HERE || !go_up(b, frame, &at))
			break;
		if ((frame & SITE_BINDING) == 0)
			of = (uint64_t)s->number << 32;
		caller = of == 0 ? find_place(b, cell, at.from, &peer) : find(b, cell, at.from, of | peer);
		if (caller == NULL)
			break;
		s = caller;
	}
	return s;
}

static inline bool count(struct site *s, const struct call *c, uint64_t bytes)
{
	cell_add(&s->calls, 1);
	cell_add(&s->ticks, c->begin);
	cell_add(&s->bytes, bytes);
	return true;
}

__attribute__((noinline)) static bool count_slowly(const struct call *c, uint64_t bytes)
{
	struct block *b = calls_thread.block;

	if (block_cell_key(b, c->cell) != 0)
		return count(site_of(b, c->cell), c, bytes);
	atomic_fetch_add_explicit(&strayed.calls, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&strayed.ticks, c->begin, memory_order_relaxed);
	atomic_fetch_add_explicit(&strayed.bytes, bytes, memory_order_relaxed);
	return true;
}

__attribute__((noinline)) static bool counts_in_doubt(const struct call *c, uint64_t bytes)
{
	if (c->epoch == EPOCH_PAUSED ||
	    (c->epoch != atomic_load_explicit(&calls_state.epoch, memory_order_relaxed) && !block_counts(c)))
		return false;
	return !calls_state.sites || count_slowly(c, bytes);
}

/* What is rare stands apart, so that nothing is saved and restored around it. */
bool call_counts_late(const struct call *c, uint64_t out, uint64_t in)
{
	const struct block *b = calls_thread.block;
	uint64_t bytes = out > in ? out : in;
	uintptr_t from;
	uint64_t peer;
	struct site *s;

	if (UNLIKELY(!calls_state.sites) ||
	    UNLIKELY(c->epoch != atomic_load_explicit(&calls_state.epoch, memory_order_relaxed)))
		return counts_in_doubt(c, bytes);
	if (UNLIKELY(b == NULL))
		return count_slowly(c, bytes);
	from = atomic_load_explicit(&b->under_way.from, memory_order_relaxed);
	peer = UNLIKELY(calls_state.peers) ? peer_of(b, c->cell) : 0;
	s = &b->sites[place_of(c->cell, from, peer) & (SITES - 1)]; /* has no other thread's cell */
	if (!is_site(s, c->cell, from, peer) || UNLIKELY(atomic_load_explicit(&s->frame, memory_order_relaxed) > SITE_HERE))
		return count_slowly(c, bytes);
	return count(s, c, bytes);
}

/* ---- the reader ---- */

static void add(const struct site *s, struct source_site *to)
{
	to->calls += atomic_load_explicit(&s->calls, memory_order_relaxed);
	to->time_ns += atomic_load_explicit(&s->ticks, memory_order_relaxed);
	to->bytes += atomic_load_explicit(&s->bytes, memory_order_relaxed);
}

static void read_site(size_t number, struct source_site *out)
{
	struct site *s = atomic_load_explicit(&numbered[number], memory_order_acquire);

	*out = (struct source_site){ .number = number, .peer = NO_PEER };
	if (number == 0) {
		add(&strayed, out);
		for (const struct block *b = atomic_load_explicit(&blocks, memory_order_acquire); b != NULL; b = b->next)
			add(&b->sites[SITES], out);
	} else if (s != NULL) {
		uint64_t key = atomic_load_explicit(&s->key, memory_order_relaxed);
		uint64_t more = atomic_load_explicit(&s->more, memory_order_relaxed);

		if ((uint32_t)more != 0)
			out->peer = peers_of(key, (int)SITE_PEER((uint32_t)more));
		out->of = more >> 32;
		out->deeper = calls_state.stacks;
		add(s, out);
		out->function = functions[key_function(key)].name;
		out->bind = functions[key_function(key)].bind;
		out->object = key_object(key);
		out->from = atomic_load_explicit(&s->from, memory_order_relaxed);
		out->frame = &s->frame;
	}
}

size_t sites_read(size_t first, struct source_site *out, size_t *count, size_t *all)
{
	size_t room = *count;
	unsigned now = atomic_load_explicit(&made, memory_order_relaxed);

	*all = !calls_state.sites ? 0 : now < SITES_OF_ALL ? now : SITES_OF_ALL;
	for (*count = 0; *count < room && first < *all; first++)
		read_site(first, &out[(*count)++]);
	return first;
}
