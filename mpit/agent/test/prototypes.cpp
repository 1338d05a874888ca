/*
 * prototypes.cpp - compares what is interposed, in tables and written out in interpose*.c, with a library's own mpi.h.
 * Compiled, never run.
 *
 * A wrong number of arguments or a wrong place of the object would corrupt a program, and a misspelt name would be
 * silent: each is an error of the compiler here. C++, because templates can look into a function's type.
 */
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#endif

#include "../byhandle/interposed.h"
#include "../interposed.h"

#include <cstddef>
#include <tuple>
#include <type_traits>

/* What an agent that passes arguments as registers may do with one: it takes one integer register. */
template <typename T>
constexpr bool in_a_register = (std::is_integral<T>::value || std::is_pointer<T>::value || std::is_enum<T>::value) &&
	sizeof(T) <= 8;

template <typename Function> struct prototype;

template <typename Result, typename... Arguments> struct prototype<Result(Arguments...)> {
	using tuple = std::tuple<Arguments...>;
	static constexpr std::size_t count = sizeof...(Arguments);
	static constexpr bool registers = std::is_same<Result, int>::value && (in_a_register<Arguments> && ...);
	template <std::size_t position> using at = typename std::tuple_element<position - 1, tuple>::type;
};

template <typename Function, std::size_t n, std::size_t object, std::size_t on, typename Handle> constexpr bool makes()
{
	using p = prototype<Function>;
	static_assert(p::count == n, "another number of arguments");
	static_assert(p::registers, "an argument that is no integer register, or another result");
	static_assert(std::is_same<typename p::template at<object>, Handle *>::value, "the object stands elsewhere");
	if constexpr (on != 0)
		static_assert(std::is_same<typename p::template at<on>, MPI_Comm>::value, "the communicator stands elsewhere");
	return true;
}

#define MAKES(handle, function, n, object, on)                                                  \
	static_assert(makes<decltype(function), n, object, on, handle>(), #function);
#define BOTH(handle, name, n, object, on)                                                       \
	MAKES(handle, MPI_##name, n, object, on)                                                \
	MAKES(handle, PMPI_##name, n, object, on)

#define COMMUNICATOR(name, n, object, on) BOTH(MPI_Comm, name, n, object, on)
#define WINDOW(name, n, object, on) BOTH(MPI_Win, name, n, object, on)
#define GROUP(name, n, object, on) BOTH(MPI_Group, name, n, object, on)
#define ERRHANDLER(name, n, object, on) BOTH(MPI_Errhandler, name, n, object, on)
#define OPERATION(name, n, object, on) BOTH(MPI_Op, name, n, object, on)
#define INFO(name, n, object, on) BOTH(MPI_Info, name, n, object, on)
#define REQUEST(name, n, object, on) BOTH(MPI_Request, name, n, object, on)
#define DATATYPE(name, n, object, on) BOTH(MPI_Datatype, name, n, object, on)

COMMUNICATORS(COMMUNICATOR)
WINDOWS(WINDOW)
GROUPS(GROUP)
ERRHANDLERS(ERRHANDLER)
OPERATIONS(OPERATION)
INFOS(INFO)
REQUESTS(REQUEST)
DATATYPES(DATATYPE)

/* In Open MPI's mpi.h the removed ones are an error, the standard's has none. */
#if !defined(OPEN_MPI) && !defined(MPI_ABI_VERSION)
ERRHANDLERS_1(ERRHANDLER)
#endif

#if MPI_VERSION >= 4
COMMUNICATORS_4(COMMUNICATOR)
WINDOWS_4(WINDOW)
GROUPS_4(GROUP)
ERRHANDLERS_4(ERRHANDLER)
OPERATIONS_4(OPERATION)
INFOS_4(INFO)
PERSISTENT_BARRIER(REQUEST)
PERSISTENT_COLLECTIVES(REQUEST)
REQUESTS_4(REQUEST)
#define LARGE(name, n, object, on) REQUEST(name##_c, n, object, on)
REQUESTS(LARGE)
PERSISTENT_COLLECTIVES(LARGE)
BOTH(MPI_Session, Session_init, 3, 3, 0)
BOTH(MPI_Session, Session_finalize, 1, 1, 0)
#endif

#if defined(OMPI_HAVE_MPI_EXT_PCOLLREQ) && OMPI_HAVE_MPI_EXT_PCOLLREQ
#define EXTENSION(name, n, object, on)                                                          \
	MAKES(MPI_Request, MPIX_##name, n, object, on)                                          \
	MAKES(MPI_Request, PMPIX_##name, n, object, on)
PERSISTENT_BARRIER(EXTENSION)
PERSISTENT_COLLECTIVES(EXTENSION)
#endif

/* ---- those that free, name and change: the object comes first ---- */

using HANDLE_COMM = MPI_Comm;
using HANDLE_WIN = MPI_Win;
using HANDLE_DATATYPE = MPI_Datatype;
using HANDLE_GROUP = MPI_Group;
using HANDLE_ERRHANDLER = MPI_Errhandler;
using HANDLE_OP = MPI_Op;
using HANDLE_REQUEST = MPI_Request;
using HANDLE_INFO = MPI_Info;
using HANDLE_FILE = MPI_File;

#define FREED(name, kind) BOTH(HANDLE_##kind, name, 1, 1, 0)
FREES(FREED)

template <typename Function, std::size_t n, typename Handle> constexpr bool takes()
{
	using p = prototype<Function>;
	static_assert(p::count == n, "another number of arguments");
	static_assert(p::registers, "an argument that is no integer register, or another result");
	static_assert(std::is_same<typename p::template at<1>, Handle>::value, "the object stands elsewhere");
	return true;
}

#define TAKEN(name, kind, n)                                                                    \
	static_assert(takes<decltype(MPI_##name), n, HANDLE_##kind>(), #name);                  \
	static_assert(takes<decltype(PMPI_##name), n, HANDLE_##kind>(), #name);
NAMES(TAKEN)
#define KEY_OF(name, n)                                                                         \
	TAKEN(name, INFO, n)                                                                    \
	static_assert(std::is_same<prototype<decltype(MPI_##name)>::at<2>, const char *>::value, #name ": no key behind it");
KEYS(KEY_OF)

/* ---- those written out ---- */

#define SAME(function, ...) static_assert(std::is_same<decltype(function), int(__VA_ARGS__)>::value, #function);
#define SAME_BOTH(name, ...) SAME(MPI_##name, __VA_ARGS__) SAME(PMPI_##name, __VA_ARGS__)
SAME_BOTH(Init, int *, char ***)
SAME_BOTH(Init_thread, int *, char ***, int, int *)
SAME_BOTH(Abort, MPI_Comm, int)
SAME_BOTH(T_init_thread, int, int *)
SAME_BOTH(File_open, MPI_Comm, const char *, int, MPI_Info, MPI_File *)
#if MPI_VERSION >= 4
SAME_BOTH(Session_init, MPI_Info, MPI_Errhandler, MPI_Session *)
#endif
