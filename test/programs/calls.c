/* calls DIR: known numbers of the calls that libpmpitool.c counts. Hold point: "made", while a communicator and a
 * window live. */
#include "hold.h"
#include <mpi.h>

int main(int argc, char **argv)
{
    const char *dir = argc > 1 ? argv[1] : "-";
    MPI_Comm copy, part;
    MPI_Win win;
    int rank, size, box = 0, number;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 5; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        MPI_Comm_free(&copy);
    }
    MPI_Pcontrol(3);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_set_name(copy, "calls");
    MPI_Comm_split(copy, rank, 0, &part);
    MPI_Win_create(&box, sizeof box, 1, MPI_INFO_NULL, copy, &win);
    for (int i = 0; i < 7; i++) {
        number = i;
        if (rank == 0 && size > 1)
            MPI_Send(&number, 1, MPI_INT, 1, i, copy);
        if (rank == 1)
            MPI_Recv(&number, 1, MPI_INT, 0, i, copy, MPI_STATUS_IGNORE);
    }
    hold(dir, "made", rank);
    MPI_Pcontrol(1);
    MPI_Win_free(&win);
    MPI_Comm_free(&part);
    MPI_Comm_free(&copy);
    MPI_Finalize();
    if (rank == 0)
        printf("calls: last number %d\n", number);
    return 0;
}
