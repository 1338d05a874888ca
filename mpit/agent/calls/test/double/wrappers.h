/* wrappers.h - as the real one, for as long as that isn't there. */
#ifndef MPIT_CALLS_WRAPPERS_H
#define MPIT_CALLS_WRAPPERS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))
#define MEASURES inline __attribute__((always_inline))
#define FRAME __builtin_frame_address(0)
#define NOT_THERE 16

void *next_definition(_Atomic(void *) *known, const char *function, const void *caller);

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
