/*
 * infos.c - threads set and delete keys of one info object, each its own.
 *
 *   infos THREADS ROUNDS
 */
#include <mpi.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST 8

static MPI_Info info;
static int rounds;

static void *set_and_delete(void *key)
{
    for (int i = 0; i < rounds; i++) {
        MPI_Info_set(info, key, "value");
        MPI_Info_delete(info, key);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static char keys[MOST][16];
    pthread_t threads[MOST];
    int level, count = argc > 1 ? atoi(argv[1]) : 0, left = -1;

    rounds = argc > 2 ? atoi(argv[2]) : 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    if (level != MPI_THREAD_MULTIPLE || count < 1 || count > MOST)
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Info_create(&info);
    for (int i = 0; i < count; i++) {
        snprintf(keys[i], sizeof keys[i], "key%d", i);
        if (pthread_create(&threads[i], NULL, set_and_delete, keys[i]) != 0)
            MPI_Abort(MPI_COMM_WORLD, 3);
    }
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    MPI_Info_get_nkeys(info, &left);
    MPI_Info_free(&info);
    printf("%d keys are left\n", left);
    MPI_Finalize();
    return 0;
}
