/*
 * stuck HOW DIR: three ranks that don't get on. HOW: deadlock (each waits for a message of the next one), mismatch
 * (rank 1 is in a barrier of "other", the rest in one of "halo"), asleep (rank 1 is in no call), steps (nothing is
 * wrong, until the test stops a rank), compute (nobody is in a call). Ends when it is killed; asleep, compute: at hold
 * point "away".
 */
#include "hold.h"
#include <mpi.h>

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "steps", *dir = argc > 2 ? argv[2] : "-";
    const struct timespec step = {0, 10 * 1000 * 1000};
    MPI_Comm halo, other;
    int rank, size, box;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_dup(MPI_COMM_WORLD, &halo);
    MPI_Comm_set_name(halo, "halo");
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    MPI_Comm_set_name(other, "other");
    if (strcmp(how, "deadlock") == 0)
        MPI_Recv(&box, 1, MPI_INT, (rank + 1) % size, 0, halo, MPI_STATUS_IGNORE);
    while (strcmp(how, "steps") == 0) {
        MPI_Barrier(halo);
        nanosleep(&step, NULL);
    }
    if (strcmp(how, "compute") == 0 || (strcmp(how, "asleep") == 0 && rank == 1))
        hold(dir, "away", rank);
    MPI_Barrier(strcmp(how, "mismatch") == 0 && rank == 1 ? other : halo);
    MPI_Finalize();
    return 0;
}
