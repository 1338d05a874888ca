/*
 * phases N: rounds of two phases, each of which is one rank's: MPI_Pcontrol(3), in which rank 0 is away for 500 ms and
 * rank 1 waits for it in MPI_Barrier, and MPI_Pcontrol(4), the other way round.
 */
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, phase, n = argc > 1 ? atoi(argv[1]) : 2;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    while (n-- > 0)
        for (phase = 0; phase < 2; phase++) {
            MPI_Pcontrol(3 + phase);
            if (rank == phase)
                usleep(500000);
            MPI_Barrier(MPI_COMM_WORLD);
        }
    MPI_Finalize();
    return 0;
}
