/*
 * alone SECONDS …: rank i works (sleeps) for so many seconds and communicates with nobody until MPI_Finalize.
 */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv)
{
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank + 1 < argc) {
        double seconds = strtod(argv[rank + 1], NULL);
        struct timespec t = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};

        nanosleep(&t, NULL);
    }
    MPI_Finalize();
    if (rank == 0)
        puts("alone: done");
    return 0;
}
