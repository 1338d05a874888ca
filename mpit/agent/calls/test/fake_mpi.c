/* fake_mpi.c - an MPI library that does nothing, its ABI, and wrappers as generate/ makes them. */
#define _GNU_SOURCE
#include "fake_mpi.h"

#include "wrappers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                \
	do {                                                                            \
		if (!(condition)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                        \
		}                                                                       \
	} while (0)

__thread void (*fake_inside)(void);
int fake_answer;
_Atomic uint64_t fake_type_factor = 1, fake_types_asked, fake_places_asked;
void (*fake_frees_type)(void);
struct place fake_place;
int fake_topology = -1;

/* ---- the table ---- */

const struct function functions[] = {
#define ROW(name, bind, out, in, activity, names) \
	{ #name, BIND_##bind, out, in, activity, names, (activity) == IN_COLLECTIVE },
	FUNCTIONS(ROW)
#undef ROW
};
const unsigned function_count = FUNCTION_COUNT;

/* ---- the ABI ---- */

static uint64_t status_bytes(const void *status)
{
	uint64_t bytes;

	memcpy(&bytes, status, sizeof bytes);
	return bytes;
}

static intptr_t null_type(void *(*find)(const char *))
{
	(void)find;
	return FAKE_NULL_TYPE;
}

static intptr_t comm_world(void *(*find)(const char *))
{
	(void)find;
	return FAKE_WORLD;
}

static intptr_t comm_null(void *(*find)(const char *))
{
	(void)find;
	return FAKE_NULL;
}

static const struct calls_abi fake = {
	.number = 7,
	.proc_null = -1,
	.any_source = -2,
	.root = -2,
	.cart = 1,
	.graph = 2,
	.dist_graph = 3,
	.handle_size = 4,
	.handle_mask = UINT32_MAX,
	.status_bytes = status_bytes,
	.datatype_null = null_type,
	.no_op = null_type,
	.comm_world = comm_world,
	.comm_null = comm_null,
	.request_null = null_type,
};

const struct calls_abi *const calls_abi_list[] = { &fake, NULL };

/* ---- the library ---- */

#define LIBRARY(name, bind, out, in, activity, names)                                                                            \
	__attribute__((noinline)) int fake_##name(intptr_t buffer, intptr_t count, intptr_t type, intptr_t handle) \
	{                                                                                                       \
		(void)buffer;                                                                                   \
		(void)count;                                                                                    \
		(void)type;                                                                                     \
		(void)handle;                                                                                   \
		if (fake_inside != NULL)                                                                        \
			fake_inside();                                                                                \
		return fake_answer;                                                                             \
	}
FUNCTIONS(LIBRARY)

static int free_type(void *type)
{
	(void)type;
	if (fake_frees_type != NULL)
		fake_frees_type();
	return 0;
}

static int comm_rank(intptr_t comm, int *rank)
{
	(void)comm;
	*rank = fake_place.rank;
	return 0;
}

static int comm_size(intptr_t comm, int *size)
{
	atomic_fetch_add(&fake_places_asked, 1);
	*size = comm == FAKE_WORLD ? FAKE_WORLD_SIZE : fake_place.size;
	return 0;
}

/* Groups: all of the world, that of what is asked about, and a part of the world. */
enum { WORLD = 1, ASKED, REMOTE, PART };

int fake_ranks[FAKE_WORLD_SIZE], fake_rank_count, fake_groups, fake_translated;
int fake_remote[FAKE_WORLD_SIZE], fake_remote_count;
static int part[FAKE_WORLD_SIZE], part_count;

static int group_of(intptr_t handle, intptr_t *group)
{
	fake_groups++;
	*group = handle == FAKE_WORLD ? WORLD : ASKED;
	return 0;
}

static int remote_group_of(intptr_t handle, intptr_t *group)
{
	int rc = group_of(handle, group);

	*group = fake_remote_count > 0 ? REMOTE : *group;
	return rc;
}

static int group_size(intptr_t group, int *size)
{
	CHECK(group == ASKED || group == REMOTE);
	*size = group == ASKED ? fake_rank_count : fake_remote_count;
	return 0;
}

static int group_range_incl(intptr_t group, intptr_t count, const int *range, intptr_t *out)
{
	CHECK(group == WORLD && count == 1 && range[2] != 0);
	part_count = 0;
	for (int rank = range[0]; range[2] > 0 ? rank <= range[1] : rank >= range[1]; rank += range[2]) {
		CHECK(rank >= 0 && rank < FAKE_WORLD_SIZE);
		part[part_count++] = rank;
	}
	fake_groups++;
	*out = PART;
	return 0;
}

static int in_part(int rank)
{
	for (int i = 0; i < part_count; i++)
		if (part[i] == rank)
			return i;
	return FAKE_NOBODY;
}

static int group_translate_ranks(intptr_t group, intptr_t count, const int *ranks, intptr_t other, int *others)
{
	const int *members = group == ASKED ? fake_ranks : fake_remote;

	CHECK((group == ASKED || group == REMOTE) && (other == WORLD || other == PART));
	fake_translated += other == WORLD ? (int)count : 0;
	for (int i = 0; i < count; i++) {
		CHECK(ranks[i] >= 0 && ranks[i] < (group == ASKED ? fake_rank_count : fake_remote_count));
		others[i] = other == WORLD ? members[ranks[i]] : in_part(members[ranks[i]]);
	}
	return 0;
}

static int group_free(intptr_t *group)
{
	CHECK(*group >= WORLD && *group <= PART);
	fake_groups--;
	*group = 0;
	return 0;
}

int fake_finalized;
intptr_t fake_request;

static int finalized(int *flag)
{
	*flag = fake_finalized;
	return 0;
}

static int initialized(int *flag)
{
	*flag = 1;
	return 0;
}

static int comm_test_inter(intptr_t comm, int *inter)
{
	(void)comm;
	*inter = fake_place.inter;
	return 0;
}

static int comm_remote_size(intptr_t comm, int *size)
{
	(void)comm;
	*size = fake_place.remote_size;
	return 0;
}

static int topo_test(intptr_t comm, int *topology)
{
	(void)comm;
	*topology = fake_topology;
	return 0;
}

static int cartdim_get(intptr_t comm, int *dimensions)
{
	(void)comm;
	*dimensions = 3;
	return 0;
}

static int graph_neighbors_count(intptr_t comm, intptr_t rank, int *neighbors)
{
	(void)comm;
	*neighbors = 10 + (int)rank;
	return 0;
}

static int dist_graph_neighbors_count(intptr_t comm, int *in, int *out, int *weighted)
{
	(void)comm;
	*in = 4;
	*out = 5;
	*weighted = 0;
	return 0;
}

static int type_size_x(intptr_t type, long long *bytes)
{
	atomic_fetch_add(&fake_types_asked, 1);
	*bytes = (long long)((uint64_t)type * atomic_load(&fake_type_factor));
	return 0;
}

bool fake_filter;

bool fake_filtered(void)
{
	return fake_filter;
}

void *fake_find(const char *function)
{
	static const struct {
		const char *name;
		void *function;
	} known[] = {
		{ "PMPI_Comm_rank", comm_rank },
		{ "PMPI_Comm_size", comm_size },
		{ "PMPI_Comm_test_inter", comm_test_inter },
		{ "PMPI_Comm_remote_size", comm_remote_size },
		{ "PMPI_Comm_group", group_of },
		{ "PMPI_Comm_remote_group", remote_group_of },
		{ "PMPI_Win_get_group", group_of },
		{ "PMPI_Group_size", group_size },
		{ "PMPI_Group_range_incl", group_range_incl },
		{ "PMPI_Group_translate_ranks", group_translate_ranks },
		{ "PMPI_Group_free", group_free },
		{ "PMPI_Initialized", initialized },
		{ "PMPI_Finalized", finalized },
		{ "PMPI_Topo_test", topo_test },
		{ "PMPI_Cartdim_get", cartdim_get },
		{ "PMPI_Graph_neighbors_count", graph_neighbors_count },
		{ "PMPI_Dist_graph_neighbors_count", dist_graph_neighbors_count },
		{ "PMPI_Type_size_x", type_size_x },
		{ "PMPI_Type_free", free_type },
#define KNOWN(name, bind, out, in, activity, names) { "P" #name, fake_##name },
		FUNCTIONS(KNOWN)
#undef KNOWN
	};

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (strcmp(known[i].name, function) == 0)
			return known[i].function;
	return NULL;
}

void *next_definition(_Atomic(void *) *known, const char *function, const void *caller)
{
	char name[64] = "P";
	void *found;

	(void)caller;
	strncat(name, function + (*function == 'P'), sizeof name - 2);
	found = fake_find(name);
	atomic_store_explicit(known, found, memory_order_relaxed);
	return found;
}

/* ---- the wrappers ---- */

typedef int next_4(intptr_t, intptr_t, intptr_t, intptr_t);

#define ORDERING(activity) ((activity) == IN_COLLECTIVE ? ORDERED : UNORDERED)
#define HAS(direction, bytes) ((direction) != NULL ? (bytes) : 0)

/* To which rank: what stands where the buffer's address would. */
static bool to_a_peer(unsigned function)
{
	return function == FUNCTION_MPI_Send || function == FUNCTION_MPI_Isend || function == FUNCTION_MPI_Sendrecv ||
	       function == FUNCTION_MPI_Put;
}

#define WRAPPER(symbol, name)                                                                                   \
	EXPORT int symbol(intptr_t buffer, intptr_t count, intptr_t type, intptr_t handle)                      \
	{                                                                                                       \
		NEXT(next_4, symbol);                                                                           \
		return measure_##name(next, FRAME, buffer, count, type, handle);                                \
	}
#define WRAPPERS(name, bind, has_out, has_in, activity, names)                                                         \
	static MEASURES int measure_##name(next_4 *next, const void *frame, intptr_t buffer, intptr_t count, intptr_t type, \
					   intptr_t handle)                                                                   \
	{                                                                                                       \
		struct call call;                                                                               \
		uint64_t bytes = 0;                                                                             \
                                                                                                                \
		if (!call_begins(&call, FUNCTION_##name, BIND_##bind, handle, ORDERING(activity), \
				 (names) == NAMES_REQUESTS ? call_requests(buffer, count) : call_names(buffer, count), frame)) \
			return next(buffer, count, type, handle);                                               \
		int rc = next(buffer, count, type, handle);                                                     \
		call_returns(&call, activity);                                                                  \
		if (rc == 0 && count > 0 && ((has_out) != NULL || (has_in) != NULL))                            \
			bytes = (uint64_t)count * type_bytes(type);                                             \
		call_counts(&call, HAS(has_out, bytes), HAS(has_in, bytes));                                    \
		if (((has_out) != NULL || (has_in) != NULL) && counts_sizes() && rc == 0)                       \
			call_size(&call, bytes);                                                                \
		if (counts_peers() && rc == 0 && to_a_peer(FUNCTION_##name))                                    \
			call_sends(&call, BIND_##bind, (int)buffer, bytes);                                     \
		if (counts_peers() && rc == 0 && fake_request != 0)                                             \
			call_requested(&call, fake_request, ORDERING(activity) == ORDERED ? call_number(&call) : call_names(buffer, count)); \
		return rc;                                                                                      \
	}                                                                                                       \
	WRAPPER(name, name)                                                                                     \
	WRAPPER(P##name, name)
FUNCTIONS(WRAPPERS)
