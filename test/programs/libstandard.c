/*
 * A library with MPI-5's own ABI, where none is installed: one process, with a version string as MPICH's. It has what
 * the agent and the call profile look up, and answers right where they would notice. A message is 40 bytes long; the
 * number stands in the status where only it knows.
 *
 * ABI_VERSION is what MPI_Abi_get_version answers; without it there is no such function.
 */
#include "abi/standard.h"

#include "abi/functions.h"

#include <string.h>

enum { MESSAGE = 40 };

static int (*self_deleted[8])(MPI_Comm, int, void *, void *), keyvals;
static void *self_attributes[8];

#define BOTH(name, parameters)                                         \
    int MPI_##name parameters __attribute__((alias("PMPI_" #name)));   \
    int PMPI_##name parameters

#ifdef ABI_VERSION
BOTH(Abi_get_version, (int *major, int *minor))
{
    *major = ABI_VERSION;
    *minor = 0;
    return MPI_SUCCESS;
}
#endif

BOTH(Get_library_version, (char *version, int *length))
{
    *length = (int)strlen(strcpy(version, "MPICH Version: 5.99"));
    return MPI_SUCCESS;
}

BOTH(Init, (int *argc, char ***argv))
{
    (void)argc, (void)argv;
    return MPI_SUCCESS;
}

BOTH(Finalize, (void))
{
    for (int i = keyvals; i > 0; i--)
        if (self_attributes[i] != NULL)
            self_deleted[i](MPI_COMM_SELF, i, self_attributes[i], NULL);
    return MPI_SUCCESS;
}

BOTH(Recv, (void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *status))
{
    (void)buffer, (void)count, (void)type, (void)source, (void)tag, (void)comm;
    if (status != MPI_STATUS_IGNORE) {
        memset(status, 0xff, sizeof *status);
        status->MPI_internal[4] = MESSAGE;
    }
    return MPI_SUCCESS;
}

int PMPI_Get_count_c(const MPI_Status *status, MPI_Datatype type, MPI_Count *count)
{
    if (type != MPI_BYTE)
        return MPI_ERR_OTHER;
    *count = status->MPI_internal[4];
    return MPI_SUCCESS;
}

int PMPI_T_init_thread(int required, int *provided)
{
    *provided = required;
    return MPI_SUCCESS;
}

int PMPI_T_pvar_session_create(MPI_T_pvar_session *session)
{
    *session = (MPI_T_pvar_session)&keyvals;
    return MPI_SUCCESS;
}

int PMPI_Comm_rank(MPI_Comm comm, int *rank)
{
    (void)comm;
    *rank = 0;
    return MPI_SUCCESS;
}

int PMPI_Comm_size(MPI_Comm comm, int *size)
{
    (void)comm;
    *size = 1;
    return MPI_SUCCESS;
}

int PMPI_Comm_create_keyval(int (*copy)(MPI_Comm, int, void *, void *, void *, int *), int (*deleted)(MPI_Comm, int, void *, void *),
                            int *keyval, void *extra)
{
    (void)copy, (void)extra;
    *keyval = ++keyvals;
    self_deleted[keyvals] = deleted;
    return MPI_SUCCESS;
}

int PMPI_Comm_set_attr(MPI_Comm comm, int keyval, void *value)
{
    if (comm == MPI_COMM_SELF)
        self_attributes[keyval] = value;
    return comm == MPI_COMM_SELF || comm == MPI_COMM_WORLD ? MPI_SUCCESS : MPI_ERR_OTHER;
}

int PMPI_Graph_neighbors_count(MPI_Comm comm, int rank, int *count)
{
    (void)comm, (void)rank, (void)count;
    return MPI_ERR_OTHER;
}

int PMPI_Type_size_x(MPI_Datatype type, MPI_Count *bytes)
{
    *bytes = type == MPI_INT ? 4 : 1;
    return MPI_SUCCESS;
}
