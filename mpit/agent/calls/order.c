/* order.c - who counts what, and the identities that follow. */
#include "order.h"

#include "library.h"
#include "registry.h"
#include "world.h"

/* Where identities begin, so that no two kinds of them meet. */
enum { OF_WORLD = 1, OF_GROUP, OF_GROUPS, FROM_GROUP, FROM_GROUPS };

/*
 * Who has begun a collective before MPI_COMM_WORLD could be found: the address of that thread's calls_thread, 0: nobody,
 * 1: several. Tools do so in the MPI_Init of all ranks; but another thread's may have been counted in other ranks.
 */
static _Atomic uintptr_t missed_by;
static _Atomic bool world_entered;

/* How many communicators have been made of these processes with this tag: each member counts them alike. Never given
 * back. */
#define ORDINALS 1024u
#define ORDINAL_LOOKS 64u
static struct {
	_Atomic uint64_t key, count;
} ordinals[ORDINALS];
static _Atomic bool ordinals_lost; /* for good: one may have been counted by some and not by others */

/* Of MPI_Intercomm_create: calls that have begun, and those that have succeeded. */
static _Atomic uint64_t turns_begun, turns_over;

void order_open(void)
{
	atomic_store(&calls_state.begun, true);
}

/* ---- counting ---- */

/* Who has noted it looks once more: either that one sees what begin, or object_made, has done, or these see the note. */
static void note_missed(void)
{
	uintptr_t by = 0;

	if (!atomic_compare_exchange_strong(&missed_by, &by, (uintptr_t)&calls_thread) && by != (uintptr_t)&calls_thread)
		atomic_store(&missed_by, 1);
	atomic_thread_fence(memory_order_seq_cst);
}

bool order_begun(void)
{
	if (LIKELY(atomic_load(&calls_state.begun)))
		return true;
	note_missed();
	return atomic_load(&calls_state.begun);
}

static struct order *find(intptr_t handle)
{
	uint32_t number;
	unsigned slot = registry_find(BIND_COMM, handle, &number);

	return slot == 0 ? NULL : registry_order(slot);
}

void order_counts_found(intptr_t handle)
{
	struct order *order = find(handle);
	uint64_t begun;

	if (order == NULL && !atomic_load(&world_entered)) {
		note_missed();
		order = find(handle);
	}
	if (order == NULL)
		return;
	begun = atomic_load_explicit(&order->begun, memory_order_relaxed);
	atomic_store_explicit(&order->begun, begun + (begun != 0), memory_order_release);
}

void order_unknown(intptr_t handle)
{
	struct order *order = find(handle);

	if (order != NULL)
		atomic_store_explicit(&order->begun, 0, memory_order_relaxed);
}

void order_lost(void)
{
	atomic_store(&ordinals_lost, true);
}

void order_failed(const struct call *c, enum ordering ordering)
{
	if (ordering == ORDERED)
		order_unknown(c->handle);
	else
		order_lost();
}

uint64_t call_number(const struct call *c)
{
	const struct order *order = find(c->handle);
	uint64_t begun = order == NULL ? 0 : atomic_load_explicit(&order->begun, memory_order_relaxed);

	return begun == 0 ? 0 : begun - 1;
}

uint64_t order_number(unsigned slot, uint32_t object)
{
	uint64_t begun = atomic_load_explicit(&registry_order(slot)->begun, memory_order_acquire);

	return begun == 0 || !registry_alive(slot, object) ? 0 : begun - 1;
}

/* ---- identities ---- */

void order_object_made(int kind, intptr_t handle)
{
	struct order *order;
	uintptr_t by;

	if (kind != BIND_COMM || !world_is(handle) || (order = find(handle)) == NULL)
		return;
	atomic_thread_fence(memory_order_seq_cst);
	by = atomic_load(&missed_by);
	if (by != 0 && by != (uintptr_t)&calls_thread) {
		atomic_store_explicit(&order->begun, 0, memory_order_relaxed);
		order_lost();
	}
	atomic_store_explicit(&order->identity, order_mix(OF_WORLD, 0), memory_order_relaxed);
	atomic_store(&world_entered, true);
}

/* Of those that may be told of by this identity, the next one's; 0: not known. */
static uint64_t next_of(uint64_t key)
{
	for (unsigned i = 0; i < ORDINAL_LOOKS && !atomic_load(&ordinals_lost); i++) {
		unsigned at = (unsigned)(key + i) % ORDINALS;
		uint64_t there = 0;

		if (atomic_compare_exchange_strong(&ordinals[at].key, &there, key) || there == key)
			return order_mix(key, atomic_fetch_add(&ordinals[at].count, 1));
	}
	return 0;
}

/* Both groups of an intercommunicator, the same from both sides; 0: not known. */
static uint64_t of_groups(intptr_t comm)
{
	uint64_t local = world_members(comm, false), remote = world_members(comm, true);

	if (local == 0 || remote == 0)
		return 0;
	return local < remote ? order_mix(local, remote) : order_mix(remote, local);
}

/* What tells parts apart that have no process in common: the first one of each. */
static uint64_t of_first(intptr_t comm)
{
	int inter = 0, local, remote;

	if (library.comm_test_inter(comm, &inter) != 0 || (local = world_leader(comm, false)) == WORLD_NOBODY)
		return 0;
	if (!inter)
		return (uint64_t)local + 1;
	remote = world_leader(comm, true);
	if (remote == WORLD_NOBODY)
		return 0;
	return (uint64_t)(local < remote ? local : remote) << 32 | (uint64_t)((local < remote ? remote : local) + 1);
}

/* Of what the collective that was begun last has made; 0: not known. */
static uint64_t of_collective(const struct order *parent, uint64_t part)
{
	uint64_t begun, identity;

	if (parent == NULL)
		return 0;
	begun = atomic_load_explicit(&parent->begun, memory_order_relaxed);
	identity = atomic_load_explicit(&parent->identity, memory_order_relaxed);
	return begun == 0 || identity == 0 ? 0 : order_mix(order_mix(identity, begun), part);
}

static uint64_t of_string(const char *string)
{
	uint64_t hash = 0;

	for (; string != NULL && *string != '\0'; string++)
		hash = order_mix(hash, (unsigned char)*string);
	return hash;
}

/* Of what a part of the parent's members has made among itself. Of MPI_COMM_WORLD before it could be found here, others
 * may have counted it. */
static uint64_t of_group(const struct order *parent, int tag, intptr_t comm)
{
	uint64_t identity = parent == NULL ? 0 : atomic_load_explicit(&parent->identity, memory_order_relaxed);
	uint64_t members = identity == 0 ? 0 : world_members(comm, false);

	if (parent == NULL && !atomic_load(&world_entered))
		order_lost();
	return members == 0 ? 0 : next_of(order_mix(order_mix(order_mix(OF_GROUP, identity), (uint64_t)tag), members));
}

static uint64_t from(unsigned kind, uint64_t tag, uint64_t members)
{
	return members == 0 ? 0 : next_of(order_mix(order_mix(kind, tag), members));
}

/*
 * Two threads may make intercommunicators of the same groups with the same tag, on communicators that only the leaders
 * know, and nobody can say which was the first. One at a time has been the first everywhere: it doesn't end before all
 * have begun it.
 */
uint64_t order_turn(void)
{
	uint64_t turn = atomic_fetch_add(&turns_begun, 1) + 1;

	return atomic_load(&turns_over) == turn - 1 ? turn : 0;
}

static uint64_t in_turn(uint64_t turn, int tag, intptr_t comm)
{
	bool alone = turn != 0 && atomic_load(&turns_begun) == turn;
	uint64_t identity;

	if (!alone)
		order_lost();
	identity = from(OF_GROUPS, (uint64_t)tag, of_groups(comm));
	atomic_fetch_add(&turns_over, 1);
	return identity;
}

static uint64_t identity_of(const struct order *parent, enum makes makes, intptr_t argument, intptr_t made,
			    uint64_t turn)
{
	uint64_t part = 0;

	switch (makes) {
	case MAKES_ONE: return of_collective(parent, 0);
	case MAKES_COLOURS: return of_collective(parent, (uint64_t)(int)argument);
	case MAKES_PARTS:
		part = of_first(made);
		return part == 0 ? 0 : of_collective(parent, part);
	case MAKES_OF_GROUP: return of_group(parent, (int)argument, made);
	case MAKES_OF_GROUPS: return in_turn(turn, (int)argument, made);
	case MAKES_FROM_GROUP: return from(FROM_GROUP, of_string((const char *)argument), world_members(made, false));
	case MAKES_FROM_GROUPS: return from(FROM_GROUPS, of_string((const char *)argument), of_groups(made));
	}
	return 0;
}

/* The program doesn't have the communicator yet, so that it is still there. */
void order_made(const struct call *c, enum makes makes, intptr_t argument, intptr_t newcomm, uint64_t turn)
{
	intptr_t made = calls_abi->handle_size == sizeof(int) ? (intptr_t)*(const uint32_t *)newcomm
							      : *(const intptr_t *)newcomm;
	struct order *order;
	uint64_t identity;

	if (world_size == 0 || made == calls_comm_null)
		return;
	identity = identity_of(find(c->handle), makes, argument, made, turn);
	order = find(made);
	if (order != NULL)
		atomic_store_explicit(&order->identity, identity, memory_order_relaxed);
}

/* ---- the reader ---- */

void order_tell(bool all, source_comm_function *tell, void *context)
{
	for (unsigned slot = 1; slot <= registry_slots(); slot++) {
		const struct order *order = registry_order(slot);
		uint64_t *told, now;
		uint32_t comm = registry_comm(slot, &told);
		struct source_comm is = { .object = comm };

		if (comm == 0)
			continue;
		is.begun = atomic_load_explicit(&order->begun, memory_order_relaxed);
		is.identity = atomic_load_explicit(&order->identity, memory_order_relaxed);
		now = is.begun << 2 | (is.identity != 0) << 1 | 1;
		if (!all && *told == now)
			continue;
		*told = now;
		tell(context, &is);
	}
}
