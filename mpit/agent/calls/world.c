/* world.c - ranks of communicators and windows in MPI_COMM_WORLD. */
#define _GNU_SOURCE
#include "world.h"

#include "calls.h"
#include "library.h"
#include "order.h"

#include <sys/mman.h>

/* Of all tables together: it is address space, and becomes memory as tables are used. */
#define TABLES_BYTES (16u << 20)
#define MOST_TABLES 4096u
/*
 * Open MPI looks for each process of one group among all of the other, which takes 7 ns a pair. Groups of so
 * many pairs are not asked about as a whole; lines of any length are.
 */
#define MOST_PAIRS ((uint64_t)1 << 24)
/* How much of a line is asked about at a time. */
#define SPAN 16

int world_size;
static intptr_t comm_world;

/* Made in world_open, never moved or given back, so that who looks up a rank of an object that is just being freed
 * reads what is there. Of world_size entries each; number 0 stands for none. */
static _Atomic int *entries;
/* The gate's. */
static struct table {
	unsigned used; /* by so many objects */
	int count;
} *tables;
static unsigned table_count, made;

static void *memory(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

bool world_open(intptr_t world)
{
	int initialized = 0;

	if (world_size > 0)
		return true;
	if (!library.has_groups || library.initialized(&initialized) != 0 || !initialized)
		return false;
	if (library.comm_size(world, &world_size) != 0 || world_size <= 0) {
		world_size = 0;
		return false;
	}
	comm_world = world;
	return true;
}

bool world_open_tables(void)
{
	if (entries != NULL)
		return true;
	table_count = TABLES_BYTES / sizeof(int) / (unsigned)world_size;
	table_count = table_count < 1 ? 1 : table_count > MOST_TABLES ? MOST_TABLES : table_count;
	tables = memory((table_count + 1) * sizeof *tables);
	if (tables != NULL)
		entries = memory((size_t)table_count * (size_t)world_size * sizeof *entries);
	return entries != NULL;
}

static _Atomic int *entries_of(unsigned table)
{
	return entries + (size_t)(table - 1) * (size_t)world_size;
}

/* ---- asking ---- */

/* Groups, of which the second is MPI_COMM_WORLD's. */
struct pair {
	intptr_t group, world;
};

static bool translate(const struct pair *p, int from, int count, int *to)
{
	int ranks[SPAN];

	for (int i = 0; i < count; i++)
		ranks[i] = from + i;
	return library.group_translate_ranks(p->group, count, ranks, p->world, to) == 0;
}

/* Whether a part of the group is where the line says: only those processes of the world are looked at. */
static bool span_is_on(const struct pair *p, const struct world_ranks *line, int from, int count)
{
	int last = from + count - 1, range[3] = { line->first + from * line->stride, line->first + last * line->stride,
						   line->stride };
	int to[SPAN];
	struct pair part = { .group = p->group };
	bool is;

	if (library.group_range_incl(p->world, 1, range, &part.world) != 0)
		return false;
	is = translate(&part, from, count, to);
	for (int i = 0; is && i < count; i++)
		is = to[i] == i;
	library.group_free(&part.world);
	return is;
}

static bool find_line(const struct pair *p, int count, struct world_ranks *out)
{
	int to[2] = { 0, 0 };
	struct world_ranks line = { .count = count, .stride = 1 };
	int64_t last;

	if (!translate(p, 0, count < 2 ? count : 2, to) || to[0] < 0 || to[1] < 0)
		return false;
	line.first = to[0];
	if (count > 1)
		line.stride = to[1] - to[0];
	last = line.first + (int64_t)(count - 1) * line.stride;
	if (line.stride == 0 || last < 0 || last >= world_size)
		return false;
	for (int i = 0; i < count; i += SPAN)
		if (!span_is_on(p, &line, i, count - i < SPAN ? count - i : SPAN))
			return false;
	*out = line;
	return true;
}

/* A table that nobody uses, or 0. */
static unsigned free_table(void)
{
	for (unsigned i = 1; i <= made; i++)
		if (tables[i].used == 0)
			return i;
	return made < table_count ? ++made : 0;
}

static unsigned same_table(unsigned table, int count)
{
	const _Atomic int *own = entries_of(table);

	for (unsigned i = 1; i <= made; i++) {
		const _Atomic int *other = entries_of(i);
		int same = 0;

		if (i == table || tables[i].used == 0 || tables[i].count != count)
			continue;
		while (same < count && atomic_load_explicit(&own[same], memory_order_relaxed) ==
					       atomic_load_explicit(&other[same], memory_order_relaxed))
			same++;
		if (same == count)
			return i;
	}
	return table;
}

static void fill_table(const struct pair *p, int count, struct world_ranks *out)
{
	unsigned table = free_table();
	int to[SPAN];

	if (table == 0)
		return;
	for (int at = 0; at < count; at += SPAN) {
		int n = count - at < SPAN ? count - at : SPAN;

		if (!translate(p, at, n, to))
			return;
		/* Release: who reads one of these has what registry_remove did to the table's last user. MPI_UNDEFINED is
		 * below zero. */
		for (int i = 0; i < n; i++)
			atomic_store_explicit(&entries_of(table)[at + i], to[i] < 0 ? WORLD_NOBODY : to[i], memory_order_release);
	}
	table = same_table(table, count);
	tables[table].used++;
	tables[table].count = count;
	*out = (struct world_ranks){ .count = count, .table = table };
}

static void ask(const struct pair *p, struct world_ranks *out)
{
	int count = 0;

	if (p->group == p->world) {
		*out = (struct world_ranks){ .count = world_size, .stride = 1 };
		return;
	}
	/* More processes than the world has are not all of it: the merged groups of two worlds. */
	if (library.group_size(p->group, &count) != 0 || count <= 0 || count > world_size)
		return;
	if (!find_line(p, count, out) && (uint64_t)count * (uint64_t)world_size <= MOST_PAIRS)
		fill_table(p, count, out);
}

static bool group_of(int kind, intptr_t handle, bool inter, intptr_t *group)
{
	if (kind == BIND_WIN)
		return library.win_get_group(handle, group) == 0;
	return (inter ? library.comm_remote_group : library.comm_group)(handle, group) == 0;
}

static bool open_pair(int kind, intptr_t handle, bool inter, struct pair *p)
{
	int finalized = 0;

	*p = (struct pair){ 0 };
	/* What sessions make after MPI_Finalize: MPI_COMM_WORLD is gone, and naming it may end the program. */
	if (library.finalized(&finalized) != 0 || finalized || !group_of(kind, handle, inter, &p->group))
		return false;
	if (library.comm_group(comm_world, &p->world) == 0)
		return true;
	library.group_free(&p->group);
	return false;
}

static void close_pair(struct pair *p)
{
	library.group_free(&p->world);
	library.group_free(&p->group);
}

void world_ranks(int kind, intptr_t handle, bool inter, struct world_ranks *out)
{
	struct pair p;

	*out = (struct world_ranks){ 0 };
	if (!open_pair(kind, handle, inter, &p))
		return;
	ask(&p, out);
	close_pair(&p);
}

bool world_is(intptr_t handle)
{
	return world_size > 0 && handle == comm_world;
}

int world_leader(intptr_t comm, bool remote)
{
	struct pair p;
	int leader = WORLD_NOBODY;

	if (!open_pair(BIND_COMM, comm, remote, &p))
		return WORLD_NOBODY;
	if (!translate(&p, 0, 1, &leader) || leader < 0)
		leader = WORLD_NOBODY;
	close_pair(&p);
	return leader;
}

/* The same of the same processes, whatever their group is called. */
static uint64_t hash_members(const struct pair *p)
{
	struct world_ranks line = { .count = world_size, .stride = 1 };
	int count = world_size, to[SPAN];
	uint64_t hash = 0;

	if (p->group != p->world && (library.group_size(p->group, &count) != 0 || count <= 0 || count > world_size))
		return 0;
	if (p->group == p->world || find_line(p, count, &line))
		return order_mix(order_mix(order_mix(1, (uint64_t)count), (uint64_t)line.first), (uint64_t)line.stride);
	if ((uint64_t)count * (uint64_t)world_size > MOST_PAIRS)
		return 0;
	for (int at = 0; at < count; at += SPAN) {
		int n = count - at < SPAN ? count - at : SPAN;

		if (!translate(p, at, n, to))
			return 0;
		for (int i = 0; i < n; i++) {
			if (to[i] < 0)
				return 0;
			hash = order_mix(hash, (uint64_t)to[i]);
		}
	}
	return hash;
}

uint64_t world_members(intptr_t comm, bool remote)
{
	struct pair p;
	uint64_t hash;

	if (!open_pair(BIND_COMM, comm, remote, &p))
		return 0;
	hash = hash_members(&p);
	close_pair(&p);
	return hash;
}

void world_drop(const struct world_ranks *ranks)
{
	if (ranks->table != 0)
		tables[ranks->table].used--;
}

int world_rank(const struct world_ranks *ranks, int rank)
{
	if (rank < 0 || rank >= ranks->count)
		return WORLD_NOBODY;
	if (ranks->table != 0)
		return atomic_load_explicit(&entries_of(ranks->table)[rank], memory_order_acquire);
	return ranks->first + rank * ranks->stride;
}
