/* libplugin.c - what plugin.c opens: uses MPI, also functions that both preloaded libraries stand in front of, and
 * prints what they answer. Messages are sent by a thread with the smallest stack there is: the first call of a
 * function must find room there. */
#include <limits.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

int run(int *argc, char ***argv);

static MPI_Comm comm;
static int codes[7], out[4] = {1, 2, 3, 4}, in[4];

static void *exchange(void *unused)
{
    MPI_Request request;

    codes[2] = MPI_Isend(out, 4, MPI_INT, 0, 0, comm, &request);
    codes[3] = MPI_Recv(in, 4, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE);
    codes[4] = MPI_Wait(&request, MPI_STATUS_IGNORE);
    return unused;
}

int run(int *argc, char ***argv)
{
    pthread_attr_t small;
    pthread_t thread;
    int level;

    codes[0] = MPI_Init_thread(argc, argv, MPI_THREAD_SERIALIZED, &level);
    codes[1] = MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN);
    codes[2] = pthread_create(&thread, &small, exchange, NULL);
    if (codes[2] == 0)
        pthread_join(thread, NULL);
    codes[5] = PMPI_Comm_free(&comm);
    codes[6] = MPI_Finalize();
    printf("plugin: codes %d %d %d %d %d %d %d, received %d\n", codes[0], codes[1], codes[2], codes[3], codes[4], codes[5], codes[6], in[3]);
    return 0;
}
