/*
 * wrappers.h - how a generated wrapper finds the function that it stands in front of. Only wrappers_*.c include it.
 *
 * Arguments pass through unchanged as registers: intptr_t holds an int handle (MPICH) and a pointer handle (Open MPI)
 * alike; the upper half of an int argument may be anything and stays so. This holds on every ABI where an argument
 * takes a register or an 8-byte stack slot: x86-64, AArch64, POWER, RISC-V on Linux.
 */
#ifndef MPIT_CALLS_WRAPPERS_H
#define MPIT_CALLS_WRAPPERS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

/*
 * The function around a call, which the two that have the MPI_ and the PMPI_ name call. Not a part of both: that
 * would be twice the code, and the time to compile it, for a nanosecond in a call.
 */
#define MEASURES __attribute__((noinline))

/*
 * Where the frame begins of the function that this stands in: the stack pointer before it was called. The same
 * whatever function is called from there, and right also when the frame is gone, which gives way to that of the
 * function around the call where compilers can let it.
 */
#define FRAME __builtin_dwarf_cfa()

/* What a function that the library doesn't have answers: MPI_ERR_OTHER or an unknown class, never success. */
#define NOT_THERE 16

/* Looks the definition after ours up and keeps it in *known; NULL: there is none. Two threads that do it at once find
 * the same. */
void *next_definition(_Atomic(void *) *known, const char *function, const void *caller);

/* `next`, of that type: the next definition of the function that this stands in, looked up at its first call. */
#define NEXT(type, function)                                                                            \
	static _Atomic(void *) known;                                                                   \
	type *next;                                                                                     \
	*(void **)&next = atomic_load_explicit(&known, memory_order_relaxed);                           \
	if (__builtin_expect(next == NULL, 0)) {                                                        \
		*(void **)&next = next_definition(&known, #function, __builtin_return_address(0));      \
		if (next == NULL)                                                                       \
			return NOT_THERE;                                                               \
	}

#endif
