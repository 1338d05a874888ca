/*
 * interpose.c - the MPI functions that the agent stands in front of, and nothing else.
 *
 * No message call is among them. Each also under its PMPI_ name, because Fortran bindings call
 * those. Arguments pass through unchanged as registers: intptr_t holds an int handle (MPICH) and
 * a pointer handle (Open MPI) alike; the upper half of an int argument may be anything and stays
 * so. This holds on every ABI where an argument takes a register or an 8-byte stack slot: x86-64,
 * AArch64, POWER, RISC-V on Linux.
 *
 * An interposed function calls the next definition first and tells the agent afterwards, with the
 * gate free: what the program waits on inside MPI is never the agent.
 */
#include "agent.h"
#include "lifecycle.h"
#include "locate.h"

#include <stdatomic.h>

#define EXPORT __attribute__((visibility("default"))) extern
#define CALLER __builtin_return_address(0)

/* What a function that the library doesn't have answers: MPI_ERR_OTHER or an unknown class, never success. */
#define NOT_THERE 16

/*
 * The next definition of the function that this stands in, looked up at its first call. Two threads
 * that do it at once find the same.
 */
static void *next_definition(_Atomic(void *) *known, const char *function, const void *caller)
{
	void *found = atomic_load_explicit(known, memory_order_relaxed);

	if (found == NULL) {
		found = locate_next(function, caller);
		atomic_store_explicit(known, found, memory_order_relaxed);
		if (found == NULL)
			agent_log("the MPI library has no %s", function);
	}
	return found;
}

#define NEXT(function, parameters)                                                      \
	static _Atomic(void *) known;                                                   \
	int(*next) parameters;                                                          \
	*(void **)&next = next_definition(&known, #function, CALLER);                   \
	if (next == NULL)                                                               \
		return NOT_THERE

/* ---- the beginning and the end ---- */

#define BEGINS(function, parameters, arguments)                                         \
	EXPORT int function parameters;                                                 \
	int function parameters                                                         \
	{                                                                               \
		NEXT(function, parameters);                                             \
		bool first = lifecycle_prepare(CALLER);                                 \
		int rc = next arguments;                                                \
		if (first && rc == 0)                                                   \
			lifecycle_begin();                                              \
		return rc;                                                              \
	}

BEGINS(MPI_Init, (int *argc, char ***argv), (argc, argv))
BEGINS(PMPI_Init, (int *argc, char ***argv), (argc, argv))
BEGINS(MPI_Init_thread, (int *argc, char ***argv, int required, int *provided), (argc, argv, required, provided))
BEGINS(PMPI_Init_thread, (int *argc, char ***argv, int required, int *provided), (argc, argv, required, provided))

#define ABORTS(function)                                                                \
	EXPORT int function(intptr_t comm, intptr_t code);                              \
	int function(intptr_t comm, intptr_t code)                                      \
	{                                                                               \
		NEXT(function, (intptr_t, intptr_t));                                   \
		lifecycle_end(END_ABORT);                                               \
		return next(comm, code);                                                \
	}

ABORTS(MPI_Abort)
ABORTS(PMPI_Abort)

#define INITIALISES_TOOLS(function)                                                     \
	EXPORT int function(int required, int *provided);                               \
	int function(int required, int *provided)                                       \
	{                                                                               \
		NEXT(function, (int, int *));                                           \
		if (!lifecycle_uses_tools(CALLER))                                      \
			return next(required, provided);                                \
		int given = -1;                                                         \
		int rc = next(lifecycle_tool_required(), &given);                       \
		if (rc == 0 && provided != NULL)                                        \
			*provided = lifecycle_tool_provided(required, given);           \
		return rc;                                                              \
	}

INITIALISES_TOOLS(MPI_T_init_thread)
INITIALISES_TOOLS(PMPI_T_init_thread)

/* ---- objects ---- */

#define MAKES(tell, function, parameters, arguments)                                    \
	EXPORT int function parameters;                                                 \
	int function parameters                                                         \
	{                                                                               \
		NEXT(function, parameters);                                             \
		int rc = next arguments;                                                \
		if (rc == 0)                                                            \
			tell(out);                                                      \
		return rc;                                                              \
	}

#define MAKES_COMM(name, parameters, arguments)                                         \
	MAKES(lifecycle_comm_made, MPI_##name, parameters, arguments)                   \
	MAKES(lifecycle_comm_made, PMPI_##name, parameters, arguments)

#define MAKES_WIN(name, parameters, arguments)                                          \
	MAKES(lifecycle_win_made, MPI_##name, parameters, arguments)                    \
	MAKES(lifecycle_win_made, PMPI_##name, parameters, arguments)

#define R intptr_t
MAKES_COMM(Comm_dup, (R a, void *out), (a, out))
MAKES_COMM(Comm_dup_with_info, (R a, R b, void *out), (a, b, out))
MAKES_COMM(Comm_split, (R a, R b, R c, void *out), (a, b, c, out))
MAKES_COMM(Comm_split_type, (R a, R b, R c, R d, void *out), (a, b, c, d, out))
MAKES_COMM(Comm_create, (R a, R b, void *out), (a, b, out))
MAKES_COMM(Comm_create_group, (R a, R b, R c, void *out), (a, b, c, out))
MAKES_COMM(Intercomm_create, (R a, R b, R c, R d, R e, void *out), (a, b, c, d, e, out))
MAKES_COMM(Intercomm_merge, (R a, R b, void *out), (a, b, out))
MAKES_COMM(Cart_create, (R a, R b, R c, R d, R e, void *out), (a, b, c, d, e, out))
MAKES_COMM(Cart_sub, (R a, R b, void *out), (a, b, out))
MAKES_COMM(Graph_create, (R a, R b, R c, R d, R e, void *out), (a, b, c, d, e, out))
MAKES_COMM(Dist_graph_create, (R a, R b, R c, R d, R e, R f, R g, R h, void *out), (a, b, c, d, e, f, g, h, out))
MAKES_COMM(Dist_graph_create_adjacent, (R a, R b, R c, R d, R e, R f, R g, R h, R i, void *out), (a, b, c, d, e, f, g, h, i, out))
MAKES_COMM(Comm_spawn, (R a, R b, R c, R d, R e, R f, void *out, R g), (a, b, c, d, e, f, out, g))
MAKES_COMM(Comm_spawn_multiple, (R a, R b, R c, R d, R e, R f, R g, void *out, R h), (a, b, c, d, e, f, g, out, h))
MAKES_COMM(Comm_accept, (R a, R b, R c, R d, void *out), (a, b, c, d, out))
MAKES_COMM(Comm_connect, (R a, R b, R c, R d, void *out), (a, b, c, d, out))
MAKES_COMM(Comm_join, (R a, void *out), (a, out))

MAKES_WIN(Win_create, (R a, R b, R c, R d, R e, void *out), (a, b, c, d, e, out))
MAKES_WIN(Win_create_c, (R a, R b, R c, R d, R e, void *out), (a, b, c, d, e, out))
MAKES_WIN(Win_allocate, (R a, R b, R c, R d, R e, void *out), (a, b, c, d, e, out))
MAKES_WIN(Win_allocate_c, (R a, R b, R c, R d, R e, void *out), (a, b, c, d, e, out))
MAKES_WIN(Win_allocate_shared, (R a, R b, R c, R d, R e, void *out), (a, b, c, d, e, out))
MAKES_WIN(Win_allocate_shared_c, (R a, R b, R c, R d, R e, void *out), (a, b, c, d, e, out))
MAKES_WIN(Win_create_dynamic, (R a, R b, void *out), (a, b, out))
#undef R

#define NAMES(tell, function)                                                           \
	EXPORT int function(intptr_t object, const char *name);                         \
	int function(intptr_t object, const char *name)                                 \
	{                                                                               \
		NEXT(function, (intptr_t, const char *));                               \
		int rc = next(object, name);                                            \
		if (rc == 0)                                                            \
			tell(object);                                                   \
		return rc;                                                              \
	}

NAMES(lifecycle_comm_named, MPI_Comm_set_name)
NAMES(lifecycle_comm_named, PMPI_Comm_set_name)
NAMES(lifecycle_win_named, MPI_Win_set_name)
NAMES(lifecycle_win_named, PMPI_Win_set_name)
