/*
 * holds: of each collective, how many ranks have returned before the last one had begun it, with each rank in turn as
 * the last one. Prints lines as "MPI_Bcast 3". A rank that hasn't got far enough is counted as held.
 */
#include <mpi.h>

#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 64 };

static MPI_Comm comm, other;
static int rank, size;
static int in[MOST], out[MOST], counts[MOST], places[MOST];

#define INT MPI_INT
#define COLLECTIVES(X)                                                                                     \
    X("MPI_Barrier", MPI_Barrier(comm))                                                                    \
    X("MPI_Allreduce", MPI_Allreduce(in, out, 1, INT, MPI_SUM, comm))                                      \
    X("MPI_Allgather", MPI_Allgather(in, 1, INT, out, 1, INT, comm))                                       \
    X("MPI_Alltoall", MPI_Alltoall(in, 1, INT, out, 1, INT, comm))                                         \
    X("MPI_Reduce_scatter_block", MPI_Reduce_scatter_block(in, out, 1, INT, MPI_SUM, comm))                \
    X("MPI_Comm_dup", MPI_Comm_dup(comm, &other))                                                          \
    X("MPI_Comm_dup_with_info", MPI_Comm_dup_with_info(comm, MPI_INFO_NULL, &other))                       \
    X("MPI_Comm_split", MPI_Comm_split(comm, rank % 2, 0, &other))                                         \
    X("MPI_Comm_create", MPI_Comm_create(comm, group, &other))                                             \
    X("MPI_Bcast", MPI_Bcast(in, 1, INT, 0, comm))                                                         \
    X("MPI_Gather", MPI_Gather(in, 1, INT, out, 1, INT, 0, comm))                                          \
    X("MPI_Gatherv", MPI_Gatherv(in, 1, INT, out, counts, places, INT, 0, comm))                           \
    X("MPI_Scatter", MPI_Scatter(in, 1, INT, out, 1, INT, 0, comm))                                        \
    X("MPI_Scatterv", MPI_Scatterv(in, counts, places, INT, out, 1, INT, 0, comm))                         \
    X("MPI_Reduce", MPI_Reduce(in, out, 1, INT, MPI_SUM, 0, comm))                                         \
    X("MPI_Scan", MPI_Scan(in, out, 1, INT, MPI_SUM, comm))                                                \
    X("MPI_Exscan", MPI_Exscan(in, out, 1, INT, MPI_SUM, comm))                                            \
    X("MPI_Allgatherv", MPI_Allgatherv(in, 1, INT, out, counts, places, INT, comm))                        \
    X("MPI_Alltoallv", MPI_Alltoallv(in, counts, places, INT, out, counts, places, INT, comm))             \
    X("MPI_Reduce_scatter", MPI_Reduce_scatter(in, out, counts, INT, MPI_SUM, comm))                       \
    X("MPI_Comm_free", MPI_Comm_free(&other))                                                              \
    X("without data: MPI_Allreduce", MPI_Allreduce(in, out, 0, INT, MPI_SUM, comm))                        \
    X("without data: MPI_Allgather", MPI_Allgather(in, 0, INT, out, 0, INT, comm))                         \
    X("without data: MPI_Alltoall", MPI_Alltoall(in, 0, INT, out, 0, INT, comm))

/* In memory that all ranks share. */
static struct {
    _Atomic int begin, begun, early;
} *shared;

/* A file's, as Debian's MPICH 5.0.2 has no windows that ranks share. */
static void shares(void)
{
    char path[] = "/tmp/holds.XXXXXX";
    int file = rank == 0 ? mkstemp(path) : -1;
    bool made = rank == 0 && file >= 0 && ftruncate(file, sizeof *shared) == 0;

    MPI_Bcast(path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank != 0)
        made = (file = open(path, O_RDWR)) >= 0;
    shared = made ? mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    if (shared == MAP_FAILED)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        unlink(path);
    close(file);
}

static void waits(long nanoseconds)
{
    const struct timespec time = {0, nanoseconds};

    nanosleep(&time, NULL);
}

static void collective(const char *name, int which, MPI_Group group)
{
    const bool frees = strcmp(name, "MPI_Comm_free") == 0;
    int early = 0;

    for (int last = 0; last < size; last++) {
        if (frees)
            MPI_Comm_dup(comm, &other);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == last) {
            while (atomic_load(&shared->begin) < size - 1)
                waits(100 * 1000);
            waits(5 * 1000 * 1000);
            atomic_store(&shared->begun, 1);
        } else {
            atomic_fetch_add(&shared->begin, 1);
        }
        switch (which) {
#define CASE(name, call) case __COUNTER__ - FIRST - 1: call; break;
            enum { FIRST = __COUNTER__ };
            COLLECTIVES(CASE)
        }
        if (!atomic_load(&shared->begun))
            atomic_fetch_add(&shared->early, 1);
        if (!frees && other != MPI_COMM_NULL)
            MPI_Comm_free(&other);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == last) {
            early += atomic_load(&shared->early);
            atomic_store(&shared->begin, 0);
            atomic_store(&shared->begun, 0);
            atomic_store(&shared->early, 0);
        }
        MPI_Bcast(&early, 1, MPI_INT, last, MPI_COMM_WORLD);
    }
    if (rank == 0)
        printf("%s %d\n", name, early);
}

int main(int argc, char **argv)
{
    static const char *const names[] = {
#define NAME(name, call) name,
        COLLECTIVES(NAME)
    };
    MPI_Group group;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    shares();
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_group(comm, &group);
    other = MPI_COMM_NULL;
    for (int i = 0; i < size; i++) {
        counts[i] = 1;
        places[i] = i;
    }
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
        collective(names[i], i, group);
    MPI_Group_free(&group);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
