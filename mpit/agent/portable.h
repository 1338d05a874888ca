/*
 * portable.h - makes the two libraries load into every process: with any glibc from 2.17 on, and with musl. The
 * compiler reads it before every file (-include), so that none can forget it. test/e2e/portable_test.go looks at what
 * the libraries need.
 *
 * A library built on a new glibc would ask for the newest version of each function, and an older glibc refuses to
 * start any program that such a library is preloaded into. The functions below are the same in all versions; what has
 * changed is the library they are in.
 */
#ifndef MPIT_PORTABLE_H
#define MPIT_PORTABLE_H

/*
 * What a distribution's flags ask for: musl lacks the functions that check sizes, an older glibc those for large files
 * under another name. Not by -U on the command line, where what -Wp passes to the preprocessor comes last.
 */
#undef _FORTIFY_SOURCE
#undef _FILE_OFFSET_BITS
#undef _TIME_BITS

/* As the files say too, which may come too late: the headers below have been read by then. */
#define _GNU_SOURCE

#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#if defined __x86_64__ || defined __aarch64__

#ifdef __GLIBC__

#ifdef __x86_64__
#define FIRST_GLIBC "GLIBC_2.2.5"
#else
#define FIRST_GLIBC "GLIBC_2.17"
#endif

/* What the compiler calls `function` is `name` of that version. Without effect in a file that doesn't call it. */
#define VERSION_OF(function, name, version) __asm__(".symver " #function "," name "@" version)
#define FIRST_VERSION_OF(function) VERSION_OF(function, #function, FIRST_GLIBC)

/* 2.34: from libdl into libc. */
FIRST_VERSION_OF(dladdr);
FIRST_VERSION_OF(dlopen);
FIRST_VERSION_OF(dlsym);

/* 2.32: from libpthread into libc. */
FIRST_VERSION_OF(pthread_getattr_np);
FIRST_VERSION_OF(pthread_sigmask);

/* 2.34: the same. */
FIRST_VERSION_OF(pthread_attr_getstack);
FIRST_VERSION_OF(pthread_attr_getstacksize);
FIRST_VERSION_OF(pthread_attr_setstacksize);
FIRST_VERSION_OF(pthread_create);
FIRST_VERSION_OF(pthread_key_create);
FIRST_VERSION_OF(pthread_mutex_timedlock);
FIRST_VERSION_OF(pthread_mutex_trylock);
FIRST_VERSION_OF(pthread_setspecific);
#ifdef __x86_64__
VERSION_OF(pthread_setname_np, "pthread_setname_np", "GLIBC_2.12");
#else
FIRST_VERSION_OF(pthread_setname_np);
#endif

/* 2.38: what headers make of strtol, for the numbers in binary that C23 reads. */
VERSION_OF(__isoc23_strtol, "strtol", FIRST_GLIBC);
VERSION_OF(__isoc23_strtoul, "strtoul", FIRST_GLIBC);
VERSION_OF(__isoc23_strtoull, "strtoull", FIRST_GLIBC);

#endif

/* 2.33: a function; before that, a few lines linked into the caller around __fxstat, which musl lacks. struct stat is
 * the kernel's here. */
extern long syscall(long number, ...); /* not with all of unistd.h: a file has a function `read` */
#define fstat(fd, status) ((int)syscall(SYS_fstat, fd, status))

#endif

/* The headers of glibc 2.31 do not have it. Everywhere the same number. */
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

/*
 * glibc's pthread_atfork is a few lines linked into the caller around __register_atfork, which musl lacks; musl's is
 * a function. NULL: the library whose unloading would take the handler back; ours stay as long as the process.
 */
extern int __register_atfork(void (*before)(void), void (*parent)(void), void (*child)(void),
			     void *library) __attribute__((weak));
#pragma weak pthread_atfork
static inline int call_in_forked_child(void (*child)(void))
{
	if (__register_atfork != NULL)
		return __register_atfork(NULL, NULL, child, NULL);
	return pthread_atfork != NULL ? pthread_atfork(NULL, NULL, child) : -1;
}

/*
 * Done without: dladdr1 (not in musl; next.c asks dl_iterate_phdr), getrandom (2.25; identity.c makes the system
 * call), pthread_mutex_clocklock (2.30, not in musl; gate.c looks it up), stat and its like (2.33).
 */

#endif
