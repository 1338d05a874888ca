/* order_test.c - numbers of collectives, and that communicators are the same in all their members. */
#define _GNU_SOURCE
#include "test.h"

#include "order.h"

#include <setjmp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static struct source_comm found;
static uint32_t wanted;
static unsigned tells_made;

static void finds(void *context, const struct source_comm *comm)
{
	(void)context;
	tells_made++;
	if (comm->object == wanted)
		found = *comm;
}

/* What is known of a communicator. */
static struct source_comm known(uint32_t object)
{
	found = (struct source_comm){ 0 };
	wanted = object;
	source->comms(true, finds, NULL);
	CHECK(found.object == object);
	return found;
}

/* Of the process as it is now, which stays as it is. */
static void in_a_child(void (*run)(void))
{
	int status = -1;
	pid_t child = fork();

	CHECK(child >= 0);
	if (child == 0) {
		run();
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/* ---- numbers ---- */

static void calls_inside(void)
{
	fake_inside = NULL;
	CHECK(MPI_Allreduce(0, 1, 1, 0x600) == 0);
}

void test_collectives_are_counted_where_they_begin(void)
{
	uint32_t comm = make(BIND_COMM, 0x600), other = make(BIND_COMM, 0x601);

	CHECK(known(comm).begun == 1 && known(comm).identity == 0);
	CHECK(MPI_Barrier(0, 0, 0, 0x600) == 0 && PMPI_Bcast(0, 1, 1, 0x600) == 0 && MPI_Barrier(0, 0, 0, 0x601) == 0);
	CHECK(MPI_Send(0, 1, 1, 0x600) == 0 && MPI_Put(0, 1, 1, 0x600) == 0 && MPI_Barrier(0, 0, 0, 0x699) == 0);
	CHECK(known(comm).begun == 3 && known(other).begun == 2);
	/* What a collective does inside is no other one, whether it is measured or not. */
	fake_inside = calls_inside;
	CHECK(MPI_Barrier(0, 0, 0, 0x600) == 0 && known(comm).begun == 4);
	source->measure(false);
	CHECK(MPI_Allgather(0, 1, 1, 0x600) == 0 && known(comm).begun == 5);
	fake_inside = calls_inside;
	CHECK(MPI_Barrier(0, 0, 0, 0x600) == 0 && known(comm).begun == 6);
	source->measure(true);
	CHECK(calls("MPI_Barrier", comm) == 2 && calls("MPI_Allgather", 0) == 0);
	/* Handles are used again, and slots. */
	atomic_store(&registry_order(registry_find(BIND_COMM, 0x600, &(uint32_t){ 0 }))->identity, 9);
	CHECK(known(comm).identity == 9);
	freed(BIND_COMM, 0x600, comm);
	comm = make(BIND_COMM, 0x600);
	CHECK(known(comm).begun == 1 && known(comm).identity == 0 && MPI_Barrier(0, 0, 0, 0x600) == 0 && known(comm).begun == 2);
	freed(BIND_COMM, 0x600, comm);
	freed(BIND_COMM, 0x601, other);
}

static void *without_memory(void *number)
{
	atomic_store(&no_memory, true);
	CHECK(MPI_Barrier(0, 0, 0, 0x600) == 0 && known(*(uint32_t *)number).begun == 2);
	atomic_store(&no_memory, false);
	return NULL;
}

static void fills_the_block(void)
{
	for (unsigned i = 0; i < 2 * CELLS; i++) {
		uint32_t comm = make(BIND_COMM, 0x10000 + (intptr_t)i);

		CHECK(MPI_Barrier(0, 0, 0, 0x10000 + (intptr_t)i) == 0 && MPI_Bcast(0, 1, 1, 0x10000 + (intptr_t)i) == 0);
		CHECK(known(comm).begun == 3);
	}
}

/* Not for want of a cell, or a block: only where one may be missing. */
void test_numbers_that_are_not_known(void)
{
	uint32_t comm = make(BIND_COMM, 0x600);
	struct call c;

	in_a_thread(without_memory, &comm);
	in_a_child(fills_the_block);
	CHECK(call_begins(&c, FUNCTION_MPI_Barrier, BIND_COMM, 0x600, ORDERED, 0, __builtin_dwarf_cfa()));
	call_returns(&c, IN_COLLECTIVE);
	order_failed(&c, ORDERED);
	CHECK(known(comm).begun == 0 && MPI_Barrier(0, 0, 0, 0x600) == 0 && known(comm).begun == 0);
	freed(BIND_COMM, 0x600, comm);
}

static jmp_buf out;

static void leaves(void)
{
	fake_inside = NULL;
	longjmp(out, 1);
}

/* As an error handler does that throws: others may have counted the call or not. */
void test_a_collective_that_is_left_is_in_doubt(void)
{
	uint32_t comm = make(BIND_COMM, 0x600), other = make(BIND_COMM, 0x601);

	if (setjmp(out) == 0) {
		fake_inside = leaves;
		MPI_Send(0, 1, 1, 0x600);
	}
	CHECK(MPI_Barrier(0, 0, 0, 0x600) == 0 && known(comm).begun == 2);
	if (setjmp(out) == 0) {
		fake_inside = leaves;
		MPI_Barrier(0, 0, 0, 0x600);
	}
	CHECK(MPI_Barrier(0, 0, 0, 0x601) == 0 && known(comm).begun == 0 && known(other).begun == 2);
	freed(BIND_COMM, 0x600, comm);
	freed(BIND_COMM, 0x601, other);
}

static void makes_after_finalize(void)
{
	uint32_t handle = 0x600, comm = make(BIND_COMM, 0x600);
	struct call c = { .handle = 0x600 };

	fake_rank_count = 1;
	fake_ranks[0] = 3;
	order_made(&c, MAKES_FROM_GROUP, (intptr_t)"before", (intptr_t)&handle, 0);
	CHECK(known(comm).identity != 0);
	fake_finalized = 1;
	order_made(&c, MAKES_FROM_GROUP, (intptr_t)"after", (intptr_t)&handle, 0);
	CHECK(known(comm).identity == 0 && fake_groups == 0);
}

/* By sessions. MPI_COMM_WORLD must not be named any more. */
void test_what_is_made_after_finalize_has_no_identity(void)
{
	in_a_child(makes_after_finalize);
}

/* Threads may make communicators of the same processes in two orders at once. */
void test_members_in_another_order_are_others(void)
{
	static const int orders[][3] = { { 3, 1, 7 }, { 7, 1, 3 }, { 1, 3, 7 }, { 3, 1, FAKE_NOBODY } };
	uint64_t hashes[4];

	fake_rank_count = 3;
	for (int i = 0; i < 4; i++) {
		memcpy(fake_ranks, orders[i], sizeof orders[i]);
		hashes[i] = world_members(0x600, false);
		CHECK((hashes[i] == 0) == (i == 3)); /* one is in no world of ours */
		for (int k = 0; k < i; k++)
			CHECK(hashes[k] != hashes[i]);
	}
	CHECK(fake_groups == 0);
}

static void *calls_early(void *unused)
{
	CHECK(MPI_Barrier(0, 0, 0, 0x699) == 0);
	return unused;
}

static void the_same_thread_was_early(void)
{
	uint32_t world;

	calls_early(NULL);
	world = make(BIND_COMM, FAKE_WORLD);
	CHECK(known(world).begun == 1 && known(world).identity != 0);
	in_a_thread(calls_early, NULL); /* too late to matter */
	CHECK(known(world).begun == 1);
}

static void another_thread_was_early(void)
{
	uint32_t world;

	in_a_thread(calls_early, NULL);
	world = make(BIND_COMM, FAKE_WORLD);
	CHECK(known(world).begun == 0 && known(world).identity != 0);
}

/* Others may have counted the first one of these. */
static void a_group_was_early(void)
{
	uint32_t handle = 0x600, comm = make(BIND_COMM, 0x600);
	struct call c = { .handle = FAKE_WORLD };

	fake_rank_count = 2;
	fake_ranks[1] = 3;
	order_made(&c, MAKES_OF_GROUP, 5, (intptr_t)&handle, 0);
	make(BIND_COMM, FAKE_WORLD);
	order_made(&c, MAKES_OF_GROUP, 5, (intptr_t)&handle, 0);
	CHECK(known(comm).identity == 0);
}

void test_a_collective_before_the_world_is_known(void)
{
	in_a_child(a_group_was_early);
	in_a_child(the_same_thread_was_early);
	in_a_child(another_thread_was_early);
}

static uint64_t made_between(uint64_t turn)
{
	uint32_t handle = 0x600, comm = make(BIND_COMM, 0x600);
	struct call c = { .handle = 0x601 };

	fake_rank_count = fake_remote_count = 1;
	fake_remote[0] = 3;
	order_made(&c, MAKES_OF_GROUPS, 5, (intptr_t)&handle, turn);
	return known(comm).identity;
}

static void makes_several_at_once(void)
{
	uint64_t first, second;

	CHECK(made_between(order_turn()) != 0);
	first = order_turn();
	second = order_turn();
	CHECK(made_between(second) == 0 && made_between(first) == 0 && made_between(order_turn()) == 0);
}

/* Which is whose the leaders alone know. */
void test_intercommunicators_that_threads_make_at_once(void)
{
	in_a_child(makes_several_at_once);
}

void test_communicators_are_told_of_when_they_change(void)
{
	uint32_t comm = make(BIND_COMM, 0x600), other = make(BIND_COMM, 0x601), win = make(BIND_WIN, 0x602);

	source->comms(true, finds, NULL);
	tells_made = 0;
	source->comms(false, finds, NULL);
	CHECK(tells_made == 0 && MPI_Barrier(0, 0, 0, 0x601) == 0);
	wanted = other;
	source->comms(false, finds, NULL);
	CHECK(tells_made == 1 && found.object == other && found.begun == 2);
	atomic_store(&registry_order(registry_find(BIND_COMM, 0x600, &(uint32_t){ 0 }))->identity, 9);
	wanted = comm;
	source->comms(false, finds, NULL);
	CHECK(tells_made == 2 && found.object == comm && found.identity == 9);
	source->comms(true, finds, NULL);
	CHECK(tells_made == 4);
	freed(BIND_COMM, 0x601, other);
	comm = make(BIND_COMM, 0x601); /* the same slot's */
	source->comms(false, finds, NULL);
	CHECK(tells_made == 5);
	freed(BIND_COMM, 0x600, comm - 3);
	freed(BIND_COMM, 0x601, comm);
	freed(BIND_WIN, 0x602, win);
}

/*
 * ---- identities ----
 *
 * A program with many members is thought up: communicators that are made of others in every way. Each member plays its
 * part in a process of its own, where only it knows what it has begun; the independent ones in an order of its own.
 * What it says of each communicator is compared.
 */

enum { MEMBERS = FAKE_WORLD_SIZE, MOST_COMMS = 400, MOST_OPERATIONS = 160, PLAYS = 3 };

struct comm {
	int count, members[MEMBERS];              /* in their order; of an intercommunicator the first group */
	int remote_count, remote[MEMBERS];        /* 0: an intracommunicator */
	int begun;                                /* collectives, by each member at the end */
	unsigned char side[MEMBERS];              /* of each process: 0 none, 1 the first group, 2 the remote one */
};

static struct comm comms[MOST_COMMS];
static int comm_count;

/* Makes the communicators from `first` to before `end` of others; or is a collective on `parent`. */
static struct operation {
	enum makes makes;
	int parent, second; /* of intercommunicators the other group's local communicator */
	int first, end;
	int tag;
} operations[MOST_OPERATIONS];
static int operation_count;

static struct said {
	uint64_t identity, begun;
	bool is;
} (*said)[MOST_COMMS]; /* by member, shared */

static uint64_t chance;
static int every; /* how many members there are for one that is played: a process takes milliseconds */

static int random_below(int n)
{
	chance = order_mix(chance, 1);
	return (int)(chance >> 16) % n < 0 ? -((int)(chance >> 16) % n) : (int)(chance >> 16) % n;
}

static bool is_in(const struct comm *c, int member)
{
	return c->side[member] != 0;
}

static void sides(struct comm *c)
{
	memset(c->side, 0, sizeof c->side);
	for (int i = 0; i < c->count; i++)
		c->side[c->members[i]] = 1;
	for (int i = 0; i < c->remote_count; i++)
		c->side[c->remote[i]] = 2;
}

static struct operation *operation(enum makes makes, int parent)
{
	struct operation *o = &operations[operation_count++];

	*o = (struct operation){ .makes = makes, .parent = parent, .second = parent, .first = comm_count, .end = comm_count };
	return o;
}

static struct comm *another(struct operation *o)
{
	struct comm *c = &comms[comm_count++];

	o->end = comm_count;
	*c = (struct comm){ 0 };
	return c;
}

static void shuffle(int *list, int count)
{
	for (int i = count - 1; i > 0; i--) {
		int k = random_below(i + 1), kept = list[i];

		list[i] = list[k];
		list[k] = kept;
	}
}

static void thinks_of_parts(struct operation *o, const struct comm *parent, int parts)
{
	struct comm *all[4];

	for (int i = 0; i < parts; i++)
		all[i] = another(o);
	for (int i = 0; i < parent->count; i++) {
		struct comm *c = all[random_below(parts)];

		c->members[c->count++] = parent->members[i];
	}
	for (int i = 0; i < parent->remote_count; i++) {
		struct comm *c = all[random_below(parts)];

		c->remote[c->remote_count++] = parent->remote[i];
	}
	for (int i = 0; i < parts; i++) {
		shuffle(all[i]->members, all[i]->count);
		if (all[i]->count == 0 || (parent->remote_count > 0 && all[i]->remote_count == 0))
			all[i]->count = all[i]->remote_count = 0; /* MPI_COMM_NULL in all of them */
	}
}

/* The members of another one that was made of that parent by MPI_Comm_create_group; false: there is none. */
static bool made_of_group(struct comm *c, int parent)
{
	for (int i = 0; i < operation_count - 1; i++)
		if (operations[i].makes == MAKES_OF_GROUP && operations[i].parent == parent) {
			*c = comms[operations[i].first];
			return true;
		}
	return false;
}

static void think_up(void)
{
	comm_count = operation_count = 0;
	for (int i = 0; i < MEMBERS; i++)
		comms[0].members[i] = i;
	comms[comm_count++].count = MEMBERS;
	sides(&comms[0]);
	while (operation_count < MOST_OPERATIONS && comm_count < MOST_COMMS - 4) {
		int at = random_below(4) == 0 ? 0 : random_below(comm_count), what = random_below(9), other;
		const struct comm *parent = &comms[at];
		struct operation *o;
		struct comm *c;

		if (parent->count == 0)
			continue;
		switch (what) {
		case 0: /* a duplicate, or one that is no parent's child: nothing is made */
		case 1:
			o = operation(MAKES_ONE, at);
			if (what == 0)
				*another(o) = *parent;
			break;
		case 2:
		case 3: thinks_of_parts(operation(MAKES_COLOURS, at), parent, 1 + random_below(4)); break;
		case 4: thinks_of_parts(operation(MAKES_PARTS, at), parent, 1 + random_below(4)); break;
		case 5:
		case 6: /* often of the same members with the same tag */
			if (parent->remote_count > 0)
				continue;
			o = operation(MAKES_OF_GROUP, at);
			o->tag = random_below(2);
			c = another(o);
			if (random_below(2) == 0 && made_of_group(c, at))
				break;
			for (int i = random_below(2); i < parent->count; i += 1 + (parent->count > 4) * random_below(2))
				c->members[c->count++] = parent->members[i];
			break;
		case 7:
			other = random_below(comm_count);
			if (parent->remote_count > 0 || comms[other].remote_count > 0 || comms[other].count == 0)
				continue;
			for (int i = 0; i < parent->count && other != 0; i++)
				other = is_in(&comms[other], parent->members[i]) ? 0 : other;
			if (other == 0)
				continue;
			o = operation(MAKES_OF_GROUPS, at);
			o->second = other;
			o->tag = random_below(2);
			c = another(o);
			*c = *parent;
			memcpy(c->remote, comms[other].members, sizeof c->remote);
			c->remote_count = comms[other].count;
			break;
		case 8:
			if (parent->remote_count == 0)
				continue;
			c = another(operation(MAKES_ONE, at));
			*c = *parent;
			memcpy(c->members + c->count, c->remote, (size_t)c->remote_count * sizeof *c->remote);
			c->count += c->remote_count;
			c->remote_count = 0;
			break;
		}
		for (int i = operations[operation_count - 1].first; i < comm_count; i++)
			sides(&comms[i]);
	}
	for (int i = 0; i < comm_count; i++)
		comms[i].begun = 0;
	for (int i = 0; i < operation_count; i++) {
		if (operations[i].makes != MAKES_OF_GROUP)
			comms[operations[i].parent].begun++;
		if (operations[i].second != operations[i].parent)
			comms[operations[i].second].begun++;
	}
}

static intptr_t handle_of(int comm)
{
	return comm == 0 ? FAKE_WORLD : 0x40000 + comm;
}

/* What the library says of the groups of a communicator to one of its members. */
static void groups_are(const struct comm *c, int member)
{
	bool first = c->side[member] == 1;

	fake_rank_count = first ? c->count : c->remote_count;
	memcpy(fake_ranks, first ? c->members : c->remote, sizeof fake_ranks);
	fake_remote_count = c->remote_count == 0 ? 0 : first ? c->remote_count : c->count;
	memcpy(fake_remote, first ? c->remote : c->members, sizeof fake_remote);
	fake_place.inter = c->remote_count > 0;
}

static uint32_t numbers[MOST_COMMS];

/* What goes wrong in one member. */
enum gap { NO_GAP, FAILS, UNSEEN /* what is made isn't entered in the registry */ };

static __attribute__((noinline)) void plays(const struct operation *o, int member, enum gap gap)
{
	int made = -1, parent = o->parent;
	uint32_t handle = FAKE_NULL;
	uint64_t turn = 0;
	struct call c;
	bool seen;

	for (int i = o->first; i < o->end; i++)
		made = comms[i].count > 0 && is_in(&comms[i], member) ? i : made;
	if (o->makes == MAKES_OF_GROUP && made < 0)
		return;
	if (!is_in(&comms[parent], member))
		parent = o->second;
	if (!is_in(&comms[parent], member))
		return;
	seen = call_begins(&c, FUNCTION_MPI_Barrier, BIND_COMM, handle_of(parent),
			   o->makes == MAKES_OF_GROUP ? MAKES : ORDERED, 0, __builtin_dwarf_cfa());
	if (seen && o->makes == MAKES_OF_GROUPS)
		turn = order_turn();
	if (made >= 0 && gap != FAILS) {
		groups_are(&comms[made], member);
		if (gap != UNSEEN && atomic_load(&calls_state.begun))
			numbers[made] = make(BIND_COMM, handle_of(made)); /* the agent is inside the wrapper */
		handle = (uint32_t)handle_of(made);
	}
	if (!seen)
		return;
	call_returns(&c, IN_COLLECTIVE);
	if (gap == FAILS)
		order_failed(&c, o->makes == MAKES_OF_GROUP ? MAKES : ORDERED);
	else
		order_made(&c, o->makes, o->makes == MAKES_COLOURS ? made - o->first : o->tag, (intptr_t)&handle, turn);
	call_counts(&c, 0, 0);
}

static bool independent(const struct operation *a, const struct operation *b)
{
	const int parents[] = { b->parent, b->second };
	bool group = a->makes == MAKES_OF_GROUP, other = b->makes == MAKES_OF_GROUP;

	/* What a part of the members makes is in no order with what threads make beside it. */
	if (a->parent == b->parent && a->second == b->second && (group || other))
		return group != other || a->tag != b->tag;
	for (int i = 0; i < 2; i++)
		if (parents[i] == a->parent || parents[i] == a->second || (parents[i] >= a->first && parents[i] < a->end))
			return false;
	return a->makes != MAKES_OF_GROUPS || b->makes != MAKES_OF_GROUPS;
}

static void says(void *context, const struct source_comm *is)
{
	struct said *own = context;

	for (int i = 0; i < comm_count; i++)
		if (numbers[i] == is->object)
			own[i] = (struct said){ .is = true, .identity = is->identity, .begun = is->begun };
}

static void shuffle_operations(void)
{
	for (int swaps = 0; swaps < 4 * operation_count; swaps++) {
		int i = random_below(operation_count - 1);
		struct operation kept = operations[i];

		if (!independent(&operations[i], &operations[i + 1]))
			continue;
		operations[i] = operations[i + 1];
		operations[i + 1] = kept;
	}
}

static int playing, early; /* the member, and how many operations it plays before the agent knows MPI_COMM_WORLD */
static bool gaps;

/* A communicator that a call has failed to make in one member isn't used by that one. */
static void plays_operations(int from, int to)
{
	static bool lacks[MOST_COMMS];

	for (int i = from; i < to; i++) {
		const struct operation *o = &operations[i];
		bool has = !lacks[is_in(&comms[o->parent], playing) ? o->parent : o->second];
		enum gap gap = NO_GAP;

		if (gaps && random_below(20) == 0)
			gap = i >= early && random_below(2) == 0 ? FAILS : UNSEEN;
		if (i >= early && random_below(10) == 0)
			source->measure(random_below(2) == 0);
		if (has)
			plays(o, playing, gap);
		for (int k = o->first; k < o->end; k++)
			lacks[k] = gap == FAILS || !has;
	}
}

static void *plays_early(void *unused)
{
	plays_operations(0, early);
	return unused;
}

/* Some have an agent that comes late: before it has begun, or only before it knows MPI_COMM_WORLD. */
static void is_member(int member)
{
	bool begins_late;

	playing = member;
	chance = order_mix(chance, (uint64_t)member);
	shuffle_operations();
	early = gaps && random_below(4) == 0 ? random_below(12) : 0;
	begins_late = random_below(2) == 0;
	if (early > 0) {
		if (begins_late) {
			source->measure(false);
			atomic_store(&calls_state.begun, false);
		}
		in_a_thread(plays_early, NULL);
		order_open();
		source->measure(true);
	}
	numbers[0] = make(BIND_COMM, FAKE_WORLD);
	plays_operations(early, operation_count);
	source->comms(true, says, said[member]);
}

static void plays_together(bool with_gaps)
{
	gaps = with_gaps;
	think_up();
	memset(said, 0, MEMBERS * sizeof *said);
	for (int member = 0; member < MEMBERS; member += every) {
		int status = -1;
		pid_t child = fork();

		CHECK(child >= 0);
		if (child == 0) {
			is_member(member);
			_exit(0);
		}
		CHECK(waitpid(child, &status, 0) == child && status == 0);
	}
}

/* Of the communicators that have been played; how many are known in all their members. */
static int compares(bool with_gaps)
{
	static uint64_t identity[MOST_COMMS];
	int known_to_all = 0;

	for (int i = 0; i < comm_count; i++) {
		bool all = comms[i].count > 0;

		identity[i] = 0;
		for (int member = 0; member < MEMBERS; member += every) {
			const struct said *s = &said[member][i];

			CHECK(with_gaps || s->is == (comms[i].count > 0 && is_in(&comms[i], member)));
			all = all && (!is_in(&comms[i], member) || (s->is && s->identity != 0));
			if (!s->is)
				continue;
			CHECK(with_gaps ? s->begun == 0 || s->begun == (uint64_t)comms[i].begun + 1
					: s->identity != 0 && s->begun == (uint64_t)comms[i].begun + 1);
			if (s->identity == 0)
				continue;
			CHECK(identity[i] == 0 || identity[i] == s->identity);
			identity[i] = s->identity;
		}
		known_to_all += all;
		for (int k = 0; k < i; k++)
			CHECK(identity[i] == 0 || identity[k] != identity[i]);
	}
	return known_to_all;
}

void test_identities_agree(void)
{
	int plays = getenv("FEW_TURNS") != NULL ? 1 : PLAYS;
	struct place place = fake_place;

	every = getenv("FEW_TURNS") != NULL ? 509 : 13;
	said = mmap(NULL, MEMBERS * sizeof *said, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(said != MAP_FAILED);
	for (int i = 0; i < plays; i++) {
		chance = (uint64_t)i;
		plays_together(false);
		CHECK(compares(false) > MOST_COMMS / 4);
		plays_together(true);
		CHECK(compares(true) > 0);
	}
	munmap(said, MEMBERS * sizeof *said);
	fake_place = place;
}
