/*
 * nested.c - a generalized request whose end frees a persistent one, from inside MPI_Request_free.
 *
 *   nested HOLD
 *
 * Hold points: made, freed.
 */
#include <mpi.h>

#include <stdio.h>

#include "hold.h"

static MPI_Request inner;

static int query(void *state, MPI_Status *status)
{
    (void)state, (void)status;
    return MPI_SUCCESS;
}

static int end(void *state)
{
    (void)state;
    return MPI_Request_free(&inner);
}

static int cancel(void *state, int complete)
{
    (void)state, (void)complete;
    return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    const char *dir = argc > 1 ? argv[1] : "-";
    MPI_Request outer;
    int rank, word;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Recv_init(&word, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &inner);
    hold(dir, "made", rank);
    MPI_Grequest_start(query, end, cancel, NULL, &outer);
    MPI_Grequest_complete(outer);
    MPI_Request_free(&outer);
    printf("%s\n", inner == MPI_REQUEST_NULL ? "freed" : "not freed");
    hold(dir, "freed", rank);
    MPI_Finalize();
    return 0;
}
