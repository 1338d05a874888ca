/* openmpi.c - what must be kept from Open MPI, and what it must be asked, so that it doesn't crash. */
#define _GNU_SOURCE
#include "openmpi.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/*
 * Open MPI's own function that tells where the value of a control variable lies; NULL: it has none. Written in
 * openmpi_find.
 */
static int (*where_is)(int, const void *, void *, const char **);

/* How far from begin_frame a variable that MPI_Init had on its stack may lie. */
#define OF_A_STACK ((uintptr_t)1 << 20)
static uintptr_t begin_frame;           /* of the program's thread in MPI_Init, written in openmpi_find */

/*
 * A C program may hold these objects itself (copy relocations), and then its copy is the one that
 * the library uses too: the global scope comes before the library.
 */
void *openmpi_symbol(void *library, const char *name)
{
	void *address = dlsym(RTLD_DEFAULT, name);

	return address != NULL ? address : dlsym(library, name);
}

void openmpi_find(void *library)
{
	*(void **)&where_is = openmpi_symbol(library, "mca_base_var_get_value");
	begin_frame = (uintptr_t)__builtin_frame_address(0);
}

/*
 * MPI_T keeps what it finds: all components, those that MPI_Init would not load, and those that it would close and
 * unload again because it doesn't select them. With them stays what they have set up, as a fork handler that aborts
 * (EFA's, of libfabric 1.11). Initialised later it finds what MPI_Init has left, and loads the others of the frameworks
 * that are closed, without opening any. The level that it is asked for becomes MPI_Query_thread's answer, and nothing
 * else: MPI_T's own lock is taken at every level.
 *
 * 6.0 doesn't overwrite the program's level, and grants a later MPI_T no more than MPI_THREAD_SERIALIZED.
 */
bool openmpi_tools_after_init(const char *library_version)
{
	static const char before[] = "Open MPI v";

	return strncmp(library_version, before, sizeof before - 1) == 0 &&
	       strtol(library_version + sizeof before - 1, NULL, 10) < 6;
}

/* A copy's name is the copied one's behind "Dup ", whatever made it a copy. */
bool openmpi_own_name(const char *name)
{
	return strncmp(name, "Dup ", 4) == 0;
}

void *openmpi_bound(void *handle, struct openmpi_bound *room)
{
	memset(room, 0, sizeof *room);
	room->handle = handle;
	return room;
}

/*
 * Whether memory can be read, found out by the kernel: its copy fails where a load would crash. Without a descriptor:
 * where the table is the program's, it may close ours and get the number for a file of its own between any two calls.
 * The agent's thread.
 */
static bool memory_readable(const void *address, size_t length)
{
	unsigned char bytes[sizeof(void *)];
	struct iovec to = { bytes, length }, from = { (void *)(uintptr_t)address, length };

	if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)length)
		return true;
	if (errno == EFAULT)
		return false;
	/*
	 * Containers' filters may refuse that, but hardly this one, which copies eight bytes, aligned and so of one
	 * page, before it finds that it is to do nothing with them.
	 */
	return syscall(SYS_rt_sigprocmask, -1, (uintptr_t)address & ~(uintptr_t)7, NULL, 8) == 0 || errno == EINVAL;
}

/*
 * A component that isn't used is unloaded, and a library shared by several (UCX's, in Debian's 4.1.4) leaves its
 * control variables behind, whose values then lie in no memory at all. Open MPI itself can tell where a value lies
 * without touching it. MPI_T's index is the one of its own table. Where it can't be asked, no value is read.
 *
 * Open MPI 5 and 6 register some (mpi_ft_verbose, coll_ftagree_agreement) whose value was a local variable of a
 * function that has returned long since: to write it would be to change whatever MPI_Init's caller has there now.
 */
bool openmpi_cvar_readable(int index, bool string)
{
	const void *storage = NULL;
	const char *value;

	if (where_is == NULL || where_is(index, &storage, NULL, NULL) != 0 || storage == NULL)
		return false;
	if ((uintptr_t)storage - begin_frame + OF_A_STACK < 2 * OF_A_STACK)
		return false;
	if (!string)
		return memory_readable(storage, 1);
	if (!memory_readable(storage, sizeof value))
		return false;
	memcpy(&value, storage, sizeof value);
	return value == NULL || memory_readable(value, 1);
}

/*
 * What it writes it also copies into the handle's memory of the last value, which only these have
 * (mca_base_pvar_handle_write_value): with another it would write to the address zero.
 */
bool openmpi_pvar_writable(const struct pvar_description *is)
{
	return !is->continuous || (is->mpi_class >= CLASS_HIGHWATERMARK && is->mpi_class <= CLASS_TIMER);
}
