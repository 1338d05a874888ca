/*
 * profile_time ROUNDS DIR: two ranks, of which the other one is late, in turn, by a millisecond or two; with books
 * (books.h), whose durations are worth a comparison here. At the end, on communicator "slow", rank 1 is late by most
 * of a second, once. Hold point: "done".
 */
#include "books.h"

static int rank;

static void late(int who, long microseconds)
{
    const struct timespec pause = {0, microseconds * 1000};

    if (rank == who)
        nanosleep(&pause, NULL);
}

int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? atoi(argv[1]) : 10;
    const char *dir = argc > 2 ? argv[2] : "-";
    MPI_Comm slow;
    MPI_Request request;
    int size, number = 0, sum;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    EXPECT(size == 2);
    DO("comm:MPI_COMM_WORLD", NONE, NONE, MPI_Comm_dup, MPI_COMM_WORLD, &slow);
    MPI_Comm_set_name(slow, "slow");
    for (int i = 0; i < rounds; i++) {
        late(1, 1500);
        if (rank == 1)
            DO("comm:MPI_COMM_WORLD", SENT(4), NONE, MPI_Send, &number, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
        else
            DO("comm:MPI_COMM_WORLD", NONE, RECEIVED(4), MPI_Recv, &number, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        late(0, 1000);
        if (rank == 1)
            DO("comm:MPI_COMM_WORLD", SENT(4), NONE, MPI_Ssend, &number, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
        else
            DO("comm:MPI_COMM_WORLD", NONE, RECEIVED(4), MPI_Recv, &number, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        late(i % 2, 2000);
        DO("comm:MPI_COMM_WORLD", SENT(4), RECEIVED(4), MPI_Allreduce, &number, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        late(i % 2, 1000);
        DO("comm:MPI_COMM_WORLD", NONE, NONE, MPI_Ibarrier, MPI_COMM_WORLD, &request);
        DO("-", NONE, NONE, MPI_Wait, &request, MPI_STATUS_IGNORE);
    }
    DO("comm:slow", NONE, NONE, MPI_Barrier, slow);
    late(1, 800 * 1000);
    DO("comm:slow", SENT(4), RECEIVED(4), MPI_Allreduce, &number, &sum, 1, MPI_INT, MPI_SUM, slow);
    books_hold(dir, "done", rank);
    MPI_Comm_free(&slow);
    MPI_Finalize();
    if (rank == 0)
        puts("profile_time: done");
    return 0;
}
