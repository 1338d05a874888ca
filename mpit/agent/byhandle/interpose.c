/*
 * interpose.c - the functions that make, change and end objects without attributes: those of interposed.h, each also
 * under its PMPI_ name.
 *
 * A function that frees tells the agent first, because the handle is gone afterwards and what is bound to an object
 * must be closed before it ends; should the real call fail then, the object lives on unobserved.
 */
#include "../interpose.h"

#include "interposed.h"
#include "tracking.h"

#define MAKES_HANDLE(kind, name, n, object, on) MAKES_BOTH(kind, name, n, object, on, tracking_handle_made)

#define MAKES_GROUP(name, n, object, on) MAKES_HANDLE(BIND_GROUP, name, n, object, on)
GROUPS(MAKES_GROUP)
GROUPS_4(MAKES_GROUP)

#define MAKES_ERRHANDLER(name, n, object, on) MAKES_HANDLE(BIND_ERRHANDLER, name, n, object, on)
ERRHANDLERS(MAKES_ERRHANDLER)
ERRHANDLERS_1(MAKES_ERRHANDLER)
ERRHANDLERS_4(MAKES_ERRHANDLER)

#define MAKES_OP(name, n, object, on) MAKES_HANDLE(BIND_OP, name, n, object, on)
OPERATIONS(MAKES_OP)
OPERATIONS_4(MAKES_OP)

#define MAKES_INFO(name, n, object, on) MAKES_HANDLE(BIND_INFO, name, n, object, on)
INFOS(MAKES_INFO)
INFOS_4(MAKES_INFO)

#define MAKES_REQUEST(name, n, object, on) MAKES_HANDLE(BIND_REQUEST, name, n, object, on)
REQUESTS(MAKES_REQUEST)
PERSISTENT_BARRIER(MAKES_REQUEST)
PERSISTENT_COLLECTIVES(MAKES_REQUEST)
REQUESTS_4(MAKES_REQUEST)

#define MAKES_REQUEST_LARGE(name, n, object, on) MAKES_REQUEST(name##_c, n, object, on)
REQUESTS(MAKES_REQUEST_LARGE)
PERSISTENT_COLLECTIVES(MAKES_REQUEST_LARGE)

/* Open MPI's before MPI-4. */
#define MAKES_REQUEST_BEFORE_4(name, n, object, on)                                     \
	MAKES(BIND_REQUEST, MPIX_##name, name, n, object, on, tracking_handle_made)     \
	MAKES(BIND_REQUEST, PMPIX_##name, name, n, object, on, tracking_handle_made)
PERSISTENT_BARRIER(MAKES_REQUEST_BEFORE_4)
PERSISTENT_COLLECTIVES(MAKES_REQUEST_BEFORE_4)

/* ---- files ---- */

static const char File_open_name[] = "File_open";

#define OPENS(function)                                                                 \
	EXPORT int function(R comm, const char *name, R mode, R info, void *file);      \
	int function(R comm, const char *name, R mode, R info, void *file)              \
	{                                                                               \
		NEXT(int (R, const char *, R, R, void *), function);                    \
		const char *outer = inside_call;                                        \
		struct making how = { File_open_name, name, (int)mode, &comm };         \
		inside_call = File_open_name;                                           \
		int rc = next(comm, name, mode, info, file);                            \
		inside_call = outer;                                                    \
		if (rc == 0)                                                            \
			tracking_handle_made(BIND_FILE, file, &how, outer != NULL);     \
		return rc;                                                              \
	}

OPENS(MPI_File_open)
OPENS(PMPI_File_open)

/* ---- the ends, and what changes ---- */

#define ENDS(function, name, kind)                                                      \
	EXPORT int function(void *object);                                              \
	int function(void *object)                                                      \
	{                                                                               \
		NEXT(int (void *), function);                                           \
		const char *outer = inside_call;                                        \
		tracking_handle_freeing(BIND_##kind, object, outer == name##_name);     \
		inside_call = name##_name;                                              \
		int rc = next(object);                                                  \
		inside_call = outer;                                                    \
		return rc;                                                              \
	}

#define ENDS_BOTH(name, kind)                                                           \
	static const char name##_name[] = #name;                                        \
	ENDS(MPI_##name, name, kind)                                                    \
	ENDS(PMPI_##name, name, kind)
FREES(ENDS_BOTH)

#define KEYS_BOTH(name, n)                                                              \
	TELLS(MPI_##name, n, tracking_key_changed(a1, (const char *)a2))                \
	TELLS(PMPI_##name, n, tracking_key_changed(a1, (const char *)a2))
KEYS(KEYS_BOTH)
