/* block.c - blocks, their cells, and the slow path of a call. */
#define _GNU_SOURCE
#include "block.h"

#include "functions.h"
#include "order.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct block *_Atomic blocks;
_Atomic uint64_t blocks_made;
_Atomic uint64_t calls_uncounted;
struct block *blocks_first;
size_t block_peers, block_sites;
static _Atomic uint64_t threads_seen; /* that have taken a block */

/* A value for each thread that has a block, so that its end is heard of. */
static pthread_key_t block_key;
/* Calls until a thread that got no block tries again: a refused mmap at each call would cost a system call. */
static __thread unsigned patience __attribute__((tls_model("initial-exec")));
#define TRY_AGAIN_AFTER 1024

/* ---- blocks ---- */

/*
 * At the thread's end. Release: whoever takes the block over sees all that this thread has written. Destructors of
 * other keys, run after this one, may call MPI yet: the thread then takes a block anew, and this is run again, or, in
 * the last round of all, the block stays taken.
 */
static void thread_ends(void *own)
{
	struct block *b = own;
	struct under_way *u = &b->under_way;
	uint64_t inside = atomic_load_explicit(&u->inside, memory_order_relaxed);

	/* In a call that it has not returned from. The gap before that has been added. */
	if (is_running(inside)) {
		atomic_store_explicit(&u->last, 0, memory_order_release);
		atomic_store_explicit(&u->inside, inside + atomic_load_explicit(&u->begin, memory_order_relaxed),
				      memory_order_release);
	}
	calls_thread = (struct calls_thread){ 0 };
	if (b == blocks_first)
		return;
	atomic_store_explicit(&b->thread, 0, memory_order_release);
	atomic_store_explicit(&b->owned, false, memory_order_release);
}

static size_t cell_count(void)
{
	return function_count + CELLS;
}

static size_t block_bytes(void)
{
	return sizeof(struct block) + cell_count() * (sizeof(struct cell) + (calls_state.sizes ? sizeof(struct sizes) : 0)) +
	       block_sites * sizeof(struct site) + block_peers * sizeof(struct peer_count);
}

/* One that a thread has left. */
static struct block *block_adopt(void)
{
	for (struct block *b = atomic_load_explicit(&blocks, memory_order_acquire); b != NULL; b = b->next) {
		bool owned = false;

		if (!atomic_load_explicit(&b->owned, memory_order_relaxed) &&
		    atomic_compare_exchange_strong_explicit(&b->owned, &owned, true, memory_order_acquire, memory_order_relaxed))
			return b;
	}
	return NULL;
}

static struct block *block_map(void)
{
	struct block *b = mmap(NULL, block_bytes(), PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (b == MAP_FAILED)
		return NULL;
	/* Where huge pages come unasked a thread that makes one call would take 2 MiB. */
	madvise(b, block_bytes(), MADV_NOHUGEPAGE);
	atomic_init(&b->owned, true);
	if (calls_state.sizes)
		b->sizes = (struct sizes *)(b->cells + cell_count());
	b->peers = (struct peer_count *)((char *)b + block_bytes()) - block_peers;
	if (block_sites > 0)
		b->sites = (struct site *)b->peers - block_sites; /* whole cache lines, as all that stands before them */
	b->next = atomic_load_explicit(&blocks, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(&blocks, &b->next, b, memory_order_release, memory_order_relaxed))
		;
	return b;
}

static void learn_stack(struct block *b)
{
	pthread_attr_t attributes;
	void *low;
	size_t size;

	b->stack_low = b->stack_high = 0;
	if (pthread_getattr_np(pthread_self(), &attributes) != 0)
		return;
	if (pthread_attr_getstack(&attributes, &low, &size) == 0) {
		b->stack_low = (uintptr_t)low;
		b->stack_high = (uintptr_t)low + size;
	}
	pthread_attr_destroy(&attributes);
}

/* NULL: no memory. */
static struct block *block_take(void)
{
	int program = errno; /* whose MPI call this is */
	struct block *b;

	if (patience > 0) {
		patience--;
		return NULL;
	}
	b = block_adopt();
	if (b == NULL)
		b = block_map();
	if (b != NULL && pthread_setspecific(block_key, b) == 0) {
		learn_stack(b);
		atomic_store_explicit(&b->under_way.last, 0, memory_order_release); /* of the thread before */
		/* One system call, once for each thread: glibc before 2.30 has no other way to its number. */
		atomic_store_explicit(&b->tid, (uint64_t)syscall(SYS_gettid), memory_order_release);
		atomic_store_explicit(&b->thread, atomic_fetch_add_explicit(&threads_seen, 1, memory_order_relaxed) + 1,
				      memory_order_release);
		calls_thread.block = b;
		calls_thread.cache = b->cache;
		calls_thread.under_way = &b->under_way;
		errno = program;
		return b;
	}
	/* A block whose thread's end would not be heard of could never be used again. */
	if (b != NULL)
		atomic_store_explicit(&b->owned, false, memory_order_release);
	patience = TRY_AGAIN_AFTER - 1;
	errno = program;
	return NULL;
}

bool blocks_open(const char **why)
{
	static bool open;

	if (!open && pthread_key_create(&block_key, thread_ends) != 0) {
		*why = "the program has used up all keys of thread-specific data";
		return false;
	}
	open = true;
	if (blocks_first == NULL)
		blocks_first = calls_thread.block != NULL ? calls_thread.block : block_take();
	return true;
}

/* ---- cells ---- */

/*
 * The argument, for owner and reader, in one place.
 *
 * Counting. The owner alone writes a cell's counts, with relaxed stores; the reader loads each, relaxed. Each value
 * is one that was there, and of one variable in time never an older one than before (coherence), so that nothing that
 * is read ever falls. Values of one cell are not of one moment: a call's time may be in the sum already and not yet
 * in its bucket.
 *
 * A new cell. Its counts are zero, from mmap or by the owner's stores; then its key is stored (release), then its
 * place in the index (release), then `used`, `made` and blocks_made grow (release). The reader goes the other way
 * with acquire and so meets no key whose counts or index entry are not there.
 *
 * A cell made anew. Its object has gone: registry_alive says so (acquire) after registry_remove has (release), which
 * comes after the object's last read by the same thread, or by one that has given it the gate. So the owner's zeros
 * come after that read. Nobody reads the pair again, because the number is not used again, and a reader that looks
 * for other pairs sees the old key or the new one, both of which are not the one that it looks for, unless it is the
 * new one and told of.
 *
 * A call that began on an object that is freed before it returns (another thread's MPI_Comm_free, while this one
 * waits in MPI_Recv) finds the epoch changed and the object gone: it is counted as uncounted and writes to no cell.
 * Should the object go between that look and the store, the call is missing in what was read last; the cell is this
 * thread's, so that it can't be another pair's by then.
 */

static uint64_t hash_of(unsigned function, uint32_t object)
{
	return (uint64_t)object << 16 | function;
}

static unsigned find(struct block *b, unsigned function, uint32_t object)
{
	size_t place = index_begin(hash_of(function, object), CELL_PLACES);

	for (size_t i = 0; i < CELL_PLACES; i++, place = (place + 1) & (CELL_PLACES - 1)) {
		unsigned number = index_at(b->index, place);
		uint64_t key;

		if (number == INDEX_EMPTY)
			return 0;
		if (number == INDEX_GONE)
			continue;
		key = atomic_load_explicit(&b->keys[function_count + number - 1], memory_order_acquire);
		if (key >> 16 == key_of(function, object, 0) >> 16)
			return number;
	}
	return 0;
}

const struct cell *block_cell(struct block *b, unsigned function, uint32_t object)
{
	unsigned number;

	if (object == 0)
		return &b->cells[function];
	number = find(b, function, object);
	return number == 0 ? NULL : &b->cells[function_count + number - 1];
}

static bool has_cell(const struct block *b, const struct cell *cell)
{
	return b != NULL && cell >= b->cells && cell < b->cells + cell_count();
}

uint64_t block_cell_key(const struct block *b, const struct cell *cell)
{
	return has_cell(b, cell) ? atomic_load_explicit(&b->keys[cell - b->cells], memory_order_acquire) : 0;
}

bool block_goes_on(const struct block *b, const struct moment_inside *m)
{
	return is_running(atomic_load_explicit(&b->under_way.inside, memory_order_acquire)) &&
	       atomic_load_explicit(&b->under_way.begin, memory_order_acquire) == m->begin;
}

struct sizes *block_sizes(const struct block *b, const struct cell *cell)
{
	return b->sizes == NULL ? NULL : &b->sizes[cell - b->cells];
}

#define INSIDE_TRIES 64

bool block_inside(struct block *b, struct moment_inside *out)
{
	struct under_way *u = &b->under_way;

	for (int i = 0; i < INSIDE_TRIES; i++) {
		uint64_t inside = atomic_load_explicit(&u->inside, memory_order_acquire);
		uint64_t begin = atomic_load_explicit(&u->begin, memory_order_acquire);
		const struct cell *cell = atomic_load_explicit(&u->cell, memory_order_acquire);
		uintptr_t from = atomic_load_explicit(&u->from, memory_order_acquire);
		uintptr_t frame = atomic_load_explicit(&u->frame, memory_order_acquire);
		uint64_t names = atomic_load_explicit(&u->names, memory_order_acquire);
		uint64_t last = atomic_load_explicit(&u->last, memory_order_acquire);
		uint64_t key = 0, number = 0, now, gap = 0, ended[ACTIVITIES], all = 0;

		for (size_t k = 0; k < ACTIVITIES; k++)
			ended[k] = atomic_load_explicit(&u->ended[k], memory_order_acquire);
		/* The cell of a call that runs has the same key all the time. */
		if (is_running(inside))
			key = block_cell_key(b, cell);
		/* It was counted before this, and the next one on the communicator comes after its end. */
		if (key_slot(key) != 0 && functions[key_function(key)].ordered)
			number = order_number(key_slot(key), key_object(key));
		now = clock_now(&calls_state.clock);
		if (atomic_load_explicit(&u->inside, memory_order_acquire) != inside)
			continue;
		/* A call is counted as ended right before inside says so. */
		for (size_t k = 0; k < ACTIVITIES; k++)
			all += ended[k];
		if (all != (is_running(inside) ? inside + begin : inside))
			continue;
		if (is_running(inside) && now < begin)
			now = begin; /* cores' counters may differ */
		if (!is_running(inside) && (last & 1) != 0)
			gap = poll_gap(last >> 1, now);
		*out = (struct moment_inside){
			.ticks = is_running(inside) ? inside + now : inside + gap,
			.now = now,
			.gap = gap,
			.key = key,
			.number = number,
			.begin = begin,
			.last = last >> 1,
			.from = from,
			.frame = frame,
			.names = names,
		};
		memcpy(out->ended, ended, sizeof ended);
		return true;
	}
	return false;
}

static void announce(struct block *b)
{
	atomic_store_explicit(&b->made, atomic_load_explicit(&b->made, memory_order_relaxed) + 1, memory_order_release);
	atomic_fetch_add_explicit(&blocks_made, 1, memory_order_release);
}

static void zero_buckets(_Atomic uint64_t *buckets)
{
	for (size_t i = 0; i < DISTRIBUTION_BUCKETS; i++)
		atomic_store_explicit(&buckets[i], 0, memory_order_relaxed);
}

static void zero(const struct block *b, struct cell *c)
{
	struct sizes *sizes = block_sizes(b, c);

	atomic_store_explicit(&c->ticks, 0, memory_order_relaxed);
	atomic_store_explicit(&c->out, 0, memory_order_relaxed);
	atomic_store_explicit(&c->in, 0, memory_order_relaxed);
	zero_buckets(c->buckets);
	for (size_t i = 0; i < block_sites; i++)
		if (b->sites[i].cell == c)
			b->sites[i].cell = NULL;
	if (sizes == NULL)
		return;
	atomic_store_explicit(&sizes->bytes, 0, memory_order_relaxed);
	zero_buckets(sizes->buckets);
}

/*
 * A cell whose object has gone, emptied; 0: none was found. Objects go at changes of the epoch only, so that a search
 * that has gone all round is not repeated before the next one. Where there are unused cells it looks at a few: memory
 * stays near what lives, and a call doesn't pay for a long search.
 */
static unsigned reclaim(struct block *b, unsigned used, uint64_t epoch)
{
	unsigned looks = used < CELLS - 1 && used > 64 ? 64 : used;

	if (b->swept == epoch)
		return 0;
	for (unsigned i = 0; i < looks; i++) {
		unsigned number = b->hand % used + 1;
		_Atomic uint64_t *key = &b->keys[function_count + number - 1];
		uint64_t was = atomic_load_explicit(key, memory_order_relaxed);

		b->hand = number;
		if (registry_alive(key_slot(was), key_object(was)))
			continue;
		index_remove(b->index, CELL_PLACES, hash_of(key_function(was), key_object(was)), number);
		/* No key while it is emptied; release: not before the entry has gone. */
		atomic_store_explicit(key, 0, memory_order_release);
		zero(b, &b->cells[function_count + number - 1]);
		return number;
	}
	if (looks == used)
		b->swept = epoch;
	return 0;
}

/* The cell of a pair whose object is not 0; NULL: the block is full of pairs that live. */
static struct cell *make_cell(struct block *b, unsigned function, uint32_t object, unsigned slot, uint64_t epoch)
{
	unsigned used = atomic_load_explicit(&b->used, memory_order_relaxed), number = reclaim(b, used, epoch);

	if (number == 0 && used == CELLS - 1)
		return NULL;
	if (number == 0)
		number = ++used;
	atomic_store_explicit(&b->keys[function_count + number - 1], key_of(function, object, slot), memory_order_release);
	index_put(b->index, CELL_PLACES, hash_of(function, object), number);
	atomic_store_explicit(&b->used, used, memory_order_release);
	announce(b);
	return &b->cells[function_count + number - 1];
}

/* The function's own cell, of object 0. */
static struct cell *own_cell(struct block *b, unsigned function)
{
	if (atomic_load_explicit(&b->keys[function], memory_order_relaxed) == 0) {
		atomic_store_explicit(&b->keys[function], key_of(function, 0, 0), memory_order_release);
		announce(b);
	}
	return &b->cells[function];
}

static struct cell *find_cell(struct block *b, unsigned function, int kind, intptr_t handle, uint64_t epoch)
{
	uint32_t object = 0;
	unsigned slot = kind == BIND_NONE ? 0 : registry_find(kind, handle, &object), number;
	struct cell *made;

	if (slot == 0)
		return own_cell(b, function);
	number = find(b, function, object);
	if (number != 0)
		return &b->cells[function_count + number - 1];
	made = make_cell(b, function, object, slot, epoch);
	if (made == NULL)
		return own_cell(b, function);
	made->order = registry_order(slot);
	return made;
}

/* ---- what calls.h calls ---- */

struct cell *call_find_cell(unsigned function, int kind, intptr_t handle, uint64_t epoch)
{
	struct block *b = calls_thread.block;
	struct cached_cell *cached;

	if (b == NULL && (b = block_take()) == NULL)
		return NULL;
	cached = &b->cache[call_hash(function, handle)];
	*cached = (struct cached_cell){
		.handle = handle,
		.key = epoch | function,
		.cell = find_cell(b, function, kind, handle, epoch),
	};
	return cached->cell;
}

bool block_counts(const struct call *c)
{
	struct block *b = calls_thread.block;
	uint64_t key;

	if (c->cell != NULL) {
		size_t number;

		/* On another thread than it began on: it is counted where it began. */
		if (!has_cell(b, c->cell))
			return true;
		number = (size_t)(c->cell - b->cells);
		key = atomic_load_explicit(&b->keys[number], memory_order_relaxed);
		if (number < function_count || registry_alive(key_slot(key), key_object(key)))
			return true;
	}
	atomic_fetch_add_explicit(&calls_uncounted, 1, memory_order_relaxed);
	return false;
}

/* Bucket 0 has sizes of 0 and 1. */
static unsigned size_bucket(uint64_t bytes)
{
	unsigned bucket = bytes > 1 ? 64 - (unsigned)__builtin_clzll(bytes - 1) : 0;

	return bucket < DISTRIBUTION_BUCKETS ? bucket : DISTRIBUTION_BUCKETS - 1;
}

/* Of an object that is gone it is written to a cell that nobody reads any more. */
void call_size(const struct call *c, uint64_t bytes)
{
	const struct block *b = calls_thread.block;
	struct sizes *sizes;

	/* A call that returns on another thread than it began on. */
	if (!has_cell(b, c->cell))
		for (b = atomic_load_explicit(&blocks, memory_order_acquire); b != NULL && !has_cell(b, c->cell);)
			b = b->next;
	if (b == NULL || (sizes = block_sizes(b, c->cell)) == NULL)
		return;
	cell_add(&sizes->bytes, bytes);
	cell_add(&sizes->buckets[size_bucket(bytes)], 1);
}

/*
 * The thread is marked as being in a call. If that call was left by longjmp or an exception, its frame is gone and
 * the mark stale. Stacks grow downwards: a frame above the mark's, or in its place, can't be inside it. Of one below,
 * two words of the running call's frame tell (on x86-64; elsewhere one), which are at their places as long as it is.
 * They are looked at only where they must be mapped: on the thread's own stack, above the frame that runs now. Left
 * to chance is that they lie untouched under a deeper frame, and then the calls from there are not counted.
 *
 * Of frames on other stacks (coroutines) only the addresses are compared.
 */
bool block_on_stack(const struct block *b, const void *at)
{
	return b != NULL && (uintptr_t)at >= b->stack_low && (uintptr_t)at < b->stack_high;
}

/* What is there may be anybody's by now: to sanitizers an access out of bounds, to valgrind one to what was never
 * written. */
__attribute__((noinline, no_sanitize("address", "thread", "undefined")))
static bool frame_is_there(const struct calls_thread *t)
{
	return t->running->there == call_there(t->running, t->mark);
}

static bool is_nested(const struct call *c, const void *frame)
{
	const struct calls_thread *t = &calls_thread;
	bool here = block_on_stack(t->block, c);

	if ((uintptr_t)frame >= (uintptr_t)t->mark || here != block_on_stack(t->block, t->running))
		return false;
	if (!here || !block_on_stack(t->block, t->mark))
		return true;
	return (uintptr_t)t->running >= (uintptr_t)(c + 1) && frame_is_there(t);
}

/* A call was left, most likely because it has failed: whether the others have counted it is not known. */
static void is_left(const struct calls_thread *t)
{
	const struct under_way *u = t->under_way;
	const struct cell *cell;
	const struct function *f;

	if (u == NULL || !is_running(atomic_load_explicit(&u->inside, memory_order_relaxed)))
		return;
	cell = atomic_load_explicit(&u->cell, memory_order_relaxed);
	if (!has_cell(t->block, cell))
		return;
	f = &functions[key_function(atomic_load_explicit(&t->block->keys[cell - t->block->cells], memory_order_relaxed))];
	if (f->ordered && cell->order != NULL)
		atomic_store_explicit(&cell->order->begun, 0, memory_order_relaxed);
	else if (!f->ordered && f->activity == IN_COLLECTIVE)
		order_lost();
}

bool call_nested(struct call *c, const void *frame)
{
	const struct calls_thread *t = &calls_thread;

	if (is_nested(c, frame))
		return true;
	/* On another stack it may be there yet. */
	if (block_on_stack(t->block, c) && block_on_stack(t->block, t->mark))
		is_left(t);
	return false;
}

/* Any ordered call may be an MPI_Intercomm_create. */
void call_doubts(const struct call *c, intptr_t handle, enum ordering ordering)
{
	if (block_on_stack(calls_thread.block, c) || ordering == NOTED)
		return;
	if (ordering == ORDERED)
		order_unknown(handle & (intptr_t)calls_state.handle_mask);
	order_lost();
}

bool call_begins_paused(struct call *c, intptr_t handle, enum ordering ordering, const void *frame)
{
	struct calls_thread *t = &calls_thread;

	if ((ordering == NOTED && !counts_peers()) || !order_begun())
		return false;
	if (t->mark != NULL && call_nested(c, frame)) {
		if (ordering != UNORDERED)
			call_doubts(c, handle, ordering);
		return false;
	}
	handle &= (intptr_t)calls_state.handle_mask;
	if (ordering == ORDERED)
		order_counts_found(handle);
	*c = (struct call){ .epoch = EPOCH_PAUSED, .handle = handle, .there = call_there(c, frame) };
	t->mark = frame;
	t->running = c;
	t->types = atomic_load_explicit(&calls_state.types, memory_order_acquire);
	return true;
}
