/*
 * zoo.h - what the programs of the zoo share. A program is started as
 *
 *     PROGRAM KIND CULPRIT PARTNER TAG NAME ORDER
 *
 * KIND is one of the program's kinds of trouble. CULPRIT and PARTNER are ranks in MPI_COMM_WORLD, TAG is a message tag,
 * NAME a communicator's name; ORDER is a number that decides the order of the ranks in that communicator. All four are
 * drawn anew for each run.
 *
 * A program goes on until it is killed; one that is forgotten ends after ten minutes.
 */
#ifndef ZOO_H
#define ZOO_H

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LIFE = 600 /* seconds */, MANY = 1 << 20 /* words: more than libraries send eagerly */ };

struct zoo {
    const char *kind, *name;
    int rank, size;       /* in MPI_COMM_WORLD */
    int culprit, partner; /* in MPI_COMM_WORLD */
    int tag;
    unsigned order;
    MPI_Comm comm; /* all ranks, in an order of its own, called NAME */
    int here;      /* the rank in it */
};

static struct zoo zoo;
__attribute__((unused)) static int words_out[MANY], words_in[MANY];
__attribute__((unused)) static MPI_Status statuses[4];

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Uses the core for so long. */
static inline void compute(double seconds)
{
    const double end = now() + seconds;
    volatile double x = 1;

    while (now() < end)
        for (int i = 0; i < 1000; i++)
            x = x * 1.0000001 + 1e-9;
}

/* Is off the core for so long. */
static inline void doze(double seconds)
{
    struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};

    while (nanosleep(&t, &t) != 0 && errno == EINTR)
        ;
}

static inline int is(const char *kind) { return strcmp(zoo.kind, kind) == 0; }
static inline int guilty(void) { return zoo.rank == zoo.culprit; }

/* Where a rank of MPI_COMM_WORLD stands in zoo.comm: the ranks turned by ORDER, and mirrored where it is odd. */
static inline int place(int rank)
{
    const int turned = (int)(((unsigned)rank + zoo.order / 2) % (unsigned)zoo.size);

    return zoo.order % 2 != 0 ? zoo.size - 1 - turned : turned;
}

/* A copy of MPI_COMM_WORLD in the order drawn. */
static inline MPI_Comm ordered(const char *name)
{
    MPI_Comm comm;

    MPI_Comm_split(MPI_COMM_WORLD, 0, place(zoo.rank), &comm);
    MPI_Comm_set_name(comm, name);
    return comm;
}

static inline void begin(int argc, char **argv, int level)
{
    int provided;

    if (argc < 7) {
        fprintf(stderr, "usage: %s KIND CULPRIT PARTNER TAG NAME ORDER\n", argv[0]);
        exit(2);
    }
    alarm(LIFE);
    zoo = (struct zoo){.kind = argv[1], .culprit = atoi(argv[2]), .partner = atoi(argv[3]), .tag = atoi(argv[4]),
                       .name = argv[5], .order = (unsigned)strtoul(argv[6], NULL, 10)};
    MPI_Init_thread(&argc, &argv, level, &provided);
    if (provided < level) {
        fprintf(stderr, "zoo: thread level %d is not to be had\n", level);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &zoo.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &zoo.size);
    zoo.comm = ordered(zoo.name);
    MPI_Comm_rank(zoo.comm, &zoo.here);
}

static inline void unknown_kind(void)
{
    fprintf(stderr, "zoo: there is no kind %s\n", zoo.kind);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

/* For what never ends. */
#define FOREVER for (;;)

/* The next and the one before, in zoo.comm. */
static inline int next(void) { return (zoo.here + 1) % zoo.size; }
static inline int before(void) { return (zoo.here + zoo.size - 1) % zoo.size; }

/* A few good steps, so that trouble comes to a job that has run. */
static inline void good_steps(int count)
{
    for (int i = 0; i < count; i++) {
        int sum;

        compute(0.02);
        MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_SUM, zoo.comm);
    }
}

#endif
