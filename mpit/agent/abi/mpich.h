/*
 * mpich.h - what the agent needs to know of the binary interface that MPICH from 3.1 to 5.0, Intel MPI, MVAPICH and
 * Cray MPICH share.
 *
 * In place of its mpi.h, which the tests compare it with where there is one (test/descriptions). Handles are integers.
 */
#ifndef MPIT_ABI_MPICH_H
#define MPIT_ABI_MPICH_H

#include "types.h"

#include <stddef.h>
#include <stdint.h>

typedef int MPI_Comm;
typedef int MPI_Datatype;
typedef int MPI_Group;
typedef int MPI_Info;
typedef int MPI_Op;
typedef int MPI_Request;
typedef int MPI_Session;
typedef int MPI_Win;

typedef struct {
	int count_lo, count_hi_and_cancelled; /* 63 bits of a number of bytes, and one that says cancelled */
	int MPI_SOURCE, MPI_TAG, MPI_ERROR;
} MPI_Status;

#define MPI_SUCCESS                 0
#define MPI_ERR_OTHER               15
#define MPI_T_ERR_MEMORY            59
#define MPI_T_ERR_NOT_INITIALIZED   60
#define MPI_T_ERR_CANNOT_INIT       61
#define MPI_T_ERR_INVALID_INDEX     62
#define MPI_T_ERR_INVALID_ITEM      63
#define MPI_T_ERR_INVALID_HANDLE    64
#define MPI_T_ERR_OUT_OF_HANDLES    65
#define MPI_T_ERR_OUT_OF_SESSIONS   66
#define MPI_T_ERR_INVALID_SESSION   67
#define MPI_T_ERR_CVAR_SET_NOT_NOW  68
#define MPI_T_ERR_CVAR_SET_NEVER    69
#define MPI_T_ERR_PVAR_NO_STARTSTOP 70
#define MPI_T_ERR_PVAR_NO_WRITE     71
#define MPI_T_ERR_PVAR_NO_ATOMIC    72
#define MPI_T_ERR_INVALID           74
#define MPI_T_ERR_INVALID_NAME      73
#define MPI_T_ERR_NOT_SUPPORTED     78 /* later ones */
#define MPI_T_ERR_NOT_ACCESSIBLE    79 /* later ones */

#define MPI_THREAD_SINGLE     0
#define MPI_THREAD_FUNNELED   1
#define MPI_THREAD_SERIALIZED 2
#define MPI_THREAD_MULTIPLE   3

#define MPI_T_VERBOSITY_USER_BASIC    221
#define MPI_T_VERBOSITY_USER_DETAIL   222
#define MPI_T_VERBOSITY_USER_ALL      223
#define MPI_T_VERBOSITY_TUNER_BASIC   224
#define MPI_T_VERBOSITY_TUNER_DETAIL  225
#define MPI_T_VERBOSITY_TUNER_ALL     226
#define MPI_T_VERBOSITY_MPIDEV_BASIC  227
#define MPI_T_VERBOSITY_MPIDEV_DETAIL 228
#define MPI_T_VERBOSITY_MPIDEV_ALL    229

#define MPI_T_BIND_NO_OBJECT     9700
#define MPI_T_BIND_MPI_SESSION   9711 /* later ones */
#define MPI_T_PVAR_CLASS_STATE   240
#define MPI_T_PVAR_CLASS_GENERIC 249
#define MPI_T_SCOPE_CONSTANT     60438
#define MPI_T_SCOPE_ALL_EQ       60444
#define MPI_T_ENUM_NULL          ((MPI_T_enum)0)

#define MPI_UNDEFINED       (-32766)
#define MPI_KEYVAL_INVALID  0x24000000
#define MPI_PROC_NULL       (-1)
#define MPI_ROOT            (-3)
#define MPI_IN_PLACE        ((void *)-1)
#define MPI_STATUS_IGNORE   ((MPI_Status *)1)

#define MPI_CART       2
#define MPI_GRAPH      1
#define MPI_DIST_GRAPH 3

#define MPI_WIN_BASE            0x66000001
#define MPI_WIN_SIZE            0x66000003
#define MPI_WIN_DISP_UNIT       0x66000005
#define MPI_WIN_CREATE_FLAVOR   0x66000007
#define MPI_WIN_MODEL           0x66000009
#define MPI_WIN_FLAVOR_CREATE   1
#define MPI_WIN_FLAVOR_ALLOCATE 2
#define MPI_WIN_FLAVOR_DYNAMIC  3
#define MPI_WIN_FLAVOR_SHARED   4
#define MPI_WIN_SEPARATE        1
#define MPI_WIN_UNIFIED         2

#define MPI_MODE_RDONLY          2
#define MPI_MODE_WRONLY          4
#define MPI_MODE_RDWR            8
#define MPI_MODE_CREATE          1
#define MPI_MODE_EXCL            64
#define MPI_MODE_DELETE_ON_CLOSE 16
#define MPI_MODE_UNIQUE_OPEN     32
#define MPI_MODE_APPEND          128
#define MPI_MODE_SEQUENTIAL      256

#define MPI_COMBINER_NAMED          1
#define MPI_COMBINER_DUP            2
#define MPI_COMBINER_CONTIGUOUS     3
#define MPI_COMBINER_VECTOR         4
#define MPI_COMBINER_HVECTOR        6
#define MPI_COMBINER_INDEXED        7
#define MPI_COMBINER_HINDEXED       9
#define MPI_COMBINER_INDEXED_BLOCK  10
#define MPI_COMBINER_HINDEXED_BLOCK 19
#define MPI_COMBINER_STRUCT         12
#define MPI_COMBINER_SUBARRAY       13
#define MPI_COMBINER_DARRAY         14
#define MPI_COMBINER_F90_REAL       15
#define MPI_COMBINER_F90_COMPLEX    16
#define MPI_COMBINER_F90_INTEGER    17
#define MPI_COMBINER_RESIZED        18

#define MPI_COMM_WORLD ((MPI_Comm)0x44000000)
#define MPI_COMM_SELF  ((MPI_Comm)0x44000001)
#define MPI_COMM_NULL  ((MPI_Comm)0x4000000)

#define MPI_NO_OP ((MPI_Op)0x5800000e)

#define MPI_DATATYPE_NULL      ((MPI_Datatype)0xc000000)
#define MPI_CHAR               ((MPI_Datatype)0x4c000101)
#define MPI_INT                ((MPI_Datatype)0x4c000405)
#define MPI_LONG               ((MPI_Datatype)0x4c000807)
#define MPI_LONG_LONG          ((MPI_Datatype)0x4c000809)
#define MPI_UNSIGNED           ((MPI_Datatype)0x4c000406)
#define MPI_UNSIGNED_LONG      ((MPI_Datatype)0x4c000808)
#define MPI_UNSIGNED_LONG_LONG ((MPI_Datatype)0x4c000819)
#define MPI_FLOAT              ((MPI_Datatype)0x4c00040a)
#define MPI_DOUBLE             ((MPI_Datatype)0x4c00080b)
#define MPI_INT32_T            ((MPI_Datatype)0x4c000439)
#define MPI_INT64_T            ((MPI_Datatype)0x4c00083a)
#define MPI_UINT32_T           ((MPI_Datatype)0x4c00043d)
#define MPI_UINT64_T           ((MPI_Datatype)0x4c00083e)
#define MPI_COUNT              ((MPI_Datatype)0x4c000845)
#define MPI_C_BOOL             ((MPI_Datatype)0x4c00013f)

#endif
