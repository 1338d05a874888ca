/*
 * openmpi.h - what the agent needs to know of Open MPI's binary interface: the same in 4.0, 4.1, 5.0 and 6.0, but for
 * what is marked.
 *
 * In place of its mpi.h, which the tests compare it with where there is one (test/descriptions). Predefined handles
 * are addresses of data symbols.
 */
#ifndef MPIT_ABI_OPENMPI_H
#define MPIT_ABI_OPENMPI_H

#include "types.h"

#include <stddef.h>
#include <stdint.h>

typedef struct openmpi_comm *MPI_Comm;
typedef struct openmpi_datatype *MPI_Datatype;
typedef struct openmpi_group *MPI_Group;
typedef struct openmpi_info *MPI_Info;
typedef struct openmpi_op *MPI_Op;
typedef struct openmpi_request *MPI_Request;
typedef struct openmpi_session *MPI_Session;
typedef struct openmpi_win *MPI_Win;

typedef struct {
	int MPI_SOURCE, MPI_TAG, MPI_ERROR, _cancelled;
	size_t _ucount; /* bytes */
} MPI_Status;

#define MPI_SUCCESS                 0
#define MPI_ERR_OTHER               16
#define MPI_T_ERR_MEMORY            54
#define MPI_T_ERR_NOT_INITIALIZED   55
#define MPI_T_ERR_CANNOT_INIT       56
#define MPI_T_ERR_INVALID_INDEX     57
#define MPI_T_ERR_INVALID_ITEM      58
#define MPI_T_ERR_INVALID_HANDLE    59
#define MPI_T_ERR_OUT_OF_HANDLES    60
#define MPI_T_ERR_OUT_OF_SESSIONS   61
#define MPI_T_ERR_INVALID_SESSION   62
#define MPI_T_ERR_CVAR_SET_NOT_NOW  63
#define MPI_T_ERR_CVAR_SET_NEVER    64
#define MPI_T_ERR_PVAR_NO_STARTSTOP 65
#define MPI_T_ERR_PVAR_NO_WRITE     66
#define MPI_T_ERR_PVAR_NO_ATOMIC    67
#define MPI_T_ERR_INVALID           72
#define MPI_T_ERR_INVALID_NAME      73
#define MPI_T_ERR_NOT_SUPPORTED     82 /* later ones */
#define MPI_T_ERR_NOT_ACCESSIBLE    81 /* later ones */

#define MPI_THREAD_SINGLE     0
#define MPI_THREAD_FUNNELED   1
#define MPI_THREAD_SERIALIZED 2
#define MPI_THREAD_MULTIPLE   3

#define MPI_T_VERBOSITY_USER_BASIC    0
#define MPI_T_VERBOSITY_USER_DETAIL   1
#define MPI_T_VERBOSITY_USER_ALL      2
#define MPI_T_VERBOSITY_TUNER_BASIC   3
#define MPI_T_VERBOSITY_TUNER_DETAIL  4
#define MPI_T_VERBOSITY_TUNER_ALL     5
#define MPI_T_VERBOSITY_MPIDEV_BASIC  6
#define MPI_T_VERBOSITY_MPIDEV_DETAIL 7
#define MPI_T_VERBOSITY_MPIDEV_ALL    8

#define MPI_T_BIND_NO_OBJECT     0
#define MPI_T_BIND_MPI_SESSION   11 /* later ones */
#define MPI_T_PVAR_CLASS_STATE   0
#define MPI_T_PVAR_CLASS_GENERIC 9
#define MPI_T_SCOPE_CONSTANT     0
#define MPI_T_SCOPE_ALL_EQ       6
#define MPI_T_ENUM_NULL          ((MPI_T_enum)0)

#define MPI_UNDEFINED       (-32766)
#define MPI_KEYVAL_INVALID  (-1)
#define MPI_PROC_NULL       (-2)
#define MPI_ROOT            (-4)
#define MPI_IN_PLACE        ((void *)1)
#define MPI_STATUS_IGNORE   ((MPI_Status *)0)

#define MPI_CART       1
#define MPI_GRAPH      2
#define MPI_DIST_GRAPH 3

#define MPI_WIN_BASE            7
#define MPI_WIN_SIZE            8
#define MPI_WIN_DISP_UNIT       9
#define MPI_WIN_CREATE_FLAVOR   10
#define MPI_WIN_MODEL           11
#define MPI_WIN_FLAVOR_CREATE   1
#define MPI_WIN_FLAVOR_ALLOCATE 2
#define MPI_WIN_FLAVOR_DYNAMIC  3
#define MPI_WIN_FLAVOR_SHARED   4
#define MPI_WIN_SEPARATE        1
#define MPI_WIN_UNIFIED         0

#define MPI_MODE_RDONLY          2
#define MPI_MODE_WRONLY          4
#define MPI_MODE_RDWR            8
#define MPI_MODE_CREATE          1
#define MPI_MODE_EXCL            64
#define MPI_MODE_DELETE_ON_CLOSE 16
#define MPI_MODE_UNIQUE_OPEN     32
#define MPI_MODE_APPEND          128
#define MPI_MODE_SEQUENTIAL      256

#define MPI_COMBINER_NAMED          0
#define MPI_COMBINER_DUP            1
#define MPI_COMBINER_CONTIGUOUS     2
#define MPI_COMBINER_VECTOR         3
#define MPI_COMBINER_HVECTOR        5
#define MPI_COMBINER_INDEXED        6
#define MPI_COMBINER_HINDEXED       8
#define MPI_COMBINER_INDEXED_BLOCK  9
#define MPI_COMBINER_HINDEXED_BLOCK 18
#define MPI_COMBINER_STRUCT         11
#define MPI_COMBINER_SUBARRAY       12
#define MPI_COMBINER_DARRAY         13
#define MPI_COMBINER_F90_REAL       14
#define MPI_COMBINER_F90_COMPLEX    15
#define MPI_COMBINER_F90_INTEGER    16
#define MPI_COMBINER_RESIZED        17

#endif
