/*
 * profile_threads ROUNDS DIR: threads that call MPI at the same time (MPI_THREAD_MULTIPLE), with books (books.h).
 * Four of them live all the time; each has a communicator of its own, "own-0" to "own-3", and all use "shared".
 * Others come, call and end. Hold points: "half", while the four stand still, and "done", when all have ended. The
 * books of the end are named "end".
 */
#include "books.h"

enum { THREADS = 4 };

static MPI_Comm own[THREADS], shared;
static char names[THREADS][16];
static int rank, size, next, before, rounds;
static pthread_barrier_t all_there;

/* Of thread NUMBER: messages and sums, as many bytes as the number says. */
static void calls(int number)
{
    const int bytes = 8 * (number + 1);
    char out[8 * THREADS] = {0}, in[8 * THREADS];
    int one = 1, sum = 0;
    MPI_Request r[2];

    DO(names[number], SENT(bytes), RECEIVED(bytes), MPI_Sendrecv, out, bytes, MPI_BYTE, next, 0, in, bytes, MPI_BYTE, before, 0,
       own[number], MPI_STATUS_IGNORE);
    DO(names[number], SENT(4), RECEIVED(4), MPI_Allreduce, &one, &sum, 1, MPI_INT, MPI_SUM, own[number]);
    EXPECT(sum == size);
    DO("comm:shared", NONE, POSTED(bytes), MPI_Irecv, in, bytes, MPI_BYTE, before, number, shared, &r[0]);
    DO("comm:shared", SENT(bytes), NONE, MPI_Isend, out, bytes, MPI_BYTE, next, number, shared, &r[1]);
    DO("-", NONE, NONE, MPI_Waitall, 2, r, MPI_STATUSES_IGNORE);
}

static void *lives(void *argument)
{
    const int number = (int)(size_t)argument;

    for (int half = 0; half < 2; half++) {
        for (int i = 0; i < rounds; i++)
            calls(number);
        pthread_barrier_wait(&all_there);
        pthread_barrier_wait(&all_there); /* as long as the main thread holds */
    }
    return NULL;
}

static void *comes_and_goes(void *argument)
{
    calls((int)(size_t)argument);
    return NULL;
}

static void start(pthread_t *threads, void *(*function)(void *))
{
    for (size_t i = 0; i < THREADS; i++)
        EXPECT(pthread_create(&threads[i], NULL, function, (void *)i) == 0);
}

static void join(const pthread_t *threads)
{
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
    const char *dir = argc > 2 ? argv[2] : "-";
    pthread_t living[THREADS], others[THREADS];
    int provided;

    rounds = argc > 1 ? atoi(argv[1]) : 10;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    EXPECT(provided == MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    next = (rank + 1) % size;
    before = (rank + size - 1) % size;
    DO("comm:MPI_COMM_WORLD", NONE, NONE, MPI_Comm_dup, MPI_COMM_WORLD, &shared);
    MPI_Comm_set_name(shared, "shared");
    for (int i = 0; i < THREADS; i++) {
        DO("comm:MPI_COMM_WORLD", NONE, NONE, MPI_Comm_dup, MPI_COMM_WORLD, &own[i]);
        snprintf(names[i], sizeof names[i], "comm:own-%d", i);
        MPI_Comm_set_name(own[i], names[i] + 5);
    }
    pthread_barrier_init(&all_there, NULL, THREADS + 1);
    start(living, lives);
    pthread_barrier_wait(&all_there);
    for (int i = 0; i < rounds; i++) {
        start(others, comes_and_goes);
        join(others);
    }
    books_hold(dir, "half", rank);
    pthread_barrier_wait(&all_there);
    pthread_barrier_wait(&all_there);
    pthread_barrier_wait(&all_there);
    join(living);
    calls(0); /* this thread has made no message call so far */
    books_hold(dir, "done", rank);
    for (int i = 0; i < THREADS; i++)
        DO("-", NONE, NONE, MPI_Comm_free, &own[i]);
    DO("-", NONE, NONE, MPI_Comm_free, &shared);
    books_leave(dir, "end", rank);
    MPI_Finalize();
    if (rank == 0)
        puts("profile_threads: done");
    return 0;
}
