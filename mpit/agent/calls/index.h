/*
 * index.h - a fixed hash table of numbers 1 … 65534 with open addressing, written by one thread and read by others
 * without a lock. What a number stands for, and so its key, is the user's.
 *
 * Why a reader finds every entry that is there during its whole search, whatever is added and removed meanwhile: an
 * entry is put behind others, all places from where its search begins to where it is being taken. As long as it is
 * there none of them becomes empty: a removed entry leaves GONE, and GONE becomes empty only where the next place is
 * empty, which none of those is that has the entry behind it. So a search that begins after the entry was put (the
 * reader has learned of it from who put it, hence sees the places as they were then or later) meets no empty place
 * before it. An entry never moves.
 *
 * A reader may see the number of an entry that is being removed or has just been used for another key: it compares
 * the key, and takes what is not the one it looks for as any other.
 */
#ifndef MPIT_CALLS_INDEX_H
#define MPIT_CALLS_INDEX_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define INDEX_EMPTY 0
#define INDEX_GONE 0xffffu
#define INDEX_MOST 0xfffeu

/* A power of two of places, more than twice as many as entries. */
typedef _Atomic uint16_t index_place;

static inline size_t index_begin(uint64_t hash, size_t places)
{
	return (size_t)(hash * 0x9e3779b97f4a7c15u >> 32) & (places - 1);
}

/* What is at a place: what it stands for was written before. */
static inline unsigned index_at(index_place *index, size_t place)
{
	return atomic_load_explicit(&index[place], memory_order_acquire);
}

/* The key is not there: the writer has looked. */
static inline void index_put(index_place *index, size_t places, uint64_t hash, unsigned number)
{
	size_t place = index_begin(hash, places);

	for (;; place = (place + 1) & (places - 1)) {
		unsigned there = atomic_load_explicit(&index[place], memory_order_relaxed);

		if (there == INDEX_EMPTY || there == INDEX_GONE)
			break;
	}
	atomic_store_explicit(&index[place], (uint16_t)number, memory_order_release);
}

static inline void index_remove(index_place *index, size_t places, uint64_t hash, unsigned number)
{
	size_t place = index_begin(hash, places);

	for (unsigned there; (there = atomic_load_explicit(&index[place], memory_order_relaxed)) != number;
	     place = (place + 1) & (places - 1))
		if (there == INDEX_EMPTY)
			return;
	atomic_store_explicit(&index[place], INDEX_GONE, memory_order_release);
	/* Else a table in which much comes and goes would be full of them, and a search for what isn't there long. */
	while (atomic_load_explicit(&index[(place + 1) & (places - 1)], memory_order_relaxed) == INDEX_EMPTY &&
	       atomic_load_explicit(&index[place], memory_order_relaxed) == INDEX_GONE) {
		atomic_store_explicit(&index[place], INDEX_EMPTY, memory_order_release);
		place = (place - 1) & (places - 1);
	}
}

#endif
