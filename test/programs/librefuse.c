/*
 * A library to be preloaded that refuses the agent what it needs of the process:
 *   REFUSE_THREAD=1    its thread can't be made
 *   REFUSE_MEMORY=N    none of its allocations succeeds from the Nth on, counted from 0
 *   REFUSE_EVERY=N     every Nth of its allocations fails
 * Who asks is seen from the return address. Everybody else is served. REFUSE_REPORT=1 says on stderr at the end how
 * much was refused.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);

static uintptr_t first, last; /* where the agent lies; written before main */
static long refuse_from = -1, refuse_every, refuse_thread, report;
static _Atomic long asked, refused;

static int look(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size, (void)unused;
    if (strstr(info->dlpi_name, "libmpit-agent") == NULL)
        return 0;
    first = UINTPTR_MAX;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD) {
            const uintptr_t from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr, to = from + info->dlpi_phdr[i].p_memsz;
            first = from < first ? from : first;
            last = to > last ? to : last;
        }
    return 1;
}

static long number(const char *name, long otherwise)
{
    const char *text = getenv(name);

    return text == NULL ? otherwise : strtol(text, NULL, 10);
}

static __attribute__((constructor)) void begin(void)
{
    refuse_from = number("REFUSE_MEMORY", -1);
    refuse_every = number("REFUSE_EVERY", 0);
    refuse_thread = number("REFUSE_THREAD", 0);
    report = number("REFUSE_REPORT", 0);
    dl_iterate_phdr(look, NULL);
}

static __attribute__((destructor)) void end(void)
{
    if (report)
        fprintf(stderr, "refuse: %ld\n", atomic_load(&refused));
}

static int agents(const void *caller) { return (uintptr_t)caller >= first && (uintptr_t)caller < last; }

static int no_memory(const void *caller)
{
    if (!agents(caller))
        return 0;
    const long n = atomic_fetch_add(&asked, 1);
    if ((refuse_from < 0 || n < refuse_from) && (refuse_every <= 0 || n % refuse_every != 0))
        return 0;
    atomic_fetch_add(&refused, 1);
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t n) { return no_memory(__builtin_return_address(0)) ? NULL : __libc_malloc(n); }
void *calloc(size_t n, size_t of) { return no_memory(__builtin_return_address(0)) ? NULL : __libc_calloc(n, of); }
void *realloc(void *p, size_t n) { return no_memory(__builtin_return_address(0)) ? NULL : __libc_realloc(p, n); }

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
    static int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

    if (refuse_thread && agents(__builtin_return_address(0))) {
        atomic_fetch_add(&refused, 1);
        return EAGAIN;
    }
    if (next == NULL)
        *(void **)&next = dlsym(RTLD_NEXT, "pthread_create");
    return next(thread, attributes, run, argument);
}
