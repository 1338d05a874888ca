/*
 * serving beside|first|equal SECONDS: threads of two ranks that call MPI. "beside": the one that has initialised it works, another
 * one waits in MPI_Recv. "first": that one waits in MPI_Recv, another one works. "equal": four work. To work is to
 * compute for 20 ms and to call MPI_Barrier on a communicator of its own, again and again.
 */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double seconds;
static int rank;
static MPI_Comm alone[4], requests;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *work(void *comm)
{
    double end = now() + seconds;

    while (now() < end) {
        double step = now() + 0.02;

        while (now() < step)
            ;
        MPI_Barrier(*(MPI_Comm *)comm);
    }
    return NULL;
}

/* Until the one message that comes, from the other rank when it has worked. */
static void *serve(void *nothing)
{
    int request;

    MPI_Recv(&request, 1, MPI_INT, MPI_ANY_SOURCE, 0, requests, MPI_STATUS_IGNORE);
    return nothing;
}

static void end_service(void)
{
    int request = 0;

    MPI_Send(&request, 1, MPI_INT, 1 - rank, 0, requests);
}

static void *work_and_end_service(void *comm)
{
    work(comm);
    end_service();
    return NULL;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    pthread_t threads[3];
    int provided, started = 0;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    seconds = argc > 2 ? strtod(argv[2], NULL) : 1;
    if (provided != MPI_THREAD_MULTIPLE)
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &requests);
    for (int i = 0; i < 4; i++)
        MPI_Comm_dup(MPI_COMM_SELF, &alone[i]);
    if (strcmp(how, "first") == 0) {
        pthread_create(&threads[started++], NULL, work_and_end_service, &alone[1]);
        serve(NULL);
    } else if (strcmp(how, "beside") == 0) {
        pthread_create(&threads[started++], NULL, serve, NULL);
        work(&alone[0]);
        end_service();
    } else {
        while (started < 3) {
            pthread_create(&threads[started], NULL, work, &alone[1 + started]);
            started++;
        }
        work(&alone[0]);
    }
    while (started > 0)
        pthread_join(threads[--started], NULL);
    MPI_Finalize();
    puts("serving: done");
    return 0;
}
