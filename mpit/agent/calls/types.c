/*
 * types.c - sizes of datatypes.
 *
 * The library's answer costs more than all else in a call, so each thread keeps what it has been told, until any
 * datatype is freed. calls_state.types grows before the real MPI_Type_free: a handle names another type only after
 * that call has given it up, so that whoever gets it anew, in whatever thread, gets it after the change (the
 * library's own allocation orders the two) and finds nothing kept. Changed after the call it would leave a moment in
 * which another thread has the new type already and the old size still.
 *
 * A program may free a datatype while another of its threads is still in the call that uses it ("any communication
 * that is currently using this datatype will complete normally"), and then the library must not be asked: its answer
 * would be read from freed memory, or be of the handle's next type. So whoever frees a datatype says its size before,
 * and waits for who is just asking about it.
 *
 * Predefined datatypes are never freed. What the library makes and frees for itself no thread has asked for.
 */
#define _GNU_SOURCE
#include "block.h"
#include "library.h"
#include "wrappers.h"

#include <pthread.h>
#include <sched.h>

/*
 * Datatypes that have been freed while the program had several threads, each at its handle's place. Written under the
 * lock, read without: epoch is zero while the rest changes.
 */
static struct freed {
	_Atomic uint64_t epoch;  /* calls_state.types with this one */
	_Atomic uint64_t before; /* the same of what stood here before */
	_Atomic intptr_t handle;
	_Atomic uint64_t bytes;
} freed[CACHE_ENTRIES];
static pthread_mutex_t freeing = PTHREAD_MUTEX_INITIALIZER;
/* Of the thread's MPI_Type_free, inside which another tool may call PMPI_Type_free. */
static __thread const void *freeing_in __attribute__((tls_model("initial-exec")));

/* Asking takes a microsecond; in a child made by fork, where MPI must not be called, who asks might not be there. */
#define MOST_YIELDS 100000

static uint64_t ask(intptr_t datatype)
{
	long long bytes = 0;

	/* Arrays of datatypes may hold it where nothing is sent, and the library's answer might be to abort the program. */
	if (datatype == calls_datatype_null)
		return 0;
	return library.type_size_x(datatype, &bytes) == 0 && bytes > 0 ? (uint64_t)bytes : 0;
}

enum fate { LIVES, FREED, UNKNOWN };

/* What has become of a datatype since `begin`, when it lived. */
static enum fate fate_of(intptr_t handle, uint64_t begin, uint64_t *bytes)
{
	struct freed *f = &freed[call_hash(0, handle)];
	uint64_t epoch, before;
	intptr_t which;

	/* Whose freeing has changed calls_state.types may just be about to write the epoch. */
	for (int yields = 0; atomic_load(&f->epoch) == 0 && atomic_load(&f->handle) != 0 && yields < MOST_YIELDS; yields++)
		sched_yield();
	epoch = atomic_load(&f->epoch);
	before = atomic_load(&f->before);
	which = atomic_load(&f->handle);
	*bytes = atomic_load(&f->bytes);
	if (epoch == 0 && which == 0)
		return LIVES; /* nothing has ever stood here */
	if (epoch == 0 || atomic_load(&f->epoch) != epoch)
		return UNKNOWN;
	if (epoch <= begin)
		return LIVES;
	if (before > begin) /* two since then: it might have been the first */
		return UNKNOWN;
	return which == handle ? FREED : LIVES;
}

static __attribute__((noinline)) uint64_t type_find(struct block *b, intptr_t handle, struct type_size *known)
{
	uint64_t now, bytes;

	/* Who frees it changes the epoch first and looks for who asks then: one of the two sees the other. */
	atomic_store(&b->asking, handle);
	now = atomic_load(&calls_state.types);
	switch (now == calls_thread.types ? LIVES : fate_of(handle, calls_thread.types, &bytes)) {
	case LIVES:
		bytes = ask(handle);
		*known = (struct type_size){ .handle = handle, .epoch = now, .bytes = bytes };
		break;
	case FREED:
		break;
	case UNKNOWN:
		bytes = 0;
		atomic_fetch_add_explicit(&calls_uncounted, 1, memory_order_relaxed);
		break;
	}
	atomic_store_explicit(&b->asking, 0, memory_order_release);
	return bytes;
}

uint64_t type_bytes(intptr_t datatype)
{
	struct block *b = calls_thread.block;
	intptr_t handle = datatype & (intptr_t)calls_state.handle_mask;
	uint64_t epoch = atomic_load_explicit(&calls_state.types, memory_order_acquire);
	struct type_size *known;

	if (b == NULL)
		return 0; /* the call isn't counted */
	known = &b->types[call_hash(0, handle) % TYPES];
	if (LIKELY(known->handle == handle) && LIKELY(known->epoch == epoch))
		return known->bytes;
	return type_find(b, handle, known);
}

/* ---- MPI_Type_free ---- */

static bool others_call(void)
{
	for (struct block *b = atomic_load_explicit(&blocks, memory_order_acquire); b != NULL; b = b->next)
		if (b != calls_thread.block && atomic_load(&b->owned))
			return true;
	return false;
}

static void await_who_asks(intptr_t handle)
{
	int yields = 0;

	for (struct block *b = atomic_load_explicit(&blocks, memory_order_acquire); b != NULL; b = b->next)
		while (b != calls_thread.block && atomic_load(&b->asking) == handle && yields++ < MOST_YIELDS)
			sched_yield();
}

/* The epoch changes while the entry is being written: who begins with the new one has not named this datatype. */
static void tell_freed(intptr_t handle, uint64_t bytes)
{
	struct freed *f = &freed[call_hash(0, handle)];
	uint64_t before;
	int yields = 0;

	while (pthread_mutex_trylock(&freeing) != 0)
		if (yields++ < MOST_YIELDS) {
			sched_yield();
		} else {
			atomic_fetch_add(&calls_state.types, 1);
			return;
		}
	before = atomic_load(&f->epoch);
	atomic_store(&f->epoch, 0);
	atomic_store(&f->before, before);
	atomic_store(&f->handle, handle);
	atomic_store(&f->bytes, bytes);
	atomic_store(&f->epoch, atomic_fetch_add(&calls_state.types, 1) + 1);
	pthread_mutex_unlock(&freeing);
}

/* Before a datatype is freed. datatype: the program's argument. */
static void type_ends(const void *datatype)
{
	intptr_t handle;
	uint64_t bytes;

	/* Who has a block has seen what begin has set. A single thread is in no other call: nothing more is asked of the
	 * library for it. */
	if (datatype == NULL || !others_call()) {
		atomic_fetch_add(&calls_state.types, 1);
		return;
	}
	handle = calls_abi->handle_size == sizeof(int) ? (intptr_t)*(const uint32_t *)datatype : *(const intptr_t *)datatype;
	bytes = ask(handle);
	tell_freed(handle, bytes);
	await_who_asks(handle);
}

typedef int frees(void *);

static int type_free(frees *next, void *datatype, const void *frame)
{
	const void *outer = freeing_in;
	int rc;

	/* Stacks grow downwards. If the mark is stale, after a longjmp, this one isn't waited for. */
	if (outer != NULL && (uintptr_t)frame < (uintptr_t)outer) {
		atomic_fetch_add(&calls_state.types, 1);
		return next(datatype);
	}
	type_ends(datatype);
	freeing_in = frame;
	rc = next(datatype);
	freeing_in = NULL;
	return rc;
}

#define FREES_TYPE(function)                                                            \
	EXPORT int function(void *datatype);                                            \
	int function(void *datatype)                                                    \
	{                                                                               \
		NEXT(frees, function);                                                  \
		return type_free(next, datatype, FRAME);                                \
	}

FREES_TYPE(MPI_Type_free)
FREES_TYPE(PMPI_Type_free)
