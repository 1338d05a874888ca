/* registry.c - slots of objects, and the table that finds them by their handles. */
#define _GNU_SOURCE
#include "registry.h"

#include "index.h"

#include <string.h>
#include <sys/mman.h>

#define PLACES ((size_t)1 << 17)

/* A struct place in words that are read and written whole. */
#define PLACE_WORDS (sizeof(struct place) / sizeof(uint64_t))
_Static_assert(sizeof(struct place) % sizeof(uint64_t) == 0, "whole words");

/*
 * Written under the gate. number is zero while the rest changes, so that who reads the number, the rest and the
 * number again has what belongs together if both are the same: a number doesn't come back.
 */
struct slot {
	_Atomic uint32_t number; /* 0: free */
	_Atomic int kind;
	_Atomic intptr_t handle;
	_Atomic uint64_t place[PLACE_WORDS];
	struct order order;
	/* the gate's */
	uint64_t order_told;
	unsigned next_free;
	uint64_t told[MOST_FUNCTIONS / 64];
};

_Static_assert(sizeof(struct order) + sizeof((struct slot *)NULL)->order_told == 24, "docs/calls-reference.md");

/* Made in begin, never moved. Used from the lowest one on, so that memory is touched as it is needed. */
static struct slot *slots;
static index_place *table;
/* The gate's. */
static unsigned used, first_free;

static void *memory(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

bool registry_open(void)
{
	if (slots == NULL)
		slots = memory((REGISTRY_SLOTS + 1) * sizeof *slots);
	if (table == NULL)
		table = memory(PLACES * sizeof *table);
	return slots != NULL && table != NULL;
}

static uint64_t hash_of(int kind, intptr_t handle)
{
	return (uint64_t)handle ^ (uint64_t)(unsigned)kind << 59;
}

unsigned registry_find(int kind, intptr_t handle, uint32_t *number)
{
	size_t place = index_begin(hash_of(kind, handle), PLACES);

	/* Bounded by the table, though it always has empty places. */
	for (size_t i = 0; i < PLACES; i++, place = (place + 1) & (PLACES - 1)) {
		unsigned slot = index_at(table, place);

		if (slot == INDEX_EMPTY)
			return 0;
		if (slot == INDEX_GONE)
			continue;
		*number = atomic_load_explicit(&slots[slot].number, memory_order_acquire);
		if (*number != 0 && atomic_load_explicit(&slots[slot].handle, memory_order_acquire) == handle &&
		    atomic_load_explicit(&slots[slot].kind, memory_order_acquire) == kind && registry_alive(slot, *number))
			return slot;
	}
	return 0;
}

bool registry_alive(unsigned slot, uint32_t number)
{
	return atomic_load_explicit(&slots[slot].number, memory_order_acquire) == number;
}

bool registry_place(unsigned slot, uint32_t number, struct place *out)
{
	uint64_t words[PLACE_WORDS];

	if (!registry_alive(slot, number))
		return false;
	for (size_t i = 0; i < PLACE_WORDS; i++)
		words[i] = atomic_load_explicit(&slots[slot].place[i], memory_order_acquire);
	memcpy(out, words, sizeof *out);
	return registry_alive(slot, number);
}

struct order *registry_order(unsigned slot)
{
	return &slots[slot].order;
}

unsigned registry_slots(void)
{
	return used;
}

uint32_t registry_comm(unsigned slot, uint64_t **told)
{
	*told = &slots[slot].order_told;
	if (atomic_load_explicit(&slots[slot].kind, memory_order_relaxed) != BIND_COMM)
		return 0;
	return atomic_load_explicit(&slots[slot].number, memory_order_relaxed);
}

bool registry_told(unsigned slot, unsigned function)
{
	uint64_t *word = &slots[slot].told[function / 64], bit = (uint64_t)1 << function % 64;
	bool told = (*word & bit) != 0;

	*word |= bit;
	return told;
}

/* Every cached cell of every thread is looked up anew: of this handle, which named something else, and of all others,
 * which is cheap. */
static void next_epoch(void)
{
	uint64_t epoch = atomic_load_explicit(&calls_state.epoch, memory_order_relaxed) + EPOCH_STEP;

	/* Before the other: a call that begins with the new epoch doesn't end with an older one. */
	if (!calls_state.sites)
		atomic_store_explicit(&calls_state.epoch_at_end, epoch, memory_order_relaxed);
	atomic_store_explicit(&calls_state.epoch, epoch, memory_order_release);
}

/*
 * The epoch changes last: who sees the new one sees the new table. And a thread that names the object has its handle
 * from the one that has made it, after this, and so sees both.
 */
bool registry_add(int kind, intptr_t handle, uint32_t number, const struct place *place)
{
	uint64_t words[PLACE_WORDS];
	uint32_t before;
	unsigned slot;

	/* Freed unseen. */
	if (registry_find(kind, handle, &before) != 0)
		registry_remove(kind, handle, before);
	if (first_free != 0) {
		slot = first_free;
		first_free = slots[slot].next_free;
	} else if (used < REGISTRY_SLOTS) {
		slot = ++used;
	} else {
		world_drop(&place->world);
		next_epoch();
		return false;
	}
	/* Release: not seen before the zero that registry_remove has left in number. */
	atomic_store_explicit(&slots[slot].kind, kind, memory_order_release);
	atomic_store_explicit(&slots[slot].handle, handle, memory_order_release);
	memcpy(words, place, sizeof words);
	for (size_t i = 0; i < PLACE_WORDS; i++)
		atomic_store_explicit(&slots[slot].place[i], words[i], memory_order_release);
	/* No collective has been begun on a communicator that the program doesn't have yet. */
	atomic_store_explicit(&slots[slot].order.begun, 1, memory_order_relaxed);
	atomic_store_explicit(&slots[slot].order.identity, 0, memory_order_relaxed);
	slots[slot].order_told = 0;
	memset(slots[slot].told, 0, sizeof slots[slot].told);
	atomic_store_explicit(&slots[slot].number, number, memory_order_release);
	index_put(table, PLACES, hash_of(kind, handle), slot);
	next_epoch();
	return true;
}

/* The number goes first: a thread that sees its cells' object gone may use them again, and the last read of them was
 * before. */
bool registry_remove(int kind, intptr_t handle, uint32_t number)
{
	uint32_t known = 0;
	unsigned slot = registry_find(kind, handle, &known);
	struct place place;

	if (slot == 0 || known != number)
		return false;
	registry_place(slot, number, &place);
	atomic_store_explicit(&slots[slot].number, 0, memory_order_release);
	index_remove(table, PLACES, hash_of(kind, handle), slot);
	slots[slot].next_free = first_free;
	first_free = slot;
	world_drop(&place.world);
	next_epoch();
	return true;
}
