/* names DIR: one communicator, 3 barriers while it has no name, 5 as "before", 7 as "after"; then it is freed. */
#include "hold.h"
#include <mpi.h>

static void barriers(int n, MPI_Comm comm)
{
    for (int i = 0; i < n; i++)
        MPI_Barrier(comm);
}

int main(int argc, char **argv)
{
    const char *dir = argc > 1 ? argv[1] : "-";
    MPI_Comm comm;
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    /* Open MPI gives it a name of its own all the same ("MPI COMMUNICATOR 3 SPLIT FROM 0"): that is no name. */
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &comm);
    barriers(3, comm);
    MPI_Comm_set_name(comm, "before");
    barriers(5, comm);
    MPI_Comm_set_name(comm, "after");
    barriers(7, comm);
    hold(dir, "named", rank);

    MPI_Comm_free(&comm);
    hold(dir, "freed", rank);

    MPI_Finalize();
    if (rank == 0)
        printf("names: done\n");
    return 0;
}
