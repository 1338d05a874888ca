/*
 * cpu DIR [DEVICE]: six ranks on one core; with fewer, the last ones are missing. Rank 0 computes for three seconds,
 * rank 3 does at nice value 15, rank 5 in two threads of OpenMP; until the test lets them go from hold point "asleep",
 * rank 1 sleeps, rank 2 reads from a pipe, and rank 4, which has DEVICE open, waits for a mutex. At hold point "done"
 * each has written what the kernel tells it of its process and its thread to DIR/cpu.RANK, in seconds: the process's
 * CPU, the thread's, and its time in the run queue. There all read from a pipe, so that these stand still.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#include "hold.h"

static const char *dir;
static int ends[2], rank;

static double now(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void computes(double seconds)
{
    for (double end = now(CLOCK_MONOTONIC) + seconds; now(CLOCK_MONOTONIC) < end;)
        ;
}

static void *writes(void *point)
{
    hold(dir, point, rank);
    if (write(ends[1], "x", 1) != 1)
        _exit(97);
    return NULL;
}

/* Holds while this thread reads. */
static void reads_at(const char *point)
{
    pthread_t writer;
    char byte;

    pthread_create(&writer, NULL, writes, (void *)point);
    if (read(ends[0], &byte, 1) != 1)
        _exit(94);
    pthread_join(writer, NULL);
}

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

static void *holds(void *asked)
{
    pthread_mutex_lock(&held);
    *(volatile int *)asked = 1;
    hold(dir, "asleep", rank);
    pthread_mutex_unlock(&held);
    return NULL;
}

/* Holds while this thread waits for a mutex. */
static void waits_for_a_mutex(void)
{
    volatile int asked = 0;
    pthread_t holder;

    pthread_create(&holder, NULL, holds, (void *)&asked);
    while (!asked)
        sched_yield();
    pthread_mutex_lock(&held);
    pthread_join(holder, NULL);
}

static void tells(void)
{
    unsigned long long core = 0, queue = 0;
    char path[4096];
    FILE *from = fopen("/proc/thread-self/schedstat", "r"), *to;

    if (from == NULL || fscanf(from, "%llu %llu", &core, &queue) != 2)
        _exit(96);
    fclose(from);
    snprintf(path, sizeof path, "%s/cpu.%d", dir, rank);
    to = fopen(path, "w");
    if (to == NULL)
        _exit(95);
    fprintf(to, "%f %f %f\n", now(CLOCK_PROCESS_CPUTIME_ID), (double)core / 1e9, (double)queue / 1e9);
    fclose(to);
}

int main(int argc, char **argv)
{
    cpu_set_t first;

    dir = argc > 1 ? argv[1] : "-";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    sched_getaffinity(0, sizeof first, &first);
    for (int i = CPU_SETSIZE - 1, left = CPU_COUNT(&first); i >= 0 && left > 1; i--)
        if (CPU_ISSET(i, &first)) {
            CPU_CLR(i, &first);
            left--;
        }
    sched_setaffinity(0, sizeof first, &first);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 3)
        setpriority(PRIO_PROCESS, 0, 15);
    if (rank == 0 || rank == 3)
        computes(3);
    if (rank == 5) {
#pragma omp parallel num_threads(2)
        computes(3);
    }
    if (rank == 4 && argc > 2 && open(argv[2], O_RDONLY) < 0)
        _exit(92);
    if (pipe(ends) != 0)
        _exit(93);
    if (rank == 1)
        hold(dir, "asleep", rank);
    if (rank == 2)
        reads_at("asleep");
    if (rank == 4)
        waits_for_a_mutex();
    tells();
    reads_at("done");
    MPI_Finalize();
    if (rank == 0)
        puts("cpu: done");
    return 0;
}
