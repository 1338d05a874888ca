/*
 * interpose.h - how an interposed function finds the one it stands in front of. Only the interpose*.c include it.
 *
 * Arguments pass through unchanged as registers: intptr_t holds an int handle (MPICH) and a pointer handle (Open MPI)
 * alike; the upper half of an int argument may be anything and stays so. This holds on every ABI where an argument
 * takes a register or an 8-byte stack slot: x86-64, AArch64, POWER, RISC-V on Linux.
 */
#ifndef MPIT_INTERPOSE_H
#define MPIT_INTERPOSE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default"))) extern
#define CALLER __builtin_return_address(0)

/* What a function that the library doesn't have answers: MPI_ERR_OTHER or an unknown class, never success. */
#define NOT_THERE 16

/*
 * The next definition of the function that this stands in, looked up at its first call. Two threads
 * that do it at once find the same.
 */
void *next_definition(_Atomic(void *) *known, const char *function, const void *caller);

#define NEXT(function, parameters)                                                      \
	static _Atomic(void *) known;                                                   \
	int(*next) parameters;                                                          \
	*(void **)&next = next_definition(&known, #function, CALLER);                   \
	if (next == NULL)                                                               \
		return NOT_THERE

/*
 * The function of interposed.h that the program has called in this thread and that hasn't returned; 0: none. What the
 * library makes in there for itself (a file's own communicator) is none of the program's objects, and what comes by
 * again under the same name comes from a tool that stands between us and the library. Saved and restored, never
 * counted: a call may end by an exception or longjmp. initial-exec: no call into the dynamic linker.
 */
extern __thread int inside_call __attribute__((tls_model("initial-exec"), visibility("hidden")));

enum { CALL_NONE, CALL_SESSION_INIT, CALL_SESSION_FINALIZE, CALL_FILE_OPEN, CALL_FILE_CLOSE, CALL_PCONTROL, CALL_OBJECTS /* the first of interposed.h */ };

#endif
