/*
 * mpich.h - what the agent needs to know of the binary interface that MPICH from 3.1 to 5.0, Intel MPI, MVAPICH and
 * Cray MPICH share.
 *
 * In place of its mpi.h, which the tests compare it with where there is one (test/descriptions). Handles are integers.
 */
#ifndef MPIT_ABI_MPICH_H
#define MPIT_ABI_MPICH_H

#include "constants.h"
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

#define CONSTANT(name, openmpi, mpich, standard) name = mpich,
enum { MPI_CONSTANTS(CONSTANT) };

#define MPI_T_ENUM_NULL    ((MPI_T_enum)0)

#define MPI_IN_PLACE       ((void *)-1)
#define MPI_STATUS_IGNORE  ((MPI_Status *)1)

#define MPI_COMM_WORLD ((MPI_Comm)0x44000000)
#define MPI_COMM_SELF  ((MPI_Comm)0x44000001)
#define MPI_COMM_NULL  ((MPI_Comm)0x4000000)
#define MPI_REQUEST_NULL ((MPI_Request)0x2c000000)

#define MPI_INFO_NULL ((MPI_Info)0x1c000000)

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
