/*
 * Two ranks that do nothing but talk: bursts of tiny messages, and after each an allreduce of one number on "sums";
 * of as many as 16 MiB hold once DIR/grown.go is there.
 *
 *     chatter DIR
 *
 * It goes on until somebody ends it, HOLD_LIMIT_SECONDS at most.
 */
#include "hold.h"

#include <mpi.h>

#define BURST 100
#define NUMBERS (2 * 1024 * 1024)
#define LOOKS 100 /* bursts between two looks for the file */

int main(int argc, char **argv)
{
    MPI_Request requests[2 * BURST];
    MPI_Status statuses[2 * BURST];
    double out[BURST], in[BURST], *numbers, *sums;
    int rank, i, count = 1;
    char path[4096];
    MPI_Comm comm;
    double end;
    long round;

    MPI_Init(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_name(comm, "sums");
    MPI_Comm_rank(comm, &rank);
    snprintf(path, sizeof path, "%s/grown.go", argv[1]);
    numbers = calloc(NUMBERS, sizeof *numbers);
    sums = calloc(NUMBERS, sizeof *sums);
    if (numbers == NULL || sums == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    memset(out, 0, sizeof out);

    end = MPI_Wtime() + HOLD_LIMIT_SECONDS;
    for (round = 0; MPI_Wtime() < end; round++) {
        for (i = 0; i < BURST; i++)
            MPI_Irecv(&in[i], 1, MPI_DOUBLE, 1 - rank, 0, comm, &requests[i]);
        for (i = 0; i < BURST; i++)
            MPI_Isend(&out[i], 1, MPI_DOUBLE, 1 - rank, 0, comm, &requests[BURST + i]);
        MPI_Waitall(2 * BURST, requests, statuses);
        if (rank == 0 && count == 1 && round % LOOKS == 0)
            numbers[0] = access(path, F_OK) == 0;
        MPI_Allreduce(numbers, sums, count, MPI_DOUBLE, MPI_SUM, comm);
        if (sums[0] > 0)
            count = NUMBERS;
    }
    MPI_Abort(MPI_COMM_WORLD, 99); /* the other rank may be in the middle of a round */
    return 99;
}
