/* inter DIR: of two ranks, each alone on its side of the intercommunicator "bridge". Holds at "made". */
#include "hold.h"
#include <mpi.h>

int main(int argc, char **argv)
{
    const char *dir = argc > 1 ? argv[1] : "-";
    MPI_Comm side, bridge;
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &side);
    MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, 1 - rank, 0, &bridge);
    MPI_Comm_set_name(bridge, "bridge");
    hold(dir, "made", rank);

    MPI_Comm_free(&bridge);
    MPI_Comm_free(&side);
    MPI_Finalize();
    return 0;
}
