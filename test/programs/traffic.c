/*
 * traffic ROUNDS BYTES DIR: known traffic on named objects. Each of ROUNDS rounds is
 *
 *   on communicator "ring":  a message of BYTES bytes to the next rank,
 *                            a broadcast of BYTES bytes from rank 0,
 *                            a reduction of BYTES bytes to rank 0;
 *   on communicator "sums":  an allreduce of one double;
 *   on window "box":         a put of BYTES bytes to the next rank.
 *
 * Before the first hold point ("ready") everything is made, and ROUNDS communicators named "brief" have lived and died,
 * each with two barriers. After ROUNDS rounds comes "half", after another ROUNDS "done". A put needs its target's help:
 * a barrier on communicator "calm" ends the rounds before anybody stops.
 */
#include "hold.h"
#include <mpi.h>

static void rounds(int n, int bytes, MPI_Comm ring, MPI_Comm sums, MPI_Comm calm, MPI_Win box)
{
    int rank, size;
    char *out = calloc(bytes, 1), *in = calloc(bytes, 1);

    MPI_Comm_rank(ring, &rank);
    MPI_Comm_size(ring, &size);
    const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    for (int i = 0; i < n; i++) {
        double one = 1, sum;
        MPI_Sendrecv(out, bytes, MPI_BYTE, next, 1, in, bytes, MPI_BYTE, previous, 1, ring, MPI_STATUS_IGNORE);
        MPI_Bcast(out, bytes, MPI_BYTE, 0, ring);
        MPI_Reduce(out, in, bytes, MPI_BYTE, MPI_BOR, 0, ring);
        MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, sums);
        if (sum != size)
            MPI_Abort(MPI_COMM_WORLD, 90);
        MPI_Win_lock(MPI_LOCK_SHARED, next, 0, box);
        MPI_Put(out, bytes, MPI_BYTE, next, 0, bytes, MPI_BYTE, box);
        MPI_Win_unlock(next, box);
    }
    MPI_Barrier(calm);
    free(out);
    free(in);
}

int main(int argc, char **argv)
{
    const int n = argc > 1 ? atoi(argv[1]) : 10, bytes = argc > 2 ? atoi(argv[2]) : 100;
    const char *dir = argc > 3 ? argv[3] : "-";
    MPI_Comm ring, sums, calm;
    MPI_Win box;
    char *room;
    int rank, size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < n; i++) {
        MPI_Comm brief;
        MPI_Comm_dup(MPI_COMM_WORLD, &brief);
        MPI_Comm_set_name(brief, "brief");
        MPI_Barrier(brief);
        MPI_Barrier(brief);
        MPI_Comm_free(&brief);
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &ring);
    MPI_Comm_set_name(ring, "ring");
    MPI_Comm_dup(MPI_COMM_WORLD, &sums);
    MPI_Comm_set_name(sums, "sums");
    MPI_Comm_dup(MPI_COMM_WORLD, &calm);
    MPI_Comm_set_name(calm, "calm");
    room = calloc(bytes, 1);
    MPI_Win_create(room, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &box);
    MPI_Win_set_name(box, "box");

    hold(dir, "ready", rank);
    rounds(n, bytes, ring, sums, calm, box);
    hold(dir, "half", rank);
    rounds(n, bytes, ring, sums, calm, box);
    hold(dir, "done", rank);

    MPI_Win_free(&box);
    MPI_Comm_free(&calm);
    MPI_Comm_free(&sums);
    MPI_Comm_free(&ring);
    MPI_Finalize();
    free(room);
    if (rank == 0)
        printf("traffic: %d ranks, 2 x %d rounds of %d bytes\n", size, n, bytes);
    return 0;
}
