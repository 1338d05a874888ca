/*
 * faults FAULT DIR: a program with one known fault. It goes on until DIR/stop.go is there; then each rank leaves in
 * DIR/books.RANK how long it has run since MPI_Init, and how long it was in MPI calls, by kinds, as its own clock
 * (MPI_Wtime) tells. To compute is to sleep here: ranks that compute take no time from one another.
 *
 *     compute     rank 1 computes ten times as long as the others, which exchange a halo with it
 *     nodes       the second half of the ranks does
 *     receive     rank 1 computes ten times as long before it receives; the others are in MPI_Ssend meanwhile
 *     send        short messages, sent with MPI_Send: rank 1's network is to be slow (libslow.c)
 *     isend       long messages, sent with MPI_Isend: the same
 *     tiny        nothing but messages of 8 bytes
 *     file        rank 0 writes with MPI_File_write_at, the others wait in a barrier: rank 0's files are to be slow
 *     posix       the same with write()
 */
#include "hold.h"

#include <fcntl.h>
#include <mpi.h>

enum { STEP = 10, SHORT = 40, LONG = 400 };       /* milliseconds of computing */
enum { TINY = 8, EAGER = 1024, LARGE = 4 << 20 }; /* bytes; a receive comes first before a LARGE message goes */
enum { MESSAGES = 16, BURST = 1000 };             /* in a step */
enum { STRIDE = 4 };                              /* steps between two looks for DIR/stop.go */

enum kind { SEND, WAIT, COLLECTIVE, IO, KINDS };
static double spent[KINDS];

/* Makes a call and enters its time. */
#define DO(kind, call)                                                                  \
    do {                                                                                \
        const double began_ = MPI_Wtime();                                              \
        if ((call) != MPI_SUCCESS)                                                      \
            MPI_Abort(MPI_COMM_WORLD, 97);                                              \
        spent[kind] += MPI_Wtime() - began_;                                            \
    } while (0)

static MPI_Comm halo;
static int rank, size, next, before, descriptor;
static MPI_File file;
static char out[LARGE], in[LARGE];

static void compute(int ms)
{
    const struct timespec pause = {0, ms * 1000000L};

    nanosleep(&pause, NULL);
}

/* Messages to the next rank, and from the one before. */
static void ring(int count, int bytes, int blocking)
{
    static MPI_Request requests[2 * BURST];
    static MPI_Status statuses[2 * BURST];
    const double began = MPI_Wtime();
    int i, n = 0;

    for (i = 0; i < count; i++)
        MPI_Irecv(in, bytes, MPI_BYTE, before, 0, halo, &requests[n++]);
    for (i = 0; i < count; i++)
        if (blocking)
            MPI_Send(out, bytes, MPI_BYTE, next, 0, halo);
        else
            MPI_Isend(out, bytes, MPI_BYTE, next, 0, halo, &requests[n++]);
    spent[SEND] += MPI_Wtime() - began;
    DO(WAIT, MPI_Waitall(n, requests, statuses));
}

static void both_sides(int ms)
{
    MPI_Request requests[4];
    MPI_Status statuses[4];

    compute(ms);
    DO(SEND, MPI_Irecv(in, TINY, MPI_BYTE, before, 0, halo, &requests[0]));
    DO(SEND, MPI_Irecv(in + TINY, TINY, MPI_BYTE, next, 1, halo, &requests[1]));
    DO(SEND, MPI_Isend(out, TINY, MPI_BYTE, next, 0, halo, &requests[2]));
    DO(SEND, MPI_Isend(out, TINY, MPI_BYTE, before, 1, halo, &requests[3]));
    DO(WAIT, MPI_Waitall(4, requests, statuses));
}

static void one_computes(void)
{
    both_sides(rank == 1 ? LONG : SHORT);
}

static void half_computes(void)
{
    both_sides(rank >= size / 2 ? LONG : SHORT);
}

static void one_receives_late(void)
{
    int i;

    compute(rank == 1 ? LONG : SHORT);
    if (rank != 1)
        DO(SEND, MPI_Ssend(out, EAGER, MPI_BYTE, 1, 0, halo));
    else
        for (i = 1; i < size; i++)
            DO(WAIT, MPI_Recv(in, EAGER, MPI_BYTE, MPI_ANY_SOURCE, 0, halo, MPI_STATUS_IGNORE));
}

static void all_send(void)
{
    compute(STEP);
    ring(MESSAGES, EAGER, 1);
}

static void all_start_sends(void)
{
    compute(STEP);
    ring(1, LARGE, 0);
}

static void all_talk(void)
{
    ring(BURST, TINY, 0);
}

static void one_writes_with_mpi(void)
{
    compute(STEP);
    if (rank == 0)
        DO(IO, MPI_File_write_at(file, 0, out, EAGER, MPI_BYTE, MPI_STATUS_IGNORE));
    DO(COLLECTIVE, MPI_Barrier(halo));
}

static void one_writes(void)
{
    compute(STEP);
    if (rank == 0 && write(descriptor, out, EAGER) != EAGER)
        MPI_Abort(MPI_COMM_WORLD, 98);
    DO(COLLECTIVE, MPI_Barrier(halo));
}

static const struct fault {
    const char *name;
    void (*step)(void);
} faults[] = {
    {"compute", one_computes},  {"nodes", half_computes}, {"receive", one_receives_late}, {"send", all_send},
    {"isend", all_start_sends}, {"tiny", all_talk},       {"file", one_writes_with_mpi},  {"posix", one_writes},
};

static const struct fault *find(const char *name)
{
    size_t i;

    for (i = 0; i < sizeof faults / sizeof *faults; i++)
        if (strcmp(faults[i].name, name) == 0)
            return &faults[i];
    return NULL;
}

/* The file DIR/NAME.RANK. */
static const char *path(const char *dir, const char *name)
{
    static char text[4096];

    snprintf(text, sizeof text, "%s/%s.%d", dir, name, rank);
    return text;
}

static void leave_books(const char *dir, double seconds)
{
    FILE *books = fopen(path(dir, "books"), "w");

    if (books == NULL)
        MPI_Abort(MPI_COMM_WORLD, 98);
    fprintf(books, "%.6f s, in MPI send %.6f wait %.6f collective %.6f file %.6f\n", seconds, spent[SEND], spent[WAIT],
        spent[COLLECTIVE], spent[IO]);
    fclose(books);
}

int main(int argc, char **argv)
{
    const struct fault *fault = argc == 3 ? find(argv[1]) : NULL;
    int stop = 0, found = 0;
    char sign[4096];
    double began;
    long step;

    if (fault == NULL) {
        fputs("usage: faults compute|nodes|receive|send|isend|tiny|file|posix DIR\n", stderr);
        return 2;
    }
    MPI_Init(&argc, &argv);
    began = MPI_Wtime();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    next = (rank + 1) % size;
    before = (rank + size - 1) % size;
    DO(COLLECTIVE, MPI_Comm_dup(MPI_COMM_WORLD, &halo));
    MPI_Comm_set_name(halo, "halo");
    descriptor = open(path(argv[2], "posix"), O_CREAT | O_WRONLY, 0600);
    DO(IO, MPI_File_open(MPI_COMM_SELF, path(argv[2], "file"), MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL,
               &file));

    snprintf(sign, sizeof sign, "%s/stop.go", argv[2]);
    for (step = 1; !stop; step++) {
        fault->step();
        if (step % STRIDE == 0) {
            found = rank == 0 && access(sign, F_OK) == 0;
            DO(COLLECTIVE, MPI_Allreduce(&found, &stop, 1, MPI_INT, MPI_SUM, halo));
        }
    }

    DO(IO, MPI_File_close(&file));
    DO(COLLECTIVE, MPI_Comm_free(&halo));
    leave_books(argv[2], MPI_Wtime() - began);
    MPI_Finalize();
    return 0;
}
