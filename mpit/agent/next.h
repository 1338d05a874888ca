/*
 * next.h - finds the definition of a function that comes after this library's own. In both libraries, the agent and
 * the call profile's, each with a copy of its own.
 *
 * Program's threads only, in an interposed function. dlsym and dlopen take the dynamic linker's lock; each is called
 * once for each function, at its first use.
 */
#ifndef MPIT_NEXT_H
#define MPIT_NEXT_H

/*
 * The definition after ours; NULL: none. caller: an address in the code that called us, for programs whose MPI is not
 * in the global scope.
 */
void *locate_next(const char *function, const void *caller);

/* A handle of the library that an address lies in; NULL: none. Never closed: the library stays as long as the
 * process. */
void *library_at(const void *address);

#endif
