/* many N DIR: N communicators with names of their own and one barrier on each; then all of them are freed. */
#include "hold.h"
#include <mpi.h>

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 10, rank;
    const char *dir = argc > 2 ? argv[2] : "-";
    MPI_Comm *comms = calloc((size_t)n, sizeof *comms);
    char name[32];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < n; i++) {
        MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &comms[i]);
        snprintf(name, sizeof name, "grid %04d", i);
        MPI_Comm_set_name(comms[i], name);
        MPI_Barrier(comms[i]);
        if (i == n / 2)
            hold(dir, "half", rank);
    }
    hold(dir, "made", rank);

    for (int i = 0; i < n; i++)
        MPI_Comm_free(&comms[i]);
    hold(dir, "freed", rank);

    MPI_Finalize();
    free(comms);
    if (rank == 0)
        printf("many: %d communicators\n", n);
    return 0;
}
