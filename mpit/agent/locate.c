/* locate.c - finds the MPI library in the process, without linking to any. */
#define _GNU_SOURCE
#include "locate.h"

#include "agent.h"
#include "next.h"

#include <dlfcn.h>
#include <string.h>

/* Longest version string that any MPI may write: MPI_MAX_LIBRARY_VERSION_STRING is 256 (Open MPI) to 8192 (MPICH). */
#define VERSION_BYTES 8192

/* libmpi_abi.so is MPICH by its version string, and has other handles and constants. */
static bool standard_abi(const void *address)
{
	const char *base;
	Dl_info info;

	if (dladdr(address, &info) == 0 || info.dli_fname == NULL)
		return false;
	base = strrchr(info.dli_fname, '/');
	return strstr(base == NULL ? info.dli_fname : base, "_abi") != NULL;
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
	int length;

	library = init == NULL ? NULL : library_at(init);
	if (library == NULL) {
		agent_log("no MPI library found; the program runs on unobserved");
		return NULL;
	}
	if (standard_abi(init)) {
		agent_log("a library of MPI-5's standard ABI, which this build doesn't know; the program runs on unobserved");
		return NULL;
	}
	*(void **)&get_version = dlsym(library, "PMPI_Get_library_version");
	if (get_version == NULL || get_version(text, &length) != 0) {
		agent_log("the MPI library has no MPI_Get_library_version; the program runs on unobserved");
		return NULL;
	}
	copy_string(version, size, text);
	version[strcspn(version, "\n")] = '\0';
	for (const struct abi *const *abi = abi_list; *abi != NULL; abi++)
		if ((*abi)->speaks(version)) {
			mpi_library = library;
			if ((*abi)->resolve(library))
				return *abi;
			agent_log("%s lacks functions; the program runs on unobserved", version);
			return NULL;
		}
	agent_log("no ABI of this build fits \"%s\"; the program runs on unobserved", version);
	return NULL;
}
