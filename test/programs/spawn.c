/*
 * spawn DIR COMMAND ARGS...: starts two processes of COMMAND as a second world, which runs this program again with
 * "child" as last argument. Each rank of the first sends an int to the one of the same number in the
 * second. Both worlds stop at "up" (the first) and "child" (the second).
 */
#include "hold.h"
#include <mpi.h>

enum { CHILDREN = 2 };

int main(int argc, char **argv)
{
    const char *dir = argv[1];
    MPI_Comm parent, children;
    int rank, one = 1, sum = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        MPI_Recv(&one, 1, MPI_INT, rank, 1, parent, MPI_STATUS_IGNORE);
        hold(dir, "child", rank);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, parent);
        MPI_Comm_disconnect(&parent);
    } else {
        MPI_Comm_spawn(argv[2], &argv[3], CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
        MPI_Send(&one, 1, MPI_INT, rank, 1, children);
        hold(dir, "up", rank);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, children);
        MPI_Comm_disconnect(&children);
        if (rank == 0)
            printf("spawn: the children's sum is %d\n", sum);
    }
    MPI_Finalize();
    return 0;
}
