/*
 * interpose.h - what the functions that stand in front of MPI's have in common. Only the interpose*.c include it, here
 * and in byhandle/.
 */
#ifndef MPIT_INTERPOSE_H
#define MPIT_INTERPOSE_H

#include "abi.h"
#include "next.h"

/*
 * The function of ours that the program has called in this thread and that hasn't returned, by the address of its
 * name; NULL: none. What the library makes in there for itself (a file's own communicator) is none of the program's
 * objects, and what comes by again under the same name comes from a tool that stands between us and the library. Saved
 * and restored, never counted: a call may end by an exception or longjmp. initial-exec: no call into the dynamic
 * linker.
 */
extern __thread const char *inside_call __attribute__((tls_model("initial-exec"), visibility("hidden")));

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

/*
 * A constructor of n arguments that puts the object's handle at the address in argument `object`; argument `on` is the
 * communicator that it is made on, 0: none. made: what is told (tracking.h). Under MPI_ and PMPI_ it has one name.
 */
#define MAKES(kind, function, name, n, object, on, made)                                \
	EXPORT int function(PARAMETERS_##n);                                            \
	int function(PARAMETERS_##n)                                                    \
	{                                                                               \
		NEXT(int (PARAMETERS_##n), function);                                   \
		const char *outer = inside_call;                                        \
		if (outer == name##_name)                                               \
			return next(ARGUMENTS_##n);                                     \
		inside_call = name##_name;                                              \
		int rc = next(ARGUMENTS_##n);                                           \
		inside_call = outer;                                                    \
		if (rc == 0)                                                            \
			made(kind, (const void *)a##object,                             \
			     &(struct making){ .by = name##_name, .communicator = COMMUNICATOR_##on }, outer != NULL); \
		return rc;                                                              \
	}

#define MAKES_BOTH(kind, name, n, object, on, made)                                     \
	static const char name##_name[] = #name;                                        \
	MAKES(kind, MPI_##name, name, n, object, on, made)                              \
	MAKES(kind, PMPI_##name, name, n, object, on, made)

/* A function that changes an object in a way that is told of when it has succeeded. */
#define TELLS(function, n, tell)                                                        \
	EXPORT int function(PARAMETERS_##n);                                            \
	int function(PARAMETERS_##n)                                                    \
	{                                                                               \
		NEXT(int (PARAMETERS_##n), function);                                   \
		int rc = next(ARGUMENTS_##n);                                           \
		if (rc == 0)                                                            \
			tell;                                                           \
		return rc;                                                              \
	}

#endif
