/*
 * endure SECONDS SEED HOW DIR: rounds of calls with pauses between them, with books (books.h), until so many seconds
 * have been paused, or DIR/stop.go is there; the books of the end are named "end". Then it ends by HOW:
 *
 *     finalize, exit, _exit   all ranks
 *     abort, kill, oom        rank 0, which in the last case takes memory until it is killed; the others wait for
 *                             their launcher to end them
 *     hang                    rank 0 never comes to a barrier in which the others wait
 *
 * All ranks pause at the same time, for times that SEED tells: nobody waits in MPI for long. Each rank leaves its
 * process id in DIR/pid.RANK once it is initialised.
 */
#include "books.h"
#include <signal.h>

#define RING "comm:ring"

enum { LARGEST = 20000 };
enum { MOST_MIB = 2048 }; /* to take, where nobody is killed for it */

static int rank, size;
static unsigned seed;

static unsigned draw(unsigned below)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % below;
}

static void leave_pid(const char *dir)
{
    char path[4096], finished[4096];
    FILE *out;

    snprintf(path, sizeof path, "%s/.pid.%d", dir, rank);
    snprintf(finished, sizeof finished, "%s/pid.%d", dir, rank);
    out = fopen(path, "w");
    if (out == NULL || fprintf(out, "%d", (int)getpid()) < 0 || fclose(out) != 0 || rename(path, finished) != 0) {
        perror(path);
        _exit(98);
    }
}

static void round_of_calls(MPI_Comm ring)
{
    static char out[LARGEST], in[LARGEST];
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    const int times = 1 + draw(10), bytes = draw(LARGEST);
    int one = 1, sum;
    MPI_Comm brief;

    for (int i = 0; i < times; i++) {
        DO(RING, SENT(bytes), RECEIVED(bytes), MPI_Sendrecv, out, bytes, MPI_BYTE, next, 1, in, bytes, MPI_BYTE, before,
           1, ring, MPI_STATUS_IGNORE);
        DO(RING, SENT(4), RECEIVED(4), MPI_Allreduce, &one, &sum, 1, MPI_INT, MPI_SUM, ring);
        EXPECT(sum == size);
    }
    if (draw(4) == 0) {
        DO("comm:MPI_COMM_WORLD", NONE, NONE, MPI_Comm_dup, MPI_COMM_WORLD, &brief);
        MPI_Comm_set_name(brief, "brief");
        DO("comm:brief", NONE, NONE, MPI_Barrier, brief);
        DO("-", NONE, NONE, MPI_Comm_free, &brief);
    }
}

/* Whether rank 0 has no time left, or sees the file. */
static int stopped(MPI_Comm ring, const char *dir, double left)
{
    char path[4096];
    int stop;

    snprintf(path, sizeof path, "%s/stop.go", dir);
    stop = left <= 0 || access(path, F_OK) == 0;
    DO(RING, rank == 0 ? SENT(4) : NONE, rank == 0 ? NONE : RECEIVED(4), MPI_Bcast, &stop, 1, MPI_INT, 0, ring);
    return stop;
}

/* Waits for the launcher, which should not take that long. */
static _Noreturn void wait_to_be_killed(void)
{
    alarm(HOLD_LIMIT_SECONDS);
    for (;;)
        pause();
}

static int leave(const char *how, MPI_Comm ring)
{
    if (strcmp(how, "exit") == 0)
        exit(0);
    if (strcmp(how, "_exit") == 0)
        _exit(0);
    if (strcmp(how, "hang") == 0) {
        alarm(HOLD_LIMIT_SECONDS);
        if (rank != 0)
            MPI_Barrier(ring);
        wait_to_be_killed();
    }
    if (strcmp(how, "finalize") != 0 && rank != 0)
        wait_to_be_killed();
    if (strcmp(how, "abort") == 0)
        MPI_Abort(MPI_COMM_WORLD, 4);
    if (strcmp(how, "kill") == 0)
        raise(SIGKILL);
    if (strcmp(how, "oom") == 0) {
        for (int mib = 0; mib < MOST_MIB; mib++) {
            void *room = malloc(1 << 20);

            if (room == NULL || memset(room, 1, 1 << 20) == NULL)
                break;
        }
        _exit(97);
    }
    return MPI_Finalize();
}

int main(int argc, char **argv)
{
    MPI_Comm ring;
    double left;
    const char *dir;

    if (argc != 5)
        return 94;
    left = atof(argv[1]);
    seed = (unsigned)atoi(argv[2]);
    dir = argv[4];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    leave_pid(dir);
    DO("comm:MPI_COMM_WORLD", NONE, NONE, MPI_Comm_dup, MPI_COMM_WORLD, &ring);
    MPI_Comm_set_name(ring, "ring");
    do {
        const long ms = 100 + draw(1400);
        const struct timespec pause = {ms / 1000, ms % 1000 * 1000000};

        round_of_calls(ring);
        nanosleep(&pause, NULL);
        left -= ms / 1e3;
    } while (!stopped(ring, dir, left));
    books_leave(dir, "end", rank);
    return leave(argv[3], ring);
}
