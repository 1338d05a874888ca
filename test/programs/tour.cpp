// tour DIR: the tour of README.md in C++, with MPI_Init_thread.
#include "hold.h"
#include <iostream>
#include <mpi.h>
#include <vector>

int main(int argc, char **argv)
{
    const int sums = 3;
    const char *dir = argc > 1 ? argv[1] : "-";
    int rank, size, provided, sum = 0;
    const int one = 1;
    MPI_Comm ring, half;
    MPI_Win win;
    std::vector<double> box(8);

    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);

    MPI_Comm_dup(MPI_COMM_WORLD, &ring);
    MPI_Comm_set_name(ring, "ring");
    for (int i = 0; i < sums; i++) {
        int got;
        MPI_Allreduce(&one, &got, 1, MPI_INT, MPI_SUM, ring);
        sum += got;
    }

    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Comm_set_name(half, "half");
    MPI_Barrier(half);
    MPI_Comm_free(&half);

    MPI_Win_create(box.data(), box.size() * sizeof box[0], sizeof box[0], MPI_INFO_NULL, ring, &win);
    MPI_Win_set_name(win, "box");
    const double gift = rank;
    MPI_Win_fence(0, win);
    MPI_Put(&gift, 1, MPI_DOUBLE, (rank + 1) % size, 0, 1, MPI_DOUBLE, win);
    MPI_Win_fence(0, win);

    hold(dir, "made", rank);

    MPI_Win_free(&win);
    MPI_Comm_free(&ring);
    hold(dir, "freed", rank);

    MPI_Finalize();
    if (rank == 0)
        std::cout << "tour: " << size << " ranks, sum " << sum << std::endl;
    return 0;
}
