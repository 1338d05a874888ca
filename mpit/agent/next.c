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

/* Code of the libraries behind ours, in the dynamic linker's order. */
struct behind {
	bool reached; /* ours */
	int count;
	uintptr_t code[MOST_LIBRARIES];
};

static int note(struct dl_phdr_info *info, size_t size, void *context)
{
	struct behind *behind = context;
	uintptr_t self = (uintptr_t)note;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type != PT_LOAD || (segment->p_flags & PF_X) == 0)
			continue;
		if (at <= self && self < at + segment->p_memsz)
			behind->reached = true;
		else if (behind->reached && behind->count < MOST_LIBRARIES)
			behind->code[behind->count++] = at;
		break;
	}
	return 0;
}

static bool is_behind(const struct behind *behind, void *found)
{
	void *library = library_at(found);

	for (int i = 0; library != NULL && i < behind->count; i++)
		if (library_at((const void *)behind->code[i]) == library)
			return true;
	return false;
}

/* What a library, with those that it needs, knows under the name, unless that stands in front of us: we would call each other for ever. */
static void *found_in(void *library, const char *function, const struct behind *behind)
{
	void *found = library == NULL ? NULL : dlsym(library, function);

	return found != NULL && is_behind(behind, found) ? found : NULL;
}

/* mpi4py and plug-ins open their MPI with RTLD_LOCAL: only who called us can see it. */
static __attribute__((noinline)) void *locate_hidden(const char *function, const void *caller)
{
	struct behind behind = { .reached = false };
	void *found;

	dl_iterate_phdr(note, &behind);
	found = found_in(library_at(caller), function, &behind);
	/* Who called us is another library that was preloaded, and can't see it either. */
	for (int i = 0; found == NULL && i < behind.count; i++)
		found = found_in(library_at((const void *)behind.code[i]), function, &behind);
	return found;
}

void *locate_next(const char *function, const void *caller)
{
	void *found = dlsym(RTLD_NEXT, function);

	return found != NULL ? found : locate_hidden(function, caller);
}
