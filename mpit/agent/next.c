/* next.c - finds the definition of a function that comes after this library's own. */
#define _GNU_SOURCE
#include "next.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* More than this many libraries behind ours are not looked at. */
#define MOST_LIBRARIES 1024

void *library_at(const void *address)
{
	struct link_map *map = NULL;
	Dl_info info;

	if (dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) == 0 || map == NULL)
		return NULL;
	/* The program itself has an empty name. */
	return dlopen(map->l_name == NULL || *map->l_name == '\0' ? NULL : map->l_name, RTLD_LAZY | RTLD_NOLOAD);
}

/*
 * One library of those behind ours, in the dynamic linker's order: the one with a number, or the one in which an address is. No list of them is
 * kept, for this may run on a thread's stack of 16 KiB, in the middle of whose first call of a function.
 */
struct behind {
	const void *wanted; /* an address in it; NULL: the one that has the number */
	int number;         /* from 0; counted down */
	bool reached;       /* ours */
	uintptr_t code;     /* where its code begins; 0: there is no such library */
};

static int look(struct dl_phdr_info *info, size_t size, void *context)
{
	struct behind *behind = context;
	uintptr_t self = (uintptr_t)look, wanted = (uintptr_t)behind->wanted, code = 0;
	bool ours = false, has_it = false;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type != PT_LOAD)
			continue;
		if (code == 0 && (segment->p_flags & PF_X) != 0)
			code = at;
		ours |= at <= self && self < at + segment->p_memsz;
		has_it |= at <= wanted && wanted < at + segment->p_memsz;
	}
	if (ours)
		behind->reached = true;
	else if (behind->reached && code != 0 && (behind->wanted != NULL ? has_it : behind->number-- == 0))
		behind->code = code;
	return behind->code != 0;
}

static uintptr_t code_behind(const void *wanted, int number)
{
	struct behind behind = { .wanted = wanted, .number = number };

	dl_iterate_phdr(look, &behind);
	return behind.code;
}

/* What a library, with those that it needs, knows under the name, unless that stands in front of us: we would call each other for ever. */
static void *found_in(void *library, const char *function)
{
	void *found = library == NULL ? NULL : dlsym(library, function);

	return found != NULL && code_behind(found, 0) != 0 ? found : NULL;
}

/* mpi4py and plug-ins open their MPI with RTLD_LOCAL: only who called us can see it. */
static __attribute__((noinline)) void *locate_hidden(const char *function, const void *caller)
{
	void *found = found_in(library_at(caller), function);
	uintptr_t code;

	/* Who called us is another library that was preloaded, and can't see it either. */
	for (int i = 0; found == NULL && i < MOST_LIBRARIES && (code = code_behind(NULL, i)) != 0; i++)
		found = found_in(library_at((const void *)code), function);
	return found;
}

void *locate_next(const char *function, const void *caller)
{
	void *found = dlsym(RTLD_NEXT, function);

	return found != NULL ? found : locate_hidden(function, caller);
}
