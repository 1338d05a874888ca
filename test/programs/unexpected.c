/*
 * unexpected N DIR: rank 0 sends N small messages to rank 1 on communicator "backlog". Rank 1 doesn't receive them
 * before the hold point "queued": exactly N messages are in its unexpected queue then. At "drained" none is.
 */
#include "hold.h"
#include <mpi.h>

enum { LATE = 1, LAST = 2 };

int main(int argc, char **argv)
{
    const int n = argc > 1 ? atoi(argv[1]) : 10;
    const char *dir = argc > 2 ? argv[2] : "-";
    MPI_Comm backlog;
    int rank, number, bad = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &backlog);
    MPI_Comm_set_name(backlog, "backlog");

    if (rank == 0)
        for (int i = 0; i <= n; i++)
            MPI_Send(&i, 1, MPI_INT, 1, i < n ? LATE : LAST, backlog);
    if (rank == 1) /* messages don't overtake: with the last one here, all others have come */
        MPI_Recv(&number, 1, MPI_INT, 0, LAST, backlog, MPI_STATUS_IGNORE);
    hold(dir, "queued", rank);

    if (rank == 1)
        for (int i = 0; i < n; i++) {
            MPI_Recv(&number, 1, MPI_INT, 0, LATE, backlog, MPI_STATUS_IGNORE);
            bad += number != i;
        }
    hold(dir, "drained", rank);

    MPI_Comm_free(&backlog);
    MPI_Finalize();
    if (rank == 1)
        printf("unexpected: %d messages, %d out of order\n", n, bad);
    return bad != 0;
}
