/* next.c - finds the definition of a function that comes after this library's own. */
#define _GNU_SOURCE
#include "next.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>

/* More than this many libraries behind ours are not looked at. */
#define MOST_LIBRARIES 1024

/* Where an address lies, in which object. */
struct holder {
	uintptr_t address;
	bool found, later; /* later: than the first object, which is the program */
	const char *name;  /* NULL: the program */
};

static bool has(const struct dl_phdr_info *info, const ElfW(Phdr) *segment, uintptr_t address)
{
	uintptr_t at = info->dlpi_addr + segment->p_vaddr;

	return segment->p_type == PT_LOAD && at <= address && address < at + segment->p_memsz;
}

static int look_for_holder(struct dl_phdr_info *info, size_t size, void *context)
{
	struct holder *holder = context;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++)
		holder->found |= has(info, &info->dlpi_phdr[i], holder->address);
	if (holder->found && holder->later)
		holder->name = info->dlpi_name;
	holder->later = true;
	return holder->found;
}

void *library_at(const void *address)
{
	struct holder holder = { .address = (uintptr_t)address };

	dl_iterate_phdr(look_for_holder, &holder);
	return holder.found ? dlopen(holder.name, RTLD_LAZY | RTLD_NOLOAD) : NULL;
}

/*
 * One library of those behind ours, in the dynamic linker's order: the one with a number, or the one in which an
 * address is. No list of them is kept, for this may run on a thread's stack of 16 KiB, in the middle of whose first
 * call of a function.
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
	uintptr_t code = 0;
	bool ours = false, has_it = false;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

		if (code == 0 && segment->p_type == PT_LOAD && (segment->p_flags & PF_X) != 0)
			code = info->dlpi_addr + segment->p_vaddr;
		ours |= has(info, segment, (uintptr_t)look);
		has_it |= has(info, segment, (uintptr_t)behind->wanted);
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

/* What a library, with those that it needs, knows under the name, unless that stands in front of us: we would call
 * each other for ever. */
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

void *next_definition(_Atomic(void *) *known, const char *function, const void *caller)
{
	void *found = locate_next(function, caller);

	atomic_store_explicit(known, found, memory_order_relaxed);
	return found;
}
