/*
 * piped DIR: a thread hands numbers to another one through a pipe, which alone says that they are there. The pipe is
 * made before MPI_Init, so that it has the numbers which a new table of descriptors gives first. Hold point: "up".
 */
#include "hold.h"
#include <mpi.h>
#include <pthread.h>

enum { NUMBERS = 100 };

static int ends[2], numbers[2 * NUMBERS];

static void *sum_up(void *sum)
{
    char told;

    for (int i = 0; i < 2 * NUMBERS && read(ends[0], &told, 1) == 1; i++)
        *(long *)sum += numbers[i];
    return NULL;
}

static void hand_over(int from)
{
    for (int i = from; i < from + NUMBERS; i++) {
        numbers[i] = i;
        if (write(ends[1], "", 1) != 1)
            _exit(97);
    }
}

int main(int argc, char **argv)
{
    const char *dir = argc > 1 ? argv[1] : "-";
    pthread_t thread;
    long sum = 0;
    int provided;

    if (pipe(ends) != 0)
        return 96;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    if (pthread_create(&thread, NULL, sum_up, &sum) != 0)
        return 95;
    hand_over(0);
    hold(dir, "up", 0);
    hand_over(NUMBERS);
    pthread_join(thread, NULL);
    MPI_Finalize();
    printf("piped: %ld\n", sum);
    return 0;
}
