/* tour DIR: the tour of README.md in C. */
#include "hold.h"
#include <mpi.h>

#define SUMS 3

int main(int argc, char **argv)
{
    const char *dir = argc > 1 ? argv[1] : "-";
    MPI_Comm ring, half;
    MPI_Win win;
    int rank, size, one = 1, sum = 0;
    double box[8] = {0}, gift;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);

    MPI_Comm_dup(MPI_COMM_WORLD, &ring);
    MPI_Comm_set_name(ring, "ring");
    for (int i = 0; i < SUMS; i++) {
        int got;
        MPI_Allreduce(&one, &got, 1, MPI_INT, MPI_SUM, ring);
        sum += got;
    }

    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Comm_set_name(half, "half");
    MPI_Barrier(half);
    MPI_Comm_free(&half);

    MPI_Win_create(box, sizeof box, sizeof box[0], MPI_INFO_NULL, ring, &win);
    MPI_Win_set_name(win, "box");
    gift = rank;
    MPI_Win_fence(0, win);
    MPI_Put(&gift, 1, MPI_DOUBLE, (rank + 1) % size, 0, 1, MPI_DOUBLE, win);
    MPI_Win_fence(0, win);

    hold(dir, "made", rank);

    MPI_Win_free(&win);
    MPI_Comm_free(&ring);
    hold(dir, "freed", rank);

    MPI_Finalize();
    if (rank == 0)
        printf("tour: %d ranks, sum %d\n", size, sum);
    return 0;
}
