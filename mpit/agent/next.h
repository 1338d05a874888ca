/*
 * next.h - finds the definition of a function that comes after this library's own. In both libraries, the agent and
 * the call profile's, each with a copy of its own.
 *
 * Program's threads only, in an interposed function. dlsym and dlopen take the dynamic linker's lock; each is called
 * once for each function, at its first use.
 */
#ifndef MPIT_NEXT_H
#define MPIT_NEXT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))
#define CALLER __builtin_return_address(0)

/* What a function that the library doesn't have answers: MPI_ERR_OTHER or an unknown class, never success. */
#define NOT_THERE 16

/*
 * `next`, of that type: the next definition of the function that this stands in, looked up at its first call. Two
 * threads that do it at once find the same.
 *
 * Arguments pass through unchanged as registers: intptr_t holds an int handle (MPICH) and a pointer handle (Open MPI)
 * alike; the upper half of an int argument may be anything and stays so. This holds on every ABI where an argument
 * takes a register or an 8-byte stack slot: x86-64, AArch64, POWER, RISC-V on Linux.
 */
#define NEXT(type, function)                                                                            \
	static _Atomic(void *) known;                                                                   \
	__typeof__(type) *next;                                                                         \
	*(void **)&next = atomic_load_explicit(&known, memory_order_relaxed);                           \
	if (__builtin_expect(next == NULL, 0)) {                                                        \
		*(void **)&next = next_definition(&known, #function, CALLER);                           \
		if (next == NULL)                                                                       \
			return NOT_THERE;                                                               \
	}

/* The same as locate_next, kept in *known. */
void *next_definition(_Atomic(void *) *known, const char *function, const void *caller);

/*
 * The definition after ours; NULL: none. caller: an address in the code that called us, for programs whose MPI is not
 * in the global scope.
 */
void *locate_next(const char *function, const void *caller);

/* A handle of the library that an address lies in; NULL: none. Never closed: the library stays as long as the
 * process. */
void *library_at(const void *address);

#endif
