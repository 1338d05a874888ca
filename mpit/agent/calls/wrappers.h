/*
 * wrappers.h - what a generated wrapper stands in. Only wrappers_*.c and types.c include it.
 */
#ifndef MPIT_CALLS_WRAPPERS_H
#define MPIT_CALLS_WRAPPERS_H

#include "../next.h"

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
#if defined __x86_64__
#define FRAME __builtin_dwarf_cfa()
#else
/* The return address is in a register, which is left where call_from finds it: another argument would cost more. */
#define FRAME (calls_thread.from = (uintptr_t)__builtin_return_address(0), __builtin_dwarf_cfa())
#endif

#endif
