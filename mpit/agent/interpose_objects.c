/*
 * interpose_objects.c - the functions that make, name, change and end objects: those of interposed.h, each also under
 * its PMPI_ name.
 *
 * A constructor calls the next definition first and tells the agent afterwards. A function that frees tells the agent
 * first, because the handle is gone afterwards and what is bound to an object must be closed before it ends; should
 * the real call fail then, the object lives on unobserved. No lock of ours is held across a call of the library's.
 */
#include "interpose.h"

#include "interposed.h"
#include "lifecycle.h"

#define CALL_OF(name, ...) CALL_##name,
enum {
	CALL_BEFORE_OBJECTS = CALL_OBJECTS - 1,
	COMMUNICATORS(CALL_OF) COMMUNICATORS_4(CALL_OF) WINDOWS(CALL_OF) WINDOWS_4(CALL_OF) GROUPS(CALL_OF) GROUPS_4(CALL_OF)
	ERRHANDLERS(CALL_OF) ERRHANDLERS_1(CALL_OF) ERRHANDLERS_4(CALL_OF) OPERATIONS(CALL_OF) OPERATIONS_4(CALL_OF)
	INFOS(CALL_OF) INFOS_4(CALL_OF) REQUESTS(CALL_OF) PERSISTENT_COLLECTIVES(CALL_OF) REQUESTS_4(CALL_OF) DATATYPES(CALL_OF)
	FREES(CALL_OF) NAMES(CALL_OF) KEYS(CALL_OF)
};

/* n registers as parameters and as arguments. */
#define R intptr_t
#define PARAMETERS_1 R a1
#define PARAMETERS_2 PARAMETERS_1, R a2
#define PARAMETERS_3 PARAMETERS_2, R a3
#define PARAMETERS_4 PARAMETERS_3, R a4
#define PARAMETERS_5 PARAMETERS_4, R a5
#define PARAMETERS_6 PARAMETERS_5, R a6
#define PARAMETERS_7 PARAMETERS_6, R a7
#define PARAMETERS_8 PARAMETERS_7, R a8
#define PARAMETERS_9 PARAMETERS_8, R a9
#define PARAMETERS_10 PARAMETERS_9, R a10
#define PARAMETERS_11 PARAMETERS_10, R a11
#define ARGUMENTS_1 a1
#define ARGUMENTS_2 ARGUMENTS_1, a2
#define ARGUMENTS_3 ARGUMENTS_2, a3
#define ARGUMENTS_4 ARGUMENTS_3, a4
#define ARGUMENTS_5 ARGUMENTS_4, a5
#define ARGUMENTS_6 ARGUMENTS_5, a6
#define ARGUMENTS_7 ARGUMENTS_6, a7
#define ARGUMENTS_8 ARGUMENTS_7, a8
#define ARGUMENTS_9 ARGUMENTS_8, a9
#define ARGUMENTS_10 ARGUMENTS_9, a10
#define ARGUMENTS_11 ARGUMENTS_10, a11
#define COMMUNICATOR_0 ((const intptr_t *)0)
#define COMMUNICATOR_1 (&a1)
#define COMMUNICATOR_2 (&a2)
#define COMMUNICATOR_4 (&a4)
#define COMMUNICATOR_5 (&a5)
#define COMMUNICATOR_6 (&a6)
#define COMMUNICATOR_7 (&a7)
#define COMMUNICATOR_8 (&a8)
#define COMMUNICATOR_9 (&a9)

#define MAKES(kind, function, name, n, object, on)                            \
	EXPORT int function(PARAMETERS_##n);                                            \
	int function(PARAMETERS_##n)                                                    \
	{                                                                               \
		NEXT(function, (PARAMETERS_##n));                                       \
		int outer = inside_call;                                                \
		if (outer == CALL_##name)                                               \
			return next(ARGUMENTS_##n);                                     \
		inside_call = CALL_##name;                                              \
		int rc = next(ARGUMENTS_##n);                                           \
		inside_call = outer;                                                    \
		if (rc == 0 && outer == CALL_NONE)                                      \
			lifecycle_made(kind, (const void *)a##object,                   \
				       &(struct making){ .by = #name, .communicator = COMMUNICATOR_##on }); \
		else if (rc == 0)                                                       \
			lifecycle_got(kind, (const void *)a##object);                   \
		return rc;                                                              \
	}

#define BOTH(kind, name, n, object, on)                                       \
	MAKES(kind, MPI_##name, name, n, object, on)                          \
	MAKES(kind, PMPI_##name, name, n, object, on)

#define MAKES_COMM(name, n, object, on) BOTH(BIND_COMM, name, n, object, on)
COMMUNICATORS(MAKES_COMM)
COMMUNICATORS_4(MAKES_COMM)

#define MAKES_WIN(name, n, object, on) BOTH(BIND_WIN, name, n, object, on)
WINDOWS(MAKES_WIN)
WINDOWS_4(MAKES_WIN)

#define MAKES_GROUP(name, n, object, on) BOTH(BIND_GROUP, name, n, object, on)
GROUPS(MAKES_GROUP)
GROUPS_4(MAKES_GROUP)

#define MAKES_ERRHANDLER(name, n, object, on) BOTH(BIND_ERRHANDLER, name, n, object, on)
ERRHANDLERS(MAKES_ERRHANDLER)
ERRHANDLERS_1(MAKES_ERRHANDLER)
ERRHANDLERS_4(MAKES_ERRHANDLER)

#define MAKES_OP(name, n, object, on) BOTH(BIND_OP, name, n, object, on)
OPERATIONS(MAKES_OP)
OPERATIONS_4(MAKES_OP)

#define MAKES_INFO(name, n, object, on) BOTH(BIND_INFO, name, n, object, on)
INFOS(MAKES_INFO)
INFOS_4(MAKES_INFO)

#define MAKES_REQUEST(name, n, object, on) BOTH(BIND_REQUEST, name, n, object, on)
REQUESTS(MAKES_REQUEST)
PERSISTENT_COLLECTIVES(MAKES_REQUEST)
REQUESTS_4(MAKES_REQUEST)

/* Open MPI's before MPI-4. */
#define MAKES_REQUEST_BEFORE_4(name, n, object, on)                           \
	MAKES(BIND_REQUEST, MPIX_##name, name, n, object, on)                 \
	MAKES(BIND_REQUEST, PMPIX_##name, name, n, object, on)
PERSISTENT_COLLECTIVES(MAKES_REQUEST_BEFORE_4)

#define MAKES_DATATYPE(name, n, object, on) BOTH(BIND_DATATYPE, name, n, object, on)
DATATYPES(MAKES_DATATYPE)

/* ---- files ---- */

#define OPENS(function)                                                                 \
	EXPORT int function(R comm, const char *name, R mode, R info, void *file);      \
	int function(R comm, const char *name, R mode, R info, void *file)              \
	{                                                                               \
		NEXT(function, (R, const char *, R, R, void *));                        \
		int outer = inside_call;                                                \
		inside_call = CALL_FILE_OPEN;                                           \
		int rc = next(comm, name, mode, info, file);                            \
		inside_call = outer;                                                    \
		if (rc == 0 && outer == CALL_NONE)                                      \
			lifecycle_made(BIND_FILE, file,                                 \
				       &(struct making){ .by = "File_open", .name = name, .mode = (int)mode, .communicator = &comm }); \
		return rc;                                                              \
	}

OPENS(MPI_File_open)
OPENS(PMPI_File_open)

#define CLOSES(function)                                                                \
	EXPORT int function(void *file);                                                \
	int function(void *file)                                                        \
	{                                                                               \
		NEXT(function, (void *));                                               \
		int outer = inside_call;                                                \
		lifecycle_freeing(BIND_FILE, file, outer == CALL_FILE_CLOSE);           \
		inside_call = CALL_FILE_CLOSE;                                          \
		int rc = next(file);                                                    \
		inside_call = outer;                                                    \
		return rc;                                                              \
	}

CLOSES(MPI_File_close)
CLOSES(PMPI_File_close)

/* ---- the other ends, names, changes ---- */

#define ENDS(function, name, kind)                                                      \
	EXPORT int function(void *object);                                              \
	int function(void *object)                                                      \
	{                                                                               \
		NEXT(function, (void *));                                               \
		int outer = inside_call;                                                \
		lifecycle_freeing(BIND_##kind, object, outer == CALL_##name);           \
		inside_call = CALL_##name;                                              \
		int rc = next(object);                                                  \
		inside_call = outer;                                                    \
		return rc;                                                              \
	}

#define ENDS_BOTH(name, kind)                                                           \
	ENDS(MPI_##name, name, kind)                                                    \
	ENDS(PMPI_##name, name, kind)
FREES(ENDS_BOTH)

#define TELLS(function, n, tell)                                                       \
	EXPORT int function(PARAMETERS_##n);                                            \
	int function(PARAMETERS_##n)                                                    \
	{                                                                               \
		NEXT(function, (PARAMETERS_##n));                                       \
		int rc = next(ARGUMENTS_##n);                                           \
		if (rc == 0)                                                            \
			tell;                                                           \
		return rc;                                                              \
	}

#define NAMES_BOTH(name, kind, n)                                                       \
	TELLS(MPI_##name, n, lifecycle_named(BIND_##kind, a1))                          \
	TELLS(PMPI_##name, n, lifecycle_named(BIND_##kind, a1))
NAMES(NAMES_BOTH)

#define KEYS_BOTH(name, n)                                                              \
	TELLS(MPI_##name, n, lifecycle_key_changed(a1, (const char *)a2))               \
	TELLS(PMPI_##name, n, lifecycle_key_changed(a1, (const char *)a2))
KEYS(KEYS_BOTH)
