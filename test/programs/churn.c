/*
 * churn SECONDS THREADS: each thread makes and frees communicators and windows as fast as it can, checks what goes
 * through them, and keeps up to KEEP communicators alive. Rank 0 looks at the clock for all.
 */
#include "hold.h"
#include <mpi.h>
#include <pthread.h>

enum { KEEP = 8, MAX_THREADS = 16 };

struct worker {
    pthread_t thread;
    MPI_Comm home; /* each thread's collectives have a communicator of their own */
    double until;
    int windows;
    long rounds, wrong;
};

static void window(MPI_Comm comm, struct worker *me)
{
    MPI_Win win;
    int rank, size, *here = malloc(sizeof *here);

    *here = -1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Win_create(here, sizeof *here, sizeof *here, MPI_INFO_NULL, comm, &win);
    if (me->rounds / 8 % 2)
        MPI_Win_set_name(win, "churned");
    MPI_Win_fence(0, win);
    MPI_Put(&rank, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
    me->wrong += *here != (rank + size - 1) % size;
    free(here);
}

static void *work(void *argument)
{
    struct worker *me = argument;
    MPI_Comm alive[KEEP];
    int count = 0, stop = 0, rank, size;

    MPI_Comm_rank(me->home, &rank);
    MPI_Comm_size(me->home, &size);
    while (!stop) {
        char name[16];
        int sum = 0, one = 1;

        if (me->rounds % 3)
            MPI_Comm_dup(me->home, &alive[count]);
        else
            MPI_Comm_split(me->home, 0, -rank, &alive[count]);
        snprintf(name, sizeof name, "churn-%ld", me->rounds % 5);
        MPI_Comm_set_name(alive[count], name);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, alive[count]);
        me->wrong += sum != size;
        if (me->windows && me->rounds % 8 == 0)
            window(alive[count], me);
        if (++count == KEEP)
            while (count > 0)
                MPI_Comm_free(&alive[--count]);
        me->rounds++;
        stop = MPI_Wtime() > me->until;
        MPI_Bcast(&stop, 1, MPI_INT, 0, me->home);
    }
    while (count > 0)
        MPI_Comm_free(&alive[--count]);
    return NULL;
}

int main(int argc, char **argv)
{
    const double seconds = argc > 1 ? atof(argv[1]) : 2;
    const int threads = argc > 2 ? atoi(argv[2]) : 1;
    struct worker workers[MAX_THREADS] = {0};
    long wrong = 0, all = 0;
    int provided, rank;

    MPI_Init_thread(&argc, &argv, threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (threads > MAX_THREADS || (threads > 1 && provided < MPI_THREAD_MULTIPLE))
        MPI_Abort(MPI_COMM_WORLD, 91);
    for (int i = 0; i < threads; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &workers[i].home);
        workers[i].until = MPI_Wtime() + seconds;
        workers[i].windows = threads == 1; /* not every one-sided component allows threads */
    }
    if (threads == 1)
        work(&workers[0]);
    else {
        for (int i = 0; i < threads; i++)
            pthread_create(&workers[i].thread, NULL, work, &workers[i]);
        for (int i = 0; i < threads; i++)
            pthread_join(workers[i].thread, NULL);
    }
    for (int i = 0; i < threads; i++) {
        wrong += workers[i].wrong;
        MPI_Comm_free(&workers[i].home);
    }
    MPI_Reduce(&wrong, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    if (rank == 0)
        printf("churn: wrong results %ld\n", all);
    return all != 0;
}
