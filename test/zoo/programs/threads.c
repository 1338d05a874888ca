/* threads - trouble in programs with several threads. */
#include "zoo.h"

#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int word;

/* A thread that waits for orders, which are rare. */
static void *serve(void *comm)
{
    FOREVER
        MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, zoo.tag, *(MPI_Comm *)comm, MPI_STATUS_IGNORE);
    return NULL;
}

static void *work(void *seconds)
{
    compute(*(double *)seconds);
    return NULL;
}

static void *hold_and_receive(void *comm)
{
    pthread_mutex_lock(&mutex);
    MPI_Recv(&word, 1, MPI_INT, place(zoo.partner), zoo.tag, *(MPI_Comm *)comm, MPI_STATUS_IGNORE);
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void *compute_on(void *comm)
{
    FOREVER {
        compute(0.05);
        MPI_Barrier(*(MPI_Comm *)comm);
    }
    return NULL;
}

static void start(pthread_t *thread, void *(*what)(void *), void *with)
{
    if (pthread_create(thread, NULL, what, with) != 0)
        MPI_Abort(MPI_COMM_WORLD, 3);
}

int main(int argc, char **argv)
{
    pthread_t thread;
    double seconds;

    begin(argc, argv, MPI_THREAD_MULTIPLE);

    MPI_Comm orders = ordered("orders");

    good_steps(20);
    if (is("service")) { /* healthy: it sits in MPI_Recv by design */
        start(&thread, serve, &orders);
        FOREVER {
            compute(0.05);
            MPI_Barrier(zoo.comm);
        }
    }
    if (is("service-in-main")) { /* healthy: the initialising thread serves, another one computes */
        start(&thread, compute_on, &zoo.comm);
        serve(&orders);
    }
    if (is("late-beside-service")) {
        start(&thread, serve, &orders);
        FOREVER {
            compute(guilty() ? 0.09 : 0.01);
            MPI_Barrier(zoo.comm);
        }
    }
    if (is("late-worker")) /* the initialising thread waits for the slow one in pthread_join */
        FOREVER {
            seconds = guilty() ? 0.09 : 0.01;
            start(&thread, work, &seconds);
            pthread_join(thread, NULL);
            MPI_Barrier(zoo.comm);
        }
    if (is("mutex")) { /* a thread has the mutex in a receive, the other one wants it */
        if (guilty()) {
            start(&thread, hold_and_receive, &orders);
            doze(0.5);
            pthread_mutex_lock(&mutex);
        }
        MPI_Barrier(zoo.comm);
        MPI_Send(&word, 1, MPI_INT, place(zoo.culprit), zoo.tag, orders);
    }
    if (is("worker-receives")) { /* what its partner would send after the barrier */
        if (guilty()) {
            start(&thread, hold_and_receive, &orders);
            pthread_join(thread, NULL);
        }
        MPI_Barrier(zoo.comm);
        MPI_Send(&word, 1, MPI_INT, place(zoo.culprit), zoo.tag, orders);
    }
    if (is("barriers-crossed")) { /* two threads of the culprit take the communicators the other way round */
        MPI_Barrier(guilty() ? orders : zoo.comm);
        MPI_Barrier(guilty() ? zoo.comm : orders);
    }
    unknown_kind();
    return 1;
}
