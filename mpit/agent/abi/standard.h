/*
 * standard.h - what the agent needs to know of the standard's own binary interface (MPI-5.0 chapter 20), version 1:
 * MPICH 5, Open MPI 6.
 *
 * In place of its mpi.h, which the tests compare it with where there is one (test/descriptions). Handles are
 * pointers; predefined ones are small numbers.
 */
#ifndef MPIT_ABI_STANDARD_H
#define MPIT_ABI_STANDARD_H

#include "types.h"

#include <stddef.h>
#include <stdint.h>

typedef struct standard_comm *MPI_Comm;
typedef struct standard_datatype *MPI_Datatype;
typedef struct standard_group *MPI_Group;
typedef struct standard_info *MPI_Info;
typedef struct standard_op *MPI_Op;
typedef struct standard_request *MPI_Request;
typedef struct standard_session *MPI_Session;
typedef struct standard_win *MPI_Win;

/* All that is predefined, null handles too, is below: in a page where no object can lie. */
#define PREDEFINED_HANDLES 4096

typedef struct {
	int MPI_SOURCE, MPI_TAG, MPI_ERROR;
	int MPI_internal[5]; /* each library's own business, the number of bytes with it */
} MPI_Status;

#define MPI_SUCCESS                 0
#define MPI_ERR_OTHER               16
#define MPI_T_ERR_MEMORY            1005
#define MPI_T_ERR_NOT_INITIALIZED   1003
#define MPI_T_ERR_CANNOT_INIT       1001
#define MPI_T_ERR_INVALID_INDEX     1007
#define MPI_T_ERR_INVALID_ITEM      1008
#define MPI_T_ERR_INVALID_HANDLE    1010
#define MPI_T_ERR_OUT_OF_HANDLES    1012
#define MPI_T_ERR_OUT_OF_SESSIONS   1013
#define MPI_T_ERR_INVALID_SESSION   1009
#define MPI_T_ERR_CVAR_SET_NOT_NOW  1014
#define MPI_T_ERR_CVAR_SET_NEVER    1015
#define MPI_T_ERR_PVAR_NO_STARTSTOP 1017
#define MPI_T_ERR_PVAR_NO_WRITE     1016
#define MPI_T_ERR_PVAR_NO_ATOMIC    1018
#define MPI_T_ERR_INVALID           1006
#define MPI_T_ERR_INVALID_NAME      1011
#define MPI_T_ERR_NOT_SUPPORTED     1004
#define MPI_T_ERR_NOT_ACCESSIBLE    1002

#define MPI_THREAD_SINGLE     0
#define MPI_THREAD_FUNNELED   1024
#define MPI_THREAD_SERIALIZED 2048
#define MPI_THREAD_MULTIPLE   4096

#define MPI_T_VERBOSITY_USER_BASIC    0x09
#define MPI_T_VERBOSITY_USER_DETAIL   0x0a
#define MPI_T_VERBOSITY_USER_ALL      0x0c
#define MPI_T_VERBOSITY_TUNER_BASIC   0x11
#define MPI_T_VERBOSITY_TUNER_DETAIL  0x12
#define MPI_T_VERBOSITY_TUNER_ALL     0x14
#define MPI_T_VERBOSITY_MPIDEV_BASIC  0x21
#define MPI_T_VERBOSITY_MPIDEV_DETAIL 0x22
#define MPI_T_VERBOSITY_MPIDEV_ALL    0x24

#define MPI_T_BIND_NO_OBJECT     1
#define MPI_T_BIND_MPI_SESSION   12
#define MPI_T_PVAR_CLASS_STATE   1
#define MPI_T_PVAR_CLASS_GENERIC 10
#define MPI_T_SCOPE_CONSTANT     1
#define MPI_T_SCOPE_ALL_EQ       7
#define MPI_T_ENUM_NULL          ((MPI_T_enum)0)

#define MPI_UNDEFINED       (-32766)
#define MPI_KEYVAL_INVALID  0
#define MPI_PROC_NULL       (-3)
#define MPI_ROOT            (-4)
#define MPI_IN_PLACE        ((void *)1)
#define MPI_STATUS_IGNORE   ((MPI_Status *)0)

#define MPI_CART       211
#define MPI_GRAPH      212
#define MPI_DIST_GRAPH 213

#define MPI_WIN_BASE            601
#define MPI_WIN_SIZE            603
#define MPI_WIN_DISP_UNIT       602
#define MPI_WIN_CREATE_FLAVOR   604
#define MPI_WIN_MODEL           605
#define MPI_WIN_FLAVOR_CREATE   311
#define MPI_WIN_FLAVOR_ALLOCATE 312
#define MPI_WIN_FLAVOR_DYNAMIC  313
#define MPI_WIN_FLAVOR_SHARED   314
#define MPI_WIN_SEPARATE        322
#define MPI_WIN_UNIFIED         321

#define MPI_MODE_RDONLY          16
#define MPI_MODE_WRONLY          256
#define MPI_MODE_RDWR            32
#define MPI_MODE_CREATE          2
#define MPI_MODE_EXCL            8
#define MPI_MODE_DELETE_ON_CLOSE 4
#define MPI_MODE_UNIQUE_OPEN     128
#define MPI_MODE_APPEND          1
#define MPI_MODE_SEQUENTIAL      64

#define MPI_COMBINER_NAMED          101
#define MPI_COMBINER_DUP            102
#define MPI_COMBINER_CONTIGUOUS     103
#define MPI_COMBINER_VECTOR         104
#define MPI_COMBINER_HVECTOR        105
#define MPI_COMBINER_INDEXED        106
#define MPI_COMBINER_HINDEXED       107
#define MPI_COMBINER_INDEXED_BLOCK  108
#define MPI_COMBINER_HINDEXED_BLOCK 109
#define MPI_COMBINER_STRUCT         110
#define MPI_COMBINER_SUBARRAY       111
#define MPI_COMBINER_DARRAY         112
#define MPI_COMBINER_F90_REAL       113
#define MPI_COMBINER_F90_COMPLEX    114
#define MPI_COMBINER_F90_INTEGER    115
#define MPI_COMBINER_RESIZED        116

#define MPI_COMM_WORLD ((MPI_Comm)0x101)
#define MPI_COMM_SELF  ((MPI_Comm)0x102)
#define MPI_COMM_NULL  ((MPI_Comm)0x100)

#define MPI_NO_OP ((MPI_Op)0x3d)

#define MPI_DATATYPE_NULL      ((MPI_Datatype)0x200)
#define MPI_BYTE               ((MPI_Datatype)0x247)
#define MPI_CHAR               ((MPI_Datatype)0x243)
#define MPI_INT                ((MPI_Datatype)0x209)
#define MPI_LONG               ((MPI_Datatype)0x20a)
#define MPI_LONG_LONG          ((MPI_Datatype)0x20b)
#define MPI_UNSIGNED           ((MPI_Datatype)0x20d)
#define MPI_UNSIGNED_LONG      ((MPI_Datatype)0x20e)
#define MPI_UNSIGNED_LONG_LONG ((MPI_Datatype)0x20f)
#define MPI_FLOAT              ((MPI_Datatype)0x210)
#define MPI_DOUBLE             ((MPI_Datatype)0x214)
#define MPI_INT32_T            ((MPI_Datatype)0x250)
#define MPI_INT64_T            ((MPI_Datatype)0x258)
#define MPI_UINT32_T           ((MPI_Datatype)0x251)
#define MPI_UINT64_T           ((MPI_Datatype)0x259)
#define MPI_COUNT              ((MPI_Datatype)0x202)
#define MPI_C_BOOL             ((MPI_Datatype)0x238)

#endif
