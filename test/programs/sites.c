/*
 * sites DIR THREADS: calls from twenty places, each a known number of times with known bytes, and of THREADS threads
 * from one more. At hold point "done" DIR/done.sites.RANK has lines of function, communicator ("-": none), the line of
 * this file, calls, bytes, from the program's own knowledge. Then rank 0 comes late to a Barrier, and the hold point is
 * "late". "-" as DIR: no file.
 */
#include "books.h"

static int rank, size;
static int out[1000], in[1000];
static MPI_Comm halo;

static struct site {
    const char *function, *comm;
    int line;
    long long calls, bytes;
} sites[64];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void note(const char *function, const char *comm, int line, long long bytes)
{
    struct site *s = sites;

    pthread_mutex_lock(&mutex);
    while (s->line != 0 && (s->line != line || strcmp(s->function, function) != 0))
        s++;
    s->function = function;
    s->comm = comm;
    s->line = line;
    s->calls++;
    s->bytes += bytes;
    pthread_mutex_unlock(&mutex);
}

/* BYTES: of the larger buffer. */
#define AT(comm, bytes, function, ...)                                                  \
    do {                                                                                \
        books_expect(#function, function(__VA_ARGS__), 1);                              \
        note(#function, comm, __LINE__, bytes);                                         \
    } while (0)
#define WORLD "MPI_COMM_WORLD"

/* One place, whoever calls it. */
static __attribute__((noinline)) void meets(void)
{
    AT(WORLD, 0, MPI_Barrier, MPI_COMM_WORLD);
}

static void messages(int next, int before)
{
    MPI_Request r[2];

    for (int i = 0; i < 7; i++) {
        AT(WORLD, 80, MPI_Sendrecv, out, 20, MPI_INT, next, 1, in, 10 + 10, MPI_INT, before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        AT("halo", 200, MPI_Irecv, in, 50, MPI_INT, before, 2, halo, &r[0]);
        AT("halo", 28, MPI_Isend, out, 7, MPI_INT, next, 2, halo, &r[1]);
        AT("-", 0, MPI_Waitall, 2, r, MPI_STATUSES_IGNORE);
    }
    AT(WORLD, 4, MPI_Isend, out, 1, MPI_INT, rank, 3, MPI_COMM_WORLD, &r[0]);
    AT(WORLD, 4, MPI_Recv, in, 9, MPI_INT, rank, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    AT("-", 0, MPI_Wait, &r[0], MPI_STATUS_IGNORE);
}

static void collectives(void)
{
    long long root = rank == 0 ? size : 1;

    for (int i = 0; i < 3; i++)
        meets();
    for (int i = 0; i < 4; i++)
        AT(WORLD, 400, MPI_Bcast, out, 100, MPI_INT, 0, MPI_COMM_WORLD);
    for (int i = 0; i < 5; i++)
        AT(WORLD, 80, MPI_Allreduce, out, in, 20, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    AT(WORLD, 40, MPI_Allreduce, out, in, 10, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < 6; i++)
        AT("halo", 4, MPI_Allreduce, out, in, 1, MPI_INT, MPI_MAX, halo);
    AT("halo", 0, MPI_Barrier, halo);
    AT(WORLD, 12 * size, MPI_Allgather, out, 3, MPI_INT, in, 3, MPI_INT, MPI_COMM_WORLD);
    AT(WORLD, 8 * size, MPI_Alltoall, out, 2, MPI_INT, in, 2, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < 2; i++)
        AT("halo", 4 * root, MPI_Gather, out, 1, MPI_INT, in, 1, MPI_INT, 0, halo);
    AT("halo", 20, MPI_Reduce, out, in, 5, MPI_INT, MPI_SUM, 0, halo);
    AT("halo", 8, MPI_Allreduce, out, in, 2, MPI_INT, MPI_MIN, halo);
    AT(WORLD, 24, MPI_Scan, out, in, 6, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    meets();
}

static void *sends_to_itself(void *number)
{
    for (int i = 0; i < 100; i++) {
        MPI_Request r;
        int tag = 10 + *(int *)number, box;

        AT(WORLD, 4, MPI_Irecv, &box, 1, MPI_INT, rank, tag, MPI_COMM_WORLD, &r);
        AT(WORLD, 4, MPI_Send, out, 1, MPI_INT, rank, tag, MPI_COMM_WORLD);
        AT("-", 0, MPI_Wait, &r, MPI_STATUS_IGNORE);
    }
    return NULL;
}

static void leave(const char *dir)
{
    char path[4096];
    FILE *file;

    if (strcmp(dir, "-") == 0)
        return;
    snprintf(path, sizeof path, "%s/done.sites.%d", dir, rank);
    file = fopen(path, "w");
    EXPECT(file != NULL);
    for (const struct site *s = sites; s->line != 0; s++)
        fprintf(file, "%s %s %d %lld %lld\n", s->function, s->comm, s->line, s->calls, s->bytes);
    fclose(file);
}

int main(int argc, char **argv)
{
    const char *dir = argc > 1 ? argv[1] : "-";
    int threads = argc > 2 ? atoi(argv[2]) : 0, numbers[16], level;
    pthread_t running[16];

    MPI_Init_thread(&argc, &argv, threads > 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    EXPECT(threads <= 16 && (threads == 0 || level == MPI_THREAD_MULTIPLE));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    AT(WORLD, 0, MPI_Comm_dup, MPI_COMM_WORLD, &halo);
    MPI_Comm_set_name(halo, "halo");
    messages((rank + 1) % size, (rank + size - 1) % size);
    collectives();
    for (int i = 0; i < threads; i++) {
        numbers[i] = i;
        EXPECT(pthread_create(&running[i], NULL, sends_to_itself, &numbers[i]) == 0);
    }
    for (int i = 0; i < threads; i++)
        EXPECT(pthread_join(running[i], NULL) == 0);
    leave(dir);
    hold(dir, "done", rank);
    if (rank == 0 && strcmp(dir, "-") != 0)
        nanosleep(&(struct timespec){1, 0}, NULL);
    AT("halo", 0, MPI_Barrier, halo);
    hold(dir, "late", rank);
    MPI_Comm_free(&halo);
    MPI_Finalize();
    if (rank == 0)
        puts("sites: done");
    return 0;
}
