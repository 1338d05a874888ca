/* persistent.c - the table of persistent requests. */
#define _GNU_SOURCE
#include "persistent.h"

#include "peers.h"
#include "requests.h"

#include <sys/mman.h>

#define PLACE_BITS 13
#define PLACES ((size_t)1 << PLACE_BITS)
#define LOOKED_AT 64 /* places that a handle may be in: a full table must not make each call long */

static struct entry {
	_Atomic uint64_t handle; /* 0: unused */
	uint64_t key, names;     /* of the call that has made it */
	uint64_t bytes;          /* that a start sends; NO_MESSAGE */
	unsigned peer;
} *entries;

_Static_assert(PLACES <= UINT16_MAX, "struct block has their numbers");

bool persistent_open(void)
{
	void *at = mmap(NULL, PLACES * sizeof *entries, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			-1, 0);

	entries = at == MAP_FAILED ? NULL : at;
	return entries != NULL;
}

/* NULL: it isn't there, or there is no room. */
static struct entry *find(uint64_t handle, bool add)
{
	size_t place = handle * 0x9e3779b97f4a7c15u >> (64 - PLACE_BITS);

	for (int i = 0; i < LOOKED_AT; i++, place = (place + 1) % PLACES) {
		struct entry *e = &entries[place];
		uint64_t there = atomic_load_explicit(&e->handle, memory_order_relaxed);

		/* Two threads may want one place: the only locked instruction, once for each request. */
		if (there == 0 && (!add || atomic_compare_exchange_strong_explicit(&e->handle, &there, handle,
										   memory_order_relaxed, memory_order_relaxed)))
			return add ? e : NULL;
		if (there == handle)
			return e;
	}
	return NULL;
}

void call_persists(const struct call *c, unsigned function, intptr_t request, uint64_t names, uint64_t bytes)
{
	struct entry *e = find(requests_handle((const void *)request, 0), true);
	uint32_t number = 0;
	unsigned slot;

	if (e == NULL)
		return;
	slot = registry_find(BIND_COMM, c->handle, &number);
	e->key = key_of(function, number, slot);
	e->names = names;
	/* A thread without a block can't ask for sizes of datatypes. */
	e->bytes = calls_thread.block == NULL ? NO_MESSAGE : bytes;
	/* Now: the communicator may be freed before the request. */
	e->peer = e->bytes == NO_MESSAGE ? 0 : peers_place(BIND_COMM, c->handle, (int)names);
}

static unsigned how_many(intptr_t requests, intptr_t count)
{
	return requests == 0 || (int)count < 0 ? 0 : (int)count < STARTS_MOST ? (unsigned)count : STARTS_MOST;
}

void call_starts(intptr_t requests, intptr_t count)
{
	struct block *b = calls_thread.block;

	for (unsigned i = 0, n = b == NULL ? 0 : how_many(requests, count); i < n; i++) {
		const struct entry *e = find(requests_handle((const void *)requests, i), false);

		b->starts[i] = (uint16_t)(e == NULL ? 0 : e - entries + 1);
	}
}

void call_started(const struct call *c, intptr_t requests, intptr_t count)
{
	struct block *b = calls_thread.block;

	for (unsigned i = 0, n = b == NULL ? 0 : how_many(requests, count); i < n; i++) {
		uint64_t handle = requests_handle((const void *)requests, i);
		struct entry *e = entries + b->starts[i], *moved;

		if (b->starts[i] == 0)
			continue;
		e--;
		/* Open MPI gives a send that it hasn't quite finished another handle. */
		if (handle != atomic_load_explicit(&e->handle, memory_order_relaxed) && (moved = find(handle, true)) != NULL) {
			moved->key = e->key;
			moved->names = e->names;
			moved->bytes = e->bytes;
			moved->peer = e->peer;
		}
		if (c->epoch == EPOCH_PAUSED)
			continue;
		requests_note(handle, e->key, e->names);
		if (e->bytes != NO_MESSAGE)
			peers_count(e->peer, e->bytes);
	}
}
