/*
 * whom DIR: rank 0 waits in one call after the other, with others that are at hold point "0", "1", … until the test
 * lets them go on: in a receive, from a rank, from any, with any tag, with a communicator that has the world's ranks in
 * turn; in a probe, a synchronous send, both at once, collectives, in two threads, for requests of all kinds, windows, a
 * file, and on an intercommunicator. The test knows what each is.
 */
#include <mpi.h>
#include <pthread.h>

#include "hold.h"

static const char *dir;
static int rank, size, step;
static MPI_Comm turned;
/* Not MPI_STATUSES_IGNORE: gcc 12 warns of it in MPICH, as of an array without room. */
static MPI_Status statuses[2];

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

static int queries(void *unused, MPI_Status *status)
{
    (void)unused;
    MPI_Status_set_elements(status, MPI_INT, 0);
    MPI_Status_set_cancelled(status, 0);
    return MPI_SUCCESS;
}

static int frees(void *unused)
{
    (void)unused;
    return MPI_SUCCESS;
}

static int cancels(void *unused, int complete)
{
    (void)unused;
    (void)complete;
    return MPI_SUCCESS;
}

static void *receives_and_completes(void *request)
{
    receives((int[]){53});
    MPI_Grequest_complete(*(MPI_Request *)request);
    return NULL;
}

/* More of messages and requests. */
static void completions(void)
{
    static char large[1 << 20];
    MPI_Request requests[2];
    MPI_Message message;
    pthread_t thread;
    int done, indices[2];

    others_wait(); /* 15 */
    if (rank == 0) {
        MPI_Mprobe(2, 41, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
        MPI_Mrecv(NULL, 0, MPI_INT, &message, MPI_STATUS_IGNORE);
    }
    send_to_first(MPI_COMM_WORLD, 2, 0, 41);

    others_wait(); /* 16: some of two */
    if (rank == 0) {
        MPI_Irecv(NULL, 0, MPI_INT, 1, 42, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(NULL, 0, MPI_INT, 2, 43, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitsome(2, requests, &done, indices, statuses);
        MPI_Waitall(2, requests, statuses);
    }
    send_to_first(MPI_COMM_WORLD, 1, 0, 42);
    send_to_first(MPI_COMM_WORLD, 2, 0, 43);

    others_wait(); /* 17: persistent ones, all of two */
    if (rank == 0) {
        MPI_Recv_init(NULL, 0, MPI_INT, 1, 44, MPI_COMM_WORLD, &requests[0]);
        MPI_Recv_init(NULL, 0, MPI_INT, 2, 45, MPI_COMM_WORLD, &requests[1]);
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, statuses);
        MPI_Request_free(&requests[0]);
        MPI_Request_free(&requests[1]);
    }
    send_to_first(MPI_COMM_WORLD, 1, 0, 44);
    send_to_first(MPI_COMM_WORLD, 2, 0, 45);

    others_wait(); /* 18: a persistent send, made while nothing is measured */
    if (rank == 0) {
        MPI_Pcontrol(0);
        MPI_Ssend_init(NULL, 0, MPI_INT, 1, 46, MPI_COMM_WORLD, &requests[0]);
        MPI_Pcontrol(1);
        MPI_Start(&requests[0]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        MPI_Request_free(&requests[0]);
    }
    if (rank == 1)
        MPI_Recv(NULL, 0, MPI_INT, 0, 46, MPI_COMM_WORLD, MPI_STATUS_IGNORE);

    others_wait(); /* 19: a send that is too large to be buffered */
    if (rank == 0) {
        MPI_Isend(large, sizeof large, MPI_CHAR, 2, 47, MPI_COMM_WORLD, &requests[0]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    }
    if (rank == 2)
        MPI_Recv(large, sizeof large, MPI_CHAR, 0, 47, MPI_COMM_WORLD, MPI_STATUS_IGNORE);

    others_wait(); /* 20: a loop of tests */
    if (rank == 0) {
        MPI_Irecv(NULL, 0, MPI_INT, 1, 48, MPI_COMM_WORLD, &requests[0]);
        for (done = 0; !done;)
            MPI_Test(&requests[0], &done, MPI_STATUS_IGNORE);
    }
    send_to_first(MPI_COMM_WORLD, 1, 0, 48);

    if (rank == 2)
        MPI_Send(NULL, 0, MPI_INT, 0, 52, MPI_COMM_WORLD);
    others_wait(); /* 21: a request of the program's own, whose handle may have been that of a receive */
    if (rank == 0) {
        MPI_Irecv(NULL, 0, MPI_INT, 2, 52, MPI_COMM_WORLD, &requests[0]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        MPI_Grequest_start(queries, frees, cancels, NULL, &requests[0]);
        pthread_create(&thread, NULL, receives_and_completes, &requests[0]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        pthread_join(thread, NULL);
    }
    send_to_first(MPI_COMM_WORLD, 1, 0, 53);
}

/* One of a message that has been matched, whose sender is in nothing's arguments, and a receive. */
static void matched(void)
{
    static char large[1 << 20];
    MPI_Request requests[2];
    MPI_Message message;

    if (rank == 2)
        MPI_Isend(large, sizeof large, MPI_CHAR, 0, 54, MPI_COMM_WORLD, &requests[0]);
    others_wait(); /* 39 */
    if (rank == 0) {
        MPI_Mprobe(2, 54, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
        MPI_Imrecv(large, sizeof large, MPI_CHAR, &message, &requests[0]);
        MPI_Irecv(NULL, 0, MPI_INT, 1, 55, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, statuses);
    }
    if (rank == 2)
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    send_to_first(MPI_COMM_WORLD, 1, 0, 55);
}

static void collectives(void)
{
    MPI_Comm copy, other;
    MPI_Request requests[2];
    pthread_t thread;
    int in[3], out[2] = {0, 0}, tag = 49;

    others_wait(); /* 22: the root, the last one there */
    MPI_Reduce(out, in, 1, MPI_INT, MPI_SUM, size - 1, turned);

    others_wait(); /* 23 */
    MPI_Gather(out, 1, MPI_INT, in, 1, MPI_INT, 0, MPI_COMM_WORLD);

    others_wait(); /* 24 */
    MPI_Barrier(turned);

    others_wait(); /* 25 */
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_set_name(copy, "copy");

    others_wait(); /* 26 */
    MPI_Allreduce(out, in, 1, MPI_INT, MPI_SUM, copy);

    others_wait(); /* 27 */
    MPI_Comm_split(copy, rank, 0, &other);
    MPI_Comm_free(&other);

    others_wait(); /* 28: a collective's request, the third on the copy */
    MPI_Ibarrier(copy, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);

    others_wait(); /* 29: of two nothing is told */
    MPI_Iallreduce(&out[0], &in[0], 1, MPI_INT, MPI_SUM, copy, &requests[0]);
    MPI_Iallreduce(&out[1], &in[1], 1, MPI_INT, MPI_SUM, turned, &requests[1]);
    MPI_Waitall(2, requests, statuses);

    others_wait(); /* 30: a thread in a receive, the other in a barrier */
    if (rank == 0)
        pthread_create(&thread, NULL, receives, &tag);
    MPI_Barrier(copy);
    send_to_first(MPI_COMM_WORLD, 1, 0, 49);
    if (rank == 0)
        pthread_join(thread, NULL);
    MPI_Comm_free(&copy);
}

static void windows_and_files(void)
{
    char path[4096];
    MPI_Group all, one;
    MPI_Win box;
    MPI_File file;
    int *room, first = 0, second = 1;

    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &room, &box);
    MPI_Win_set_name(box, "box");
    MPI_Comm_group(MPI_COMM_WORLD, &all);

    others_wait(); /* 31 */
    MPI_Win_fence(0, box);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, box);

    others_wait(); /* 32: rank 1 has access */
    MPI_Group_incl(all, 1, rank == 0 ? &second : &first, &one);
    if (rank == 0) {
        MPI_Win_post(one, 0, box);
        MPI_Win_wait(box);
    }
    if (rank == 1) {
        MPI_Win_start(one, 0, box);
        MPI_Win_complete(box);
    }
    MPI_Group_free(&one);
    MPI_Group_free(&all);

    if (rank == 1)
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, box);
    MPI_Barrier(MPI_COMM_WORLD);
    others_wait(); /* 33: rank 1 has the lock of rank 2 */
    if (rank == 0)
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, box);
    if (rank < 2)
        MPI_Win_unlock(2, box);
    MPI_Barrier(MPI_COMM_WORLD); /* MPICH gives a lock while its target is in a call */

    others_wait(); /* 34 */
    MPI_Win_free(&box);

    others_wait(); /* 35 */
    snprintf(path, sizeof path, "%s/whom.data", dir);
    MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);

    others_wait(); /* 36: each writes its part */
    MPI_File_seek(file, 4 * (MPI_Offset)rank, MPI_SEEK_SET);
    MPI_File_write_all(file, &rank, 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
}

/* Rank 0 on one side, the others on the other. */
static void between_groups(void)
{
    MPI_Comm side, bridge;
    int number = 0;

    MPI_Comm_split(MPI_COMM_WORLD, rank == 0, rank, &side);
    MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, rank == 0, 50, &bridge);
    MPI_Comm_set_name(bridge, "bridge");

    others_wait(); /* 37: the world's rank 2 is the second one there */
    if (rank == 0)
        MPI_Recv(NULL, 0, MPI_INT, 1, 51, bridge, MPI_STATUS_IGNORE);
    send_to_first(bridge, 2, 0, 51);

    others_wait(); /* 38 */
    MPI_Bcast(&number, 1, MPI_INT, rank == 0 ? 1 : rank == 2 ? MPI_ROOT : MPI_PROC_NULL, bridge);

    MPI_Comm_free(&bridge);
    MPI_Comm_free(&side);
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
        MPI_Waitall(2, requests, statuses);
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
    MPI_Waitall(2, requests, statuses);

    completions();
    collectives();
    windows_and_files();
    between_groups();
    matched();

    MPI_Comm_free(&turned);
    MPI_Finalize();
    if (rank == 0)
        puts("whom: done");
    return 0;
}
