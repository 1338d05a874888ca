/*
 * caller.h - the program behind MPI's bindings: whoever has called MPI through those of Fortran or C++.
 *
 * Bindings are functions of a library that call MPI's functions in C. What they were called from stands on the stack, in
 * a place that the compiler describes in the library itself (.eh_frame). That is looked up here, frame by frame, for as
 * long as it is told from the stack pointer alone, as it is in code of bindings that is optimised. Nothing is taken for
 * granted: memory is copied by the kernel, which fails where a load would crash, because the thread may go on and the
 * library be unloaded at any time.
 */
#ifndef MPIT_CALLER_H
#define MPIT_CALLER_H

#include "mapped.h"

#include <stdbool.h>
#include <stdint.h>

enum binding {
	BINDING_NONE,   /* the program's own code, as far as it is known */
	BINDING_NATIVE, /* compiled, of Fortran or C++ */
	BINDING_PYTHON  /* mpi4py: behind it is the interpreter, whose place says nothing */
};
enum binding binding_of(const char *path);

/* A return address, and the stack pointer once it has returned there. */
struct stack_frame {
	uintptr_t from, stack;
};

/*
 * The agent's thread: the frame that a frame of code in a file returns to; offset is `from` in the file. Some twenty system
 * calls of a microsecond. False: it isn't known. Where the thread has gone on meanwhile the result is anything.
 */
bool caller_of(const struct stack_frame *of, uint64_t offset, struct stack_frame *out);

/* The agent's thread: the frame of code that a call returns to, as SITE_HERE and SITE_FRAME of source.h have it. */
uint32_t frame_of(uintptr_t from, uint64_t offset);

#endif
