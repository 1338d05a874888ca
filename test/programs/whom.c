/*
 * whom DIR: rank 0 waits in one call after the other, with others that are at hold point "0", "1", … until the test
 * lets them go on: in a receive, from a rank, from any, with any tag, with a communicator that has the world's ranks in
 * turn; in a probe, a synchronous send, both at once, a collective with and without a root, in two threads, and for requests.
 * The test knows what each is.
 */
#include <mpi.h>
#include <pthread.h>

#include "hold.h"

static const char *dir;
static int rank, size, step;
static MPI_Comm turned;

/* All but rank 0 stop here, then one does its part. */
static void others_wait(void)
{
    char name[16];

    snprintf(name, sizeof name, "%d", step++);
    if (rank != 0)
        hold(dir, name, rank);
}

static void send_to_first(MPI_Comm comm, int from, int first, int tag)
{
    if (rank == from)
        MPI_Send(NULL, 0, MPI_INT, first, tag, comm);
}

static void *receives(void *tag)
{
    MPI_Recv(NULL, 0, MPI_INT, 1, *(int *)tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return NULL;
}

int main(int argc, char **argv)
{
    int level, number = 0, tags[2] = {21, 22};
    pthread_t thread;
    MPI_Request requests[2];

    dir = argc > 1 ? argv[1] : "-";
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned);
    MPI_Comm_set_name(turned, "turned");

    others_wait(); /* 0 */
    if (rank == 0)
        MPI_Recv(NULL, 0, MPI_INT, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    send_to_first(MPI_COMM_WORLD, 1, 0, 7);

    others_wait(); /* 1: the world's rank 2 is size - 3 there */
    if (rank == 0)
        MPI_Recv(NULL, 0, MPI_INT, size - 3, MPI_ANY_TAG, turned, MPI_STATUS_IGNORE);
    send_to_first(turned, 2, size - 1, 8);

    others_wait(); /* 2 */
    if (rank == 0)
        MPI_Recv(NULL, 0, MPI_INT, MPI_ANY_SOURCE, 0, turned, MPI_STATUS_IGNORE);
    send_to_first(turned, 2, size - 1, 0);

    others_wait(); /* 3 */
    if (rank == 0) {
        MPI_Probe(2, 10, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(NULL, 0, MPI_INT, 2, 10, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    send_to_first(MPI_COMM_WORLD, 2, 0, 10);

    others_wait(); /* 4 */
    if (rank == 0)
        MPI_Ssend(NULL, 0, MPI_INT, 1, 11, MPI_COMM_WORLD);
    if (rank == 1)
        MPI_Recv(NULL, 0, MPI_INT, 0, 11, MPI_COMM_WORLD, MPI_STATUS_IGNORE);

    others_wait(); /* 5 */
    if (rank == 0)
        MPI_Sendrecv(NULL, 0, MPI_INT, 1, 12, NULL, 0, MPI_INT, 2, 13, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1)
        MPI_Recv(NULL, 0, MPI_INT, 0, 12, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    send_to_first(MPI_COMM_WORLD, 2, 0, 13);

    others_wait(); /* 6 */
    MPI_Bcast(&number, 1, MPI_INT, size - 2, turned);

    others_wait(); /* 7 */
    MPI_Allreduce(MPI_IN_PLACE, &number, 1, MPI_INT, MPI_SUM, turned);

    others_wait(); /* 8: two threads, each with a receive */
    if (rank == 0) {
        pthread_create(&thread, NULL, receives, &tags[0]);
        receives(&tags[1]);
        pthread_join(thread, NULL);
    }
    send_to_first(MPI_COMM_WORLD, 1, 0, 21);
    send_to_first(MPI_COMM_WORLD, 1, 0, 22);

    /* Requests: whose they are is known where peers are counted. */
    others_wait(); /* 9: one */
    if (rank == 0) {
        MPI_Irecv(NULL, 0, MPI_INT, size - 2, 31, turned, &requests[0]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    }
    send_to_first(turned, 1, size - 1, 31);

    others_wait(); /* 10: all of two */
    if (rank == 0) {
        MPI_Irecv(NULL, 0, MPI_INT, 1, 32, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(NULL, 0, MPI_INT, 2, 33, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    send_to_first(MPI_COMM_WORLD, 1, 0, 32);
    send_to_first(MPI_COMM_WORLD, 2, 0, 33);

    others_wait(); /* 11: persistent, one of two; the other is null */
    if (rank == 0) {
        MPI_Recv_init(NULL, 0, MPI_INT, 2, 34, MPI_COMM_WORLD, &requests[0]);
        requests[1] = MPI_REQUEST_NULL;
        MPI_Start(&requests[0]);
        MPI_Waitany(2, requests, &number, MPI_STATUS_IGNORE);
        MPI_Request_free(&requests[0]);
    }
    send_to_first(MPI_COMM_WORLD, 2, 0, 34);

    others_wait(); /* 12: from any */
    if (rank == 0) {
        MPI_Irecv(NULL, 0, MPI_INT, MPI_ANY_SOURCE, 35, MPI_COMM_WORLD, &requests[0]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    }
    send_to_first(MPI_COMM_WORLD, 1, 0, 35);

    others_wait(); /* 13: a synchronous send */
    if (rank == 0) {
        MPI_Issend(NULL, 0, MPI_INT, 1, 36, MPI_COMM_WORLD, &requests[0]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    }
    if (rank == 1)
        MPI_Recv(NULL, 0, MPI_INT, 0, 36, MPI_COMM_WORLD, MPI_STATUS_IGNORE);

    others_wait(); /* 14: a collective's is nobody's; with a receive's nothing is told */
    if (rank == 0)
        MPI_Irecv(NULL, 0, MPI_INT, 1, 37, MPI_COMM_WORLD, &requests[0]);
    else
        requests[0] = MPI_REQUEST_NULL;
    MPI_Ibarrier(MPI_COMM_WORLD, &requests[1]);
    if (rank == 1)
        MPI_Send(NULL, 0, MPI_INT, 0, 37, MPI_COMM_WORLD);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);

    MPI_Comm_free(&turned);
    MPI_Finalize();
    if (rank == 0)
        puts("whom: done");
    return 0;
}
