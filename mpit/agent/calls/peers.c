/* peers.c - counts by peer, and which peers are shown. */
#define _GNU_SOURCE
#include "peers.h"

#include "asked.h"
#include "requests.h"
#include "world.h"

#include <sys/mman.h>

/* A bit for each peer that any thread has sent to. Peers are ranks of the world, and behind them one that stands for
 * everybody else. */
static _Atomic uint64_t *sent_to;

/*
 * The gate's. What has been counted of a peer is told in its own place, but for what the place of all others had told
 * of it before: there it stays. So no place ever falls, and nothing is told twice.
 */
static struct peer {
	uint64_t messages, bytes; /* told in the place of all others */
	uint64_t now;             /* bytes, when they were looked at last */
	bool known, shown;
} *peers;
static unsigned *known; /* peers, in the order in which they have come */
static size_t known_count;
static int places[PEERS_MOST + 1];
static unsigned place_count;
static unsigned shown; /* peers that have a place of their own */

static void *memory(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

static unsigned everybody_else(void)
{
	return (unsigned)world_size;
}

static size_t words(void)
{
	return (size_t)world_size / 64 + 1;
}

void peers_open(void)
{
	if (calls_state.peers || !calls_asked("peers") || world_size == 0 || !world_open_tables())
		return;
	block_peers = (size_t)world_size + 1;
	sent_to = memory(words() * sizeof *sent_to);
	peers = memory(block_peers * sizeof *peers);
	known = memory(block_peers * sizeof *known);
	calls_state.peers = sent_to != NULL && peers != NULL && known != NULL && requests_open();
}

/* ---- a message ---- */

/*
 * The object's ranks and the table that they may be in are those of the object if it is still alive when they have
 * been read (registry.h).
 */
unsigned peers_place(int kind, intptr_t handle, int rank)
{
	struct place place;
	uint32_t number = 0;
	unsigned slot = registry_find(kind, handle, &number);
	int peer;

	if (slot == 0 || !registry_place(slot, number, &place))
		return everybody_else();
	peer = world_rank(&place.world, rank);
	return peer == WORLD_NOBODY || !registry_alive(slot, number) ? everybody_else() : (unsigned)peer;
}

void peers_count(unsigned peer, uint64_t bytes)
{
	struct peer_count *count = &calls_thread.block->peers[peer];

	/* At the thread's first message to this peer only. */
	if (UNLIKELY(atomic_load_explicit(&count->messages, memory_order_relaxed) == 0))
		atomic_fetch_or_explicit(&sent_to[peer / 64], (uint64_t)1 << peer % 64, memory_order_relaxed);
	cell_add(&count->messages, 1);
	cell_add(&count->bytes, bytes);
}

void call_sends(const struct call *c, int kind, int rank, uint64_t bytes)
{
	if (calls_thread.block != NULL) /* the call is counted */
		peers_count(peers_place(kind, c->handle, rank), bytes);
}

/* ---- the reader ---- */

static uint64_t messages_to(unsigned peer)
{
	uint64_t all = 0;

	for (struct block *b = atomic_load_explicit(&blocks, memory_order_acquire); b != NULL; b = b->next)
		all += atomic_load_explicit(&b->peers[peer].messages, memory_order_relaxed);
	return all;
}

static uint64_t bytes_to(unsigned peer)
{
	uint64_t all = 0;

	for (struct block *b = atomic_load_explicit(&blocks, memory_order_acquire); b != NULL; b = b->next)
		all += atomic_load_explicit(&b->peers[peer].bytes, memory_order_relaxed);
	return all;
}

static void learn(void)
{
	for (size_t i = 0; i < words(); i++) {
		uint64_t bits = atomic_load_explicit(&sent_to[i], memory_order_relaxed);

		for (; bits != 0; bits &= bits - 1) {
			unsigned peer = (unsigned)(64 * i) + (unsigned)__builtin_ctzll(bits);

			if (peers[peer].known)
				continue;
			peers[peer].known = true;
			known[known_count++] = peer;
		}
	}
}

/* The peer without a place that has the most bytes; NULL: there is none. */
static struct peer *most(void)
{
	struct peer *found = NULL;

	for (size_t i = 0; i < known_count; i++) {
		struct peer *p = &peers[known[i]];

		if (!p->shown && known[i] != everybody_else() && (found == NULL || p->now > found->now))
			found = p;
	}
	return found;
}

static uint64_t least_shown(void)
{
	uint64_t least = UINT64_MAX;

	for (size_t i = 0; i < known_count; i++)
		if (peers[known[i]].shown && peers[known[i]].now < least)
			least = peers[known[i]].now;
	return least;
}

static void show_peers(void)
{
	for (size_t i = 0; i < known_count; i++)
		peers[known[i]].now = bytes_to(known[i]);
	while (shown < PEERS_MOST) {
		struct peer *p = most();

		if (p == NULL || (shown >= PEERS_AT_FIRST && p->now / 2 <= least_shown()))
			return;
		p->shown = true;
		shown++;
		places[place_count++] = (int)(p - peers);
	}
}

unsigned peers_look(void)
{
	if (!calls_state.peers)
		return 0;
	learn();
	if (shown < PEERS_MOST)
		show_peers();
	if (shown < known_count && place_count == shown)
		places[place_count++] = WORLD_NOBODY;
	return place_count;
}

int peers_rank(unsigned place)
{
	return places[place];
}

uint64_t peers_messages(unsigned place)
{
	uint64_t all = 0;

	if (places[place] != WORLD_NOBODY)
		return messages_to((unsigned)places[place]) - peers[places[place]].messages;
	for (size_t i = 0; i < known_count; i++) {
		struct peer *p = &peers[known[i]];

		if (!p->shown)
			p->messages = messages_to(known[i]);
		all += p->messages;
	}
	return all;
}

uint64_t peers_bytes(unsigned place)
{
	uint64_t all = 0;

	if (places[place] != WORLD_NOBODY)
		return bytes_to((unsigned)places[place]) - peers[places[place]].bytes;
	for (size_t i = 0; i < known_count; i++) {
		struct peer *p = &peers[known[i]];

		if (!p->shown)
			p->bytes = bytes_to(known[i]);
		all += p->bytes;
	}
	return all;
}

int peers_of(uint64_t key, int rank)
{
	struct place place;

	if (rank == calls_abi->any_source)
		return ANY_PEER;
	if (key_object(key) == 0 || !registry_place(key_slot(key), key_object(key), &place))
		return NO_PEER;
	return world_rank(&place.world, rank);
}
