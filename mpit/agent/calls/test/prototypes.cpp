/*
 * prototypes.cpp - compares the functions of functions.txt with a library's own mpi.h. Compiled, never run.
 *
 * A wrong number of arguments or a wrong place of one would corrupt a program or count nonsense, and a misspelt name
 * would be silent: each is an error of the compiler here. C++, because templates can look into a function's type.
 * Where handles are ints (MPICH) they can't be told from ints: the other library's mpi.h does.
 */
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#endif

#include <cstddef>
#include <type_traits>

#if defined(OMPI_HAVE_MPI_EXT_PCOLLREQ) && OMPI_HAVE_MPI_EXT_PCOLLREQ
#define HAVE_PERSISTENT_COLLECTIVES
#endif

/* An address of T, which the function may promise not to write to. */
template <typename P, typename T>
constexpr bool points_to =
	std::is_pointer<P>::value && std::is_same<std::remove_const_t<std::remove_pointer_t<P>>, T>::value;

#define KIND(name, condition) template <typename P> struct is_##name : std::bool_constant<(condition)> {};
#define IS(type) std::is_same<P, type>::value

KIND(buffer, (points_to<P, void>))
KIND(count, IS(int))
/* MPICH 5.0's mpi.h of the standard's ABI has an int in MPI_Psend_init: nothing is counted there. */
#if defined(MPI_ABI_VERSION) && !defined(OPEN_MPI)
KIND(wide_count, IS(MPI_Count) || IS(int))
#else
KIND(wide_count, IS(MPI_Count))
#endif
KIND(counts, (points_to<P, int>))
KIND(wide_counts, (points_to<P, MPI_Count>))
KIND(displace, (points_to<P, int> || points_to<P, MPI_Aint>))
KIND(wide_displace, (points_to<P, MPI_Aint>))
KIND(datatype, IS(MPI_Datatype))
KIND(datatypes, (points_to<P, MPI_Datatype>))
KIND(peer, IS(int))
KIND(number, IS(int))
KIND(numbers, (points_to<P, int>))
KIND(unit, IS(int))
KIND(wide_unit, IS(MPI_Aint))
KIND(address, IS(MPI_Aint))
KIND(offset, IS(MPI_Offset))
KIND(pointer, std::is_pointer<P>::value)
KIND(string, (points_to<P, char>))
KIND(comm, IS(MPI_Comm))
KIND(win, IS(MPI_Win))
KIND(file, IS(MPI_File))
KIND(comm_at, IS(MPI_Comm *))
KIND(win_at, IS(MPI_Win *))
KIND(file_at, IS(MPI_File *))
KIND(group, IS(MPI_Group))
KIND(info, IS(MPI_Info))
KIND(info_at, (points_to<P, MPI_Info>))
KIND(op, IS(MPI_Op))
KIND(errhandler, IS(MPI_Errhandler))
KIND(message_at, IS(MPI_Message *))
KIND(request, IS(MPI_Request))
KIND(request_at, (points_to<P, MPI_Request>))
KIND(status_at, IS(MPI_Status *))
KIND(statuses, IS(MPI_Status *))
#if MPI_VERSION >= 4
KIND(session, IS(MPI_Session))
#endif
KIND(returns_code, IS(int))

/* What wrappers that pass arguments as registers may do with one: it takes one integer register. */
template <typename T>
constexpr bool in_a_register = (std::is_integral<T>::value || std::is_pointer<T>::value || std::is_enum<T>::value) &&
	sizeof(T) <= 8;

template <typename Function> struct prototype;

template <typename Result, typename... Arguments> struct prototype<Result(Arguments...)> {
	template <template <typename> class Returned, template <typename> class... Kinds> static constexpr bool fits()
	{
		static_assert(sizeof...(Arguments) == sizeof...(Kinds), "another number of arguments");
		if constexpr (sizeof...(Arguments) == sizeof...(Kinds)) {
			static_assert((Kinds<Arguments>::value && ...), "an argument of another kind");
			static_assert((in_a_register<Arguments> && ...), "an argument that is no integer register");
		}
		return Returned<Result>::value;
	}
};

/* BOTH(function, what it returns and the kinds of its arguments) */
#define BOTH(function, ...)                                                                             \
	static_assert(prototype<decltype(function)>::fits<__VA_ARGS__>(), #function);                   \
	static_assert(prototype<decltype(P##function)>::fits<__VA_ARGS__>(), "P" #function);

#include "prototypes.inc"

/* An array of MPI_Counts is read as one of 8-byte integers, and a status must fit where ours is put (bytes.h). */
static_assert(sizeof(MPI_Count) == 8 && sizeof(MPI_Aint) == 8, "MPI_Count, MPI_Aint");
static_assert(sizeof(MPI_Status) <= 64, "MPI_Status");
