/*
 * interpose.c - the MPI functions that the agent stands in front of, and nothing else.
 *
 * No message call is among them. Each also under its PMPI_ name, because Fortran bindings call
 * those. Here are the beginning and the end; objects are in interpose_objects.c
 * and byhandle/interpose.c.
 *
 * An interposed function calls the next definition first and tells the agent afterwards, with the
 * gate free: what the program waits on inside MPI is never the agent.
 */
#include "interpose.h"

#include "lifecycle.h"

__thread const char *inside_call __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* ---- the beginning and the end ---- */

#define BEGINS(function, parameters, arguments)                                         \
	EXPORT int function parameters;                                                 \
	int function parameters                                                         \
	{                                                                               \
		NEXT(int parameters, function);                                         \
		bool first = lifecycle_prepare(CALLER, true);                           \
		int rc = next arguments;                                                \
		lifecycle_world_begun(first, rc == 0);                                  \
		return rc;                                                              \
	}

BEGINS(MPI_Init, (int *argc, char ***argv), (argc, argv))
BEGINS(PMPI_Init, (int *argc, char ***argv), (argc, argv))
BEGINS(MPI_Init_thread, (int *argc, char ***argv, int required, int *provided), (argc, argv, required, provided))
BEGINS(PMPI_Init_thread, (int *argc, char ***argv, int required, int *provided), (argc, argv, required, provided))

/* The last sample comes later, from inside the library: other tools still call MPI in their own MPI_Finalize. */
#define ENDS(function)                                                                  \
	EXPORT int function(void);                                                      \
	int function(void)                                                              \
	{                                                                               \
		NEXT(int (void), function);                                             \
		lifecycle_finalizing();                                                 \
		int rc = next();                                                        \
		lifecycle_finalized();                                                  \
		return rc;                                                              \
	}

ENDS(MPI_Finalize)
ENDS(PMPI_Finalize)

#define ABORTS(function)                                                                \
	EXPORT int function(intptr_t comm, intptr_t code);                              \
	int function(intptr_t comm, intptr_t code)                                      \
	{                                                                               \
		NEXT(int (intptr_t, intptr_t), function);                               \
		lifecycle_end(END_ABORT);                                               \
		return next(comm, code);                                                \
	}

ABORTS(MPI_Abort)
ABORTS(PMPI_Abort)

#define INITIALISES_TOOLS(function)                                                     \
	EXPORT int function(int required, int *provided);                               \
	int function(int required, int *provided)                                       \
	{                                                                               \
		NEXT(tool_init, function);                                              \
		return lifecycle_tool_init(next, CALLER, required, provided);           \
	}

INITIALISES_TOOLS(MPI_T_init_thread)
INITIALISES_TOOLS(PMPI_T_init_thread)

/* ---- MPI-4 sessions ---- */

static const char session_init[] = "Session_init", session_finalize[] = "Session_finalize";

#define BEGINS_SESSION(function)                                                        \
	EXPORT int function(intptr_t info, intptr_t errhandler, void *session);         \
	int function(intptr_t info, intptr_t errhandler, void *session)                 \
	{                                                                               \
		NEXT(int (intptr_t, intptr_t, void *), function);                       \
		const char *outer = inside_call;                                        \
		if (outer == session_init)                                              \
			return next(info, errhandler, session);                         \
		bool first = lifecycle_prepare(CALLER, false);                          \
		inside_call = session_init;                                             \
		int rc = next(info, errhandler, session);                               \
		inside_call = outer;                                                    \
		lifecycle_session_begun(first, rc == 0 ? session : NULL);               \
		return rc;                                                              \
	}

BEGINS_SESSION(MPI_Session_init)
BEGINS_SESSION(PMPI_Session_init)

#define ENDS_SESSION(function)                                                          \
	EXPORT int function(void *session);                                             \
	int function(void *session)                                                     \
	{                                                                               \
		NEXT(int (void *), function);                                           \
		const char *outer = inside_call;                                        \
		if (outer == session_finalize)                                          \
			return next(session);                                           \
		lifecycle_session_ending(session);                                      \
		inside_call = session_finalize;                                         \
		int rc = next(session);                                                 \
		inside_call = outer;                                                    \
		return rc;                                                              \
	}

ENDS_SESSION(MPI_Session_finalize)
ENDS_SESSION(PMPI_Session_finalize)
