/*
 * Another tool, to be preloaded: what it stands in front of it does by other MPI calls, under their ordinary names. A
 * broadcast begins with a barrier; a sum is a reduction and a broadcast, which begins with a barrier. The end begins
 * with a barrier, too.
 */
#include <mpi.h>

int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    int code = MPI_Barrier(comm);

    return code != MPI_SUCCESS ? code : PMPI_Bcast(buffer, count, type, root, comm);
}

int MPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    int code = MPI_Reduce(in, out, count, type, op, 0, comm);

    return code != MPI_SUCCESS ? code : MPI_Bcast(out, count, type, 0, comm);
}

int MPI_Finalize(void)
{
    int code = MPI_Barrier(MPI_COMM_WORLD);

    return code != MPI_SUCCESS ? code : PMPI_Finalize();
}
