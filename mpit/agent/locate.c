/* locate.c - finds the MPI library in the process, without linking to any. */
#define _GNU_SOURCE
#include "locate.h"

#include "agent.h"
#include "next.h"

#include <dlfcn.h>
#include <string.h>

/* Longest version string that any MPI may write: MPI_MAX_LIBRARY_VERSION_STRING is 256 (Open MPI) to 8192 (MPICH). */
#define VERSION_BYTES 8192

/*
 * The version of the standard's own ABI that a library has; 0: none, but its family's. MPICH and Open MPI build one
 * library of each kind from the same source, with the same version string.
 */
static int standard_abi(void *library)
{
	int (*get_version)(int *, int *), major = -1, minor = -1;

	*(void **)&get_version = dlsym(library, "PMPI_Abi_get_version");
	return get_version == NULL || get_version(&major, &minor) != 0 || major < 0 ? 0 : major;
}

/*
 * A library of that name which doesn't tell its ABI's version has one from before the standard: other constants
 * (MPICH 4.2 and 4.3).
 */
static bool named_standard(const void *address)
{
	const char *base;
	Dl_info info;

	if (dladdr(address, &info) == 0 || info.dli_fname == NULL)
		return false;
	base = strrchr(info.dli_fname, '/');
	return strstr(base == NULL ? info.dli_fname : base, "mpi_abi") != NULL;
}

/* NULL: none that we know. init: an address in the library. */
static const struct abi *abi_of(void *library, const void *init, const char *version)
{
	int standard = standard_abi(library);

	if (standard != 0 || named_standard(init))
		return standard == 1 ? &abi_standard : NULL;
	return abi_openmpi.speaks(version) ? &abi_openmpi : abi_mpich.speaks(version) ? &abi_mpich : NULL;
}

static void *mpi_library; /* written in locate_mpi, before the agent runs */

void *locate_function(const char *function)
{
	return dlsym(mpi_library, function);
}

source_function *locate_source(void)
{
	source_function *found;

	*(void **)&found = dlsym(RTLD_DEFAULT, SOURCE_SYMBOL);
	return found;
}

const struct abi *locate_mpi(const void *caller, char *version, size_t size)
{
	static char text[VERSION_BYTES]; /* program's thread, in MPI_Init, once */
	int (*get_version)(char *, int *);
	void *init = locate_next("PMPI_Init", caller), *library;
	const struct abi *abi;
	int length;

	library = init == NULL ? NULL : library_at(init);
	if (library == NULL) {
		agent_log("no MPI library found; the program runs on unobserved");
		return NULL;
	}
	*(void **)&get_version = dlsym(library, "PMPI_Get_library_version");
	if (get_version == NULL || get_version(text, &length) != 0) {
		agent_log("the MPI library has no MPI_Get_library_version; the program runs on unobserved");
		return NULL;
	}
	copy_string(version, size, text);
	version[strcspn(version, "\n")] = '\0';
	abi = abi_of(library, init, version);
	if (abi == NULL) {
		agent_log("no ABI that the agent knows fits \"%s\"; the program runs on unobserved", version);
		return NULL;
	}
	mpi_library = library;
	if (abi->resolve(library))
		return abi;
	agent_log("%s lacks functions; the program runs on unobserved", version);
	return NULL;
}
