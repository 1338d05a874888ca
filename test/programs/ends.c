/*
 * ends HOW DIR: rank 0 ends by HOW, one of finalize, pthread_exit, exit, handler, abort, _exit, kill, segv, after the hold
 * point "up". The others end regularly with "finalize" and "pthread_exit"; otherwise they wait for their launcher to end them.
 *
 * pthread_exit leaves main's thread alone after MPI_Finalize: the process ends when its last thread does.
 * handler calls exit in a signal handler that has, as good as surely, interrupted malloc.
 */
#include "hold.h"
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>

static void leave(int signal)
{
    (void)signal;
    exit(3);
}

static void allocate_until_the_alarm(void)
{
    const struct itimerval soon = {.it_value = {.tv_usec = 150000}};
    void *kept[64] = {NULL};

    signal(SIGALRM, leave);
    setitimer(ITIMER_REAL, &soon, NULL);
    for (unsigned i = 0;; i++) {
        free(kept[i % 64]);
        kept[i % 64] = malloc(20000 + i * 7919 % 90000);
    }
}

int main(int argc, char **argv)
{
    const struct rlimit none = {0, 0};
    const char *how = argc > 1 ? argv[1] : "finalize", *dir = argc > 2 ? argv[2] : "-";
    int rank;

    setrlimit(RLIMIT_CORE, &none);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        printf("ends: by %s\n", how);
        fflush(stdout);
    }
    hold(dir, "up", rank);

    if (strcmp(how, "finalize") == 0) {
        MPI_Finalize();
        return 0;
    }
    if (strcmp(how, "pthread_exit") == 0) {
        MPI_Finalize();
        pthread_exit(NULL);
    }
    if (rank != 0) {
        sleep(HOLD_LIMIT_SECONDS);
        _exit(99);
    }
    if (strcmp(how, "exit") == 0)
        exit(3);
    if (strcmp(how, "handler") == 0)
        allocate_until_the_alarm();
    if (strcmp(how, "abort") == 0)
        MPI_Abort(MPI_COMM_WORLD, 4);
    if (strcmp(how, "_exit") == 0)
        _exit(5);
    if (strcmp(how, "kill") == 0)
        kill(getpid(), SIGKILL);
    if (strcmp(how, "segv") == 0) {
        volatile int *nowhere = NULL;
        *nowhere = 1;
    }
    return 97;
}
