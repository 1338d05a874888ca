/*
 * standard.h - what the agent needs to know of the standard's own binary interface (MPI-5.0 chapter 20), version 1:
 * MPICH 5, Open MPI 6.
 *
 * In place of its mpi.h, which the tests compare it with where there is one (test/descriptions). Handles are
 * pointers; predefined ones are small numbers.
 */
#ifndef MPIT_ABI_STANDARD_H
#define MPIT_ABI_STANDARD_H

#include "constants.h"
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

#define CONSTANT(name, openmpi, mpich, standard) name = standard,
enum { MPI_CONSTANTS(CONSTANT) };

#define MPI_T_ENUM_NULL    ((MPI_T_enum)0)

#define MPI_IN_PLACE       ((void *)1)
#define MPI_STATUS_IGNORE  ((MPI_Status *)0)

#define MPI_COMM_WORLD ((MPI_Comm)0x101)
#define MPI_COMM_SELF  ((MPI_Comm)0x102)
#define MPI_COMM_NULL  ((MPI_Comm)0x100)
#define MPI_REQUEST_NULL ((MPI_Request)0x180)

#define MPI_INFO_NULL ((MPI_Info)0x130)

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
