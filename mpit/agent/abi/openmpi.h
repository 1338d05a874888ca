/*
 * openmpi.h - what the agent needs to know of Open MPI's binary interface: the same in 4.0, 4.1, 5.0 and 6.0, but for
 * what is marked.
 *
 * In place of its mpi.h, which the tests compare it with where there is one (test/descriptions). Predefined handles
 * are addresses of data symbols.
 */
#ifndef MPIT_ABI_OPENMPI_H
#define MPIT_ABI_OPENMPI_H

#include "constants.h"
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

#define CONSTANT(name, openmpi, mpich, standard) name = openmpi,
enum { MPI_CONSTANTS(CONSTANT) };

#define MPI_T_ENUM_NULL    ((MPI_T_enum)0)

#define MPI_IN_PLACE       ((void *)1)
#define MPI_STATUS_IGNORE  ((MPI_Status *)0)

#endif
