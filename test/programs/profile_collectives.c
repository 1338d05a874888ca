/*
 * profile_collectives DIR [FAMILY ...]: collective calls in all their forms, with books (books.h), by three ranks or
 * more. Families: simple, vectors, in_place, neighbours, inter, constructors, large; all of them if none is named.
 * Two rounds: hold points "half" and "done". The books of the end are named "end".
 */
#include "books.h"

#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif

#define ALL   "comm:all"
#define WORLD "comm:MPI_COMM_WORLD"

enum { ROOT = 1, MOST = 16 };

static MPI_Comm all;
static int rank, size;
static int out[1000], in[1000];
static MPI_Request request;
static int starts = 2; /* of a persistent operation */

/* What is known of each rank: how many elements it gives to, or gets from, rank i. */
static int counts[MOST], places[MOST], mine[MOST], bytes_places[MOST];
static MPI_Datatype types[MOST];
static MPI_Aint far_places[MOST];

/*
 * The same operation in the form that waits, with a request, and persistent. Persistent operations count when they
 * are made and when they are started, but nothing says then how much they move.
 */
#define FORMS(object, out_, in_, name, iname, ...)                                      \
    do {                                                                                \
        DO(object, out_, in_, MPI_##name, __VA_ARGS__);                                 \
        DO(object, out_, in_, MPI_##iname, __VA_ARGS__, &request);                      \
        DO("-", NONE, NONE, MPI_Wait, &request, MPI_STATUS_IGNORE);                     \
        PERSISTENT(object, name, __VA_ARGS__);                                          \
    } while (0)

#if MPI_VERSION >= 4
#define PERSISTENT(object, name, ...) PERSISTENT_AS(object, MPI_##name##_init, __VA_ARGS__)
#elif defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
#define PERSISTENT(object, name, ...) PERSISTENT_AS(object, MPIX_##name##_init, __VA_ARGS__)
#else
#define PERSISTENT(object, name, ...) (void)0
#endif

#define PERSISTENT_AS(object, function, ...)                                            \
    do {                                                                                \
        DO(object, NONE, NONE, function, __VA_ARGS__, MPI_INFO_NULL, &request);         \
        for (int i_ = 0; i_ < starts; i_++) {                                           \
            DO("-", NONE, NONE, MPI_Start, &request);                                   \
            DO("-", NONE, NONE, MPI_Wait, &request, MPI_STATUS_IGNORE);                 \
        }                                                                               \
        MPI_Request_free(&request);                                                     \
    } while (0)

static int is_root(int bytes)
{
    return rank == ROOT ? bytes : 0;
}

static int is_not_root(int bytes)
{
    return rank == ROOT ? 0 : bytes;
}

/* The sum of 1 to n. */
static int triangle(int n)
{
    return n * (n + 1) / 2;
}

static void simple(void)
{
    int sum = 0, one = 1;

    FORMS(ALL, NONE, NONE, Barrier, Ibarrier, all);
    FORMS(ALL, SENT(is_root(40)), RECEIVED(is_not_root(40)), Bcast, Ibcast, out, 10, MPI_INT, ROOT, all);
    FORMS(ALL, SENT(20), RECEIVED(is_root(20 * size)), Gather, Igather, out, 5, MPI_INT, in, 20, MPI_BYTE, ROOT, all);
    starts = 1; /* MPICH 4.0.2's persistent scatter fails when it is started again */
    FORMS(ALL, SENT(is_root(12 * size)), RECEIVED(12), Scatter, Iscatter, out, 12, MPI_BYTE, in, 3, MPI_INT, ROOT, all);
    starts = 2;
    FORMS(ALL, SENT(16), RECEIVED(16 * size), Allgather, Iallgather, out, 4, MPI_INT, in, 16, MPI_BYTE, all);
    FORMS(ALL, SENT(24 * size), RECEIVED(24 * size), Alltoall, Ialltoall, out, 6, MPI_INT, in, 24, MPI_BYTE, all);
    FORMS(ALL, SENT(28), RECEIVED(is_root(28)), Reduce, Ireduce, out, in, 7, MPI_INT, MPI_SUM, ROOT, all);
    FORMS(ALL, SENT(4), RECEIVED(4), Allreduce, Iallreduce, &one, &sum, 1, MPI_INT, MPI_SUM, all);
    EXPECT(sum == size);
    FORMS(ALL, SENT(8 * size), RECEIVED(8), Reduce_scatter_block, Ireduce_scatter_block, out, in, 2, MPI_INT, MPI_SUM, all);
    FORMS(ALL, SENT(36), RECEIVED(36), Scan, Iscan, out, in, 9, MPI_INT, MPI_SUM, all);
    FORMS(ALL, SENT(44), RECEIVED(44), Exscan, Iexscan, out, in, 11, MPI_INT, MPI_SUM, all);
    FORMS(ALL, NONE, NONE, Bcast, Ibcast, out, 0, MPI_INT, ROOT, all);
    DO("comm:MPI_COMM_SELF", SENT(8), RECEIVED(8), MPI_Allreduce, out, in, 2, MPI_INT, MPI_SUM, MPI_COMM_SELF);
}

/* Rank i gives i + 1 integers to each, or gets so many. */
static void vectors(void)
{
    const int sum = 4 * triangle(size), own = 4 * (rank + 1);

    for (int i = 0; i < size; i++) {
        counts[i] = i + 1;
        mine[i] = rank + 1;
        places[i] = 20 * i;
        bytes_places[i] = 4 * 20 * i;
        types[i] = MPI_INT;
    }
    FORMS(ALL, SENT(own), RECEIVED(is_root(sum)), Gatherv, Igatherv, out, rank + 1, MPI_INT, in, counts, places, MPI_INT, ROOT, all);
    FORMS(ALL, SENT(is_root(sum)), RECEIVED(own), Scatterv, Iscatterv, out, counts, places, MPI_INT, in, rank + 1, MPI_INT, ROOT, all);
    FORMS(ALL, SENT(own), RECEIVED(sum), Allgatherv, Iallgatherv, out, rank + 1, MPI_INT, in, counts, places, MPI_INT, all);
    FORMS(ALL, SENT(size * own), RECEIVED(sum), Alltoallv, Ialltoallv, out, mine, places, MPI_INT, in, counts, places, MPI_INT, all);
    FORMS(ALL, SENT(size * own), RECEIVED(sum), Alltoallw, Ialltoallw, out, mine, bytes_places, types, in, counts, bytes_places,
          types, all);
    FORMS(ALL, SENT(sum), RECEIVED(own), Reduce_scatter, Ireduce_scatter, out, in, counts, MPI_INT, MPI_SUM, all);
}

/* MPI_IN_PLACE: the other buffer stands for both. */
static void in_place(void)
{
    const int sum = 4 * triangle(size), own = 4 * (rank + 1);

    for (int i = 0; i < size; i++) {
        counts[i] = i + 1;
        mine[i] = 2;
        places[i] = 20 * i;
        bytes_places[i] = 4 * 20 * i;
        types[i] = MPI_INT;
    }
    if (rank == ROOT) {
        FORMS(ALL, SENT(20), RECEIVED(20 * size), Gather, Igather, MPI_IN_PLACE, 77, MPI_DATATYPE_NULL, in, 5, MPI_INT, ROOT, all);
        starts = 1; /* as above */
        FORMS(ALL, SENT(20 * size), RECEIVED(20), Scatter, Iscatter, in, 5, MPI_INT, MPI_IN_PLACE, 77, MPI_DATATYPE_NULL, ROOT, all);
        starts = 2;
        FORMS(ALL, SENT(own), RECEIVED(sum), Gatherv, Igatherv, MPI_IN_PLACE, 77, MPI_DATATYPE_NULL, in, counts, places, MPI_INT,
              ROOT, all);
        FORMS(ALL, SENT(sum), RECEIVED(own), Scatterv, Iscatterv, in, counts, places, MPI_INT, MPI_IN_PLACE, 77, MPI_DATATYPE_NULL,
              ROOT, all);
        FORMS(ALL, SENT(28), RECEIVED(28), Reduce, Ireduce, MPI_IN_PLACE, in, 7, MPI_INT, MPI_SUM, ROOT, all);
    } else {
        /* What isn't significant at this rank may be anything. */
        FORMS(ALL, SENT(20), NONE, Gather, Igather, out, 5, MPI_INT, NULL, 88, MPI_DATATYPE_NULL, ROOT, all);
        starts = 1; /* as above */
        FORMS(ALL, NONE, RECEIVED(20), Scatter, Iscatter, NULL, 88, MPI_DATATYPE_NULL, in, 5, MPI_INT, ROOT, all);
        starts = 2;
        FORMS(ALL, SENT(own), NONE, Gatherv, Igatherv, out, rank + 1, MPI_INT, NULL, NULL, NULL, MPI_DATATYPE_NULL, ROOT, all);
        FORMS(ALL, NONE, RECEIVED(own), Scatterv, Iscatterv, NULL, NULL, NULL, MPI_DATATYPE_NULL, in, rank + 1, MPI_INT, ROOT, all);
        FORMS(ALL, SENT(28), NONE, Reduce, Ireduce, out, NULL, 7, MPI_INT, MPI_SUM, ROOT, all);
    }
    FORMS(ALL, SENT(16), RECEIVED(16 * size), Allgather, Iallgather, MPI_IN_PLACE, 77, MPI_DATATYPE_NULL, in, 4, MPI_INT, all);
    FORMS(ALL, SENT(own), RECEIVED(sum), Allgatherv, Iallgatherv, MPI_IN_PLACE, 77, MPI_DATATYPE_NULL, in, counts, places, MPI_INT,
          all);
    DO(ALL, SENT(24 * size), RECEIVED(24 * size), MPI_Alltoall, MPI_IN_PLACE, 77, MPI_DATATYPE_NULL, in, 6, MPI_INT, all);
    DO(ALL, SENT(8 * size), RECEIVED(8 * size), MPI_Alltoallv, MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, in, mine, places, MPI_INT,
       all);
    DO(ALL, SENT(8 * size), RECEIVED(8 * size), MPI_Alltoallw, MPI_IN_PLACE, NULL, NULL, NULL, in, mine, bytes_places, types, all);
    FORMS(ALL, SENT(4), RECEIVED(4), Allreduce, Iallreduce, MPI_IN_PLACE, in, 1, MPI_INT, MPI_SUM, all);
    FORMS(ALL, SENT(8 * size), RECEIVED(8), Reduce_scatter_block, Ireduce_scatter_block, MPI_IN_PLACE, in, 2, MPI_INT, MPI_SUM, all);
    DO(ALL, SENT(sum), RECEIVED(own), MPI_Reduce_scatter, MPI_IN_PLACE, in, counts, MPI_INT, MPI_SUM, all);
    FORMS(ALL, SENT(36), RECEIVED(36), Scan, Iscan, MPI_IN_PLACE, in, 9, MPI_INT, MPI_SUM, all);
    FORMS(ALL, SENT(44), RECEIVED(44), Exscan, Iexscan, MPI_IN_PLACE, in, 11, MPI_INT, MPI_SUM, all);
}

/*
 * All neighbourhood operations on a communicator with so many neighbours: the send buffer of an allgather is there
 * once, however many get it, unless nobody does.
 */
static void neighbourhood(MPI_Comm comm, const char *object, int from, int to)
{
    for (int i = 0; i < MOST; i++) {
        counts[i] = i + 1;
        places[i] = 20 * i;
        far_places[i] = 4 * 20 * i;
        types[i] = MPI_INT;
        mine[i] = 3;
    }
    /* The blocks of the vectors all have three elements, but the last argument of the sums differs. */
    FORMS(object, SENT(to > 0 ? 16 : 0), RECEIVED(16 * from), Neighbor_allgather, Ineighbor_allgather, out, 4, MPI_INT, in, 16, MPI_BYTE, comm);
    FORMS(object, SENT(to > 0 ? 12 : 0), RECEIVED(12 * from), Neighbor_allgatherv, Ineighbor_allgatherv, out, 3, MPI_INT, in, mine, places,
          MPI_INT, comm);
    FORMS(object, SENT(24 * to), RECEIVED(24 * from), Neighbor_alltoall, Ineighbor_alltoall, out, 6, MPI_INT, in, 24, MPI_BYTE, comm);
    FORMS(object, SENT(12 * to), RECEIVED(12 * from), Neighbor_alltoallv, Ineighbor_alltoallv, out, mine, places, MPI_INT, in, mine,
          places, MPI_INT, comm);
    FORMS(object, SENT(12 * to), RECEIVED(12 * from), Neighbor_alltoallw, Ineighbor_alltoallw, out, mine, far_places, types, in, mine,
          far_places, types, comm);
}

static void neighbours(void)
{
    int dims[1] = {size}, periods[1] = {1}, index[MOST], edges[2 * MOST], others[MOST];
    MPI_Comm circle, line, net, star;

    DO(ALL, NONE, NONE, MPI_Cart_create, all, 1, dims, periods, 0, &circle);
    MPI_Comm_set_name(circle, "circle");
    neighbourhood(circle, "comm:circle", 2, 2);
    periods[0] = 0;
    DO(ALL, NONE, NONE, MPI_Cart_create, all, 1, dims, periods, 0, &line);
    MPI_Comm_set_name(line, "line");
    neighbourhood(line, "comm:line", 2, 2); /* at the ends there is nobody, but room for somebody */

    /* Each with its two neighbours. */
    for (int i = 0; i < size; i++) {
        index[i] = 2 * (i + 1);
        edges[2 * i] = (i + 1) % size;
        edges[2 * i + 1] = (i + size - 1) % size;
    }
    DO(ALL, NONE, NONE, MPI_Graph_create, all, size, index, edges, 0, &net);
    MPI_Comm_set_name(net, "net");
    neighbourhood(net, "comm:net", 2, 2);

    /* Everybody sends to the root, and hears from nobody. */
    for (int i = 0, n = 0; i < size; i++)
        if (i != ROOT)
            others[n++] = i;
    if (rank == ROOT)
        DO(ALL, NONE, NONE, MPI_Dist_graph_create_adjacent, all, size - 1, others, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED,
           MPI_INFO_NULL, 0, &star);
    else
        DO(ALL, NONE, NONE, MPI_Dist_graph_create_adjacent, all, 0, NULL, MPI_UNWEIGHTED, 1, (int[]){ROOT}, MPI_UNWEIGHTED,
           MPI_INFO_NULL, 0, &star);
    MPI_Comm_set_name(star, "star");
    neighbourhood(star, "comm:star", rank == ROOT ? size - 1 : 0, rank == ROOT ? 0 : 1);

    DO("-", NONE, NONE, MPI_Comm_free, &star);
    DO("-", NONE, NONE, MPI_Comm_free, &net);
    DO("-", NONE, NONE, MPI_Comm_free, &line);
    DO("-", NONE, NONE, MPI_Comm_free, &circle);
}

/* Between the first rank and the others: what counts is the other side's size. */
static void inter(void)
{
    const int alone = rank == 0, local = alone ? 1 : size - 1, remote = size - local, local_rank = alone ? 0 : rank - 1;
    MPI_Comm side, bridge;

    DO(ALL, NONE, NONE, MPI_Comm_split, all, alone, rank, &side);
    MPI_Comm_set_name(side, "side");
    DO("comm:side", NONE, NONE, MPI_Intercomm_create, side, 0, all, alone ? 1 : 0, 7, &bridge);
    MPI_Comm_set_name(bridge, "bridge");

    /* The root is alone on its side. Then it is rank 1, with those beside it that take no part. */
    for (int turn = 0; turn < 2; turn++) {
        const int root_side = turn == 0 ? alone : !alone;
        const int root = !root_side ? 0 : local_rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
        const int at_root = root == MPI_ROOT, at_others = !root_side;

        for (int i = 0; i < MOST; i++) {
            counts[i] = i + 1;
            places[i] = 20 * i;
        }
        FORMS("comm:bridge", SENT(at_root * 40), RECEIVED(at_others * 40), Bcast, Ibcast, out, 10, MPI_INT, root, bridge);
        FORMS("comm:bridge", SENT(at_others * 20), RECEIVED(at_root * 20 * remote), Gather, Igather, out, 5, MPI_INT, in, 5, MPI_INT,
              root, bridge);
        FORMS("comm:bridge", SENT(at_root * 12 * remote), RECEIVED(at_others * 12), Scatter, Iscatter, out, 3, MPI_INT, in, 3,
              MPI_INT, root, bridge);
        FORMS("comm:bridge", SENT(at_others * 28), RECEIVED(at_root * 28), Reduce, Ireduce, out, in, 7, MPI_INT, MPI_SUM, root,
              bridge);
        FORMS("comm:bridge", SENT(at_others * 4 * (local_rank + 1)), RECEIVED(at_root * 4 * triangle(remote)), Gatherv, Igatherv, out,
              local_rank + 1, MPI_INT, in, counts, places, MPI_INT, root, bridge);
        FORMS("comm:bridge", SENT(at_root * 4 * triangle(remote)), RECEIVED(at_others * 4 * (local_rank + 1)), Scatterv, Iscatterv,
              out, counts, places, MPI_INT, in, local_rank + 1, MPI_INT, root, bridge);
    }
    for (int i = 0; i < MOST; i++)
        mine[i] = local_rank + 1;
    FORMS("comm:bridge", NONE, NONE, Barrier, Ibarrier, bridge);
    FORMS("comm:bridge", SENT(16), RECEIVED(16 * remote), Allgather, Iallgather, out, 4, MPI_INT, in, 4, MPI_INT, bridge);
    FORMS("comm:bridge", SENT(4 * (local_rank + 1)), RECEIVED(4 * triangle(remote)), Allgatherv, Iallgatherv, out, local_rank + 1,
          MPI_INT, in, counts, places, MPI_INT, bridge);
    FORMS("comm:bridge", SENT(24 * remote), RECEIVED(24 * remote), Alltoall, Ialltoall, out, 6, MPI_INT, in, 6, MPI_INT, bridge);
    FORMS("comm:bridge", SENT(4 * (local_rank + 1) * remote), RECEIVED(4 * triangle(remote)), Alltoallv, Ialltoallv, out, mine,
          places, MPI_INT, in, counts, places, MPI_INT, bridge);
    FORMS("comm:bridge", SENT(8), RECEIVED(8), Allreduce, Iallreduce, out, in, 2, MPI_INT, MPI_SUM, bridge);
    /* Both sides give as much as comes to the other one; each rank gets its part of that. */
    FORMS("comm:bridge", SENT(8 * (size - 1)), RECEIVED(8 * (size - 1) / local), Reduce_scatter_block, Ireduce_scatter_block, out, in,
          2 * (size - 1) / local, MPI_INT, MPI_SUM, bridge);

    DO("-", NONE, NONE, MPI_Comm_free, &bridge);
    DO("-", NONE, NONE, MPI_Comm_free, &side);
}

/* What makes a communicator is a collective call on the one that it is made from. */
static void constructors(void)
{
    int dims[2] = {size, 1}, periods[2] = {0, 0}, remain[2] = {1, 0}, one = 1, sum = 0, next = (rank + 1) % size;
    MPI_Comm copy, part, again, grid, line, left, bridge, whole;
    MPI_Group group;
    MPI_Info info;

    MPI_Info_create(&info);
    MPI_Comm_group(all, &group);
    DO(ALL, NONE, NONE, MPI_Comm_dup, all, &copy);
    MPI_Comm_set_name(copy, "copy");
    /*
     * Before anything else on this communicator. Open MPI exchanges the edges with its internal tags -50 and -51, and
     * its non-blocking collectives, with which ranks agree on a new communicator, count down to them from -27 (4.1) or
     * -33 (5.0), on each communicator. Where both meet, ranks wait for ever (open-mpi/ompi#13918, mended by #13931):
     * 5.0.7 hung in 8 of 40 runs, without the agent, when six communicators had been made from this one before.
     */
    DO("comm:copy", NONE, NONE, MPI_Dist_graph_create, copy, 1, &rank, &one, &next, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &grid);
    DO("-", NONE, NONE, MPI_Comm_free, &grid);

    DO("comm:copy", NONE, NONE, MPI_Comm_dup_with_info, copy, info, &again); /* has no name */
    DO("comm:unnamed", SENT(4), RECEIVED(4), MPI_Allreduce, &one, &sum, 1, MPI_INT, MPI_SUM, again);
    DO("-", NONE, NONE, MPI_Comm_free, &again);
    DO("comm:copy", NONE, NONE, MPI_Comm_create, copy, group, &part);
    MPI_Comm_set_name(part, "part");
    DO("comm:part", NONE, NONE, MPI_Comm_create_group, part, group, 3, &again);
    MPI_Comm_set_name(again, "again");
    DO("comm:again", NONE, NONE, MPI_Barrier, again);
    DO("-", NONE, NONE, MPI_Comm_disconnect, &again);
    DO("-", NONE, NONE, MPI_Comm_free, &part);
    DO("comm:copy", NONE, NONE, MPI_Comm_split_type, copy, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &part);
    MPI_Comm_set_name(part, "node");
    DO("comm:node", NONE, NONE, MPI_Barrier, part);
    DO("-", NONE, NONE, MPI_Comm_free, &part);
    DO("comm:copy", NONE, NONE, MPI_Comm_split, copy, rank % 2 ? MPI_UNDEFINED : 0, 0, &part); /* some get none */
    if (part != MPI_COMM_NULL)
        DO("-", NONE, NONE, MPI_Comm_free, &part);

    /* When this one returns there is no communicator yet: the agent never learns of it. */
    DO("comm:copy", NONE, NONE, MPI_Comm_idup, copy, &again, &request);
    DO("-", NONE, NONE, MPI_Wait, &request, MPI_STATUS_IGNORE);
    MPI_Comm_set_name(again, "late");
    DO("comm:unnamed", SENT(4), RECEIVED(4), MPI_Allreduce, &one, &sum, 1, MPI_INT, MPI_SUM, again);
    EXPECT(sum == size);
    DO("-", NONE, NONE, MPI_Comm_free, &again);

    DO("comm:copy", NONE, NONE, MPI_Cart_create, copy, 2, dims, periods, 0, &grid);
    MPI_Comm_set_name(grid, "grid");
    DO("comm:grid", NONE, NONE, MPI_Cart_sub, grid, remain, &line);
    DO("-", NONE, NONE, MPI_Comm_free, &line);
    DO("-", NONE, NONE, MPI_Comm_free, &grid);

    DO("comm:copy", NONE, NONE, MPI_Comm_split, copy, rank == 0, rank, &left);
    MPI_Comm_set_name(left, "left");
    DO("comm:left", NONE, NONE, MPI_Intercomm_create, left, 0, copy, rank == 0, 9, &bridge);
    MPI_Comm_set_name(bridge, "bridge");
    DO("comm:bridge", NONE, NONE, MPI_Intercomm_merge, bridge, rank == 0, &whole);
    DO("-", NONE, NONE, MPI_Comm_free, &whole);
    DO("-", NONE, NONE, MPI_Comm_free, &bridge);
    DO("-", NONE, NONE, MPI_Comm_free, &left);

    /* The name at the end takes all that was counted after it was given; what was before stays where it was. */
    DO("comm:copy", NONE, NONE, MPI_Barrier, copy);
    MPI_Comm_set_name(copy, "renamed");
    DO("comm:renamed", NONE, NONE, MPI_Barrier, copy);
    DO("-", NONE, NONE, MPI_Comm_free, &copy);
    MPI_Group_free(&group);
    MPI_Info_free(&info);
}

/* The functions of MPI-4 for large counts count as the plain ones. */
static void large(void)
{
#if MPI_VERSION >= 4
    static MPI_Count many[MOST], own_many[MOST];
    static MPI_Aint at[MOST];
    const int sum = 4 * triangle(size), own = 4 * (rank + 1);

    for (int i = 0; i < size; i++) {
        many[i] = i + 1;
        own_many[i] = rank + 1;
        at[i] = 20 * i;
    }
    DO(ALL, SENT(is_root(40)), RECEIVED(is_not_root(40)), MPI_Bcast_c, out, 10, MPI_INT, ROOT, all);
    DO(ALL, SENT(4), RECEIVED(4), MPI_Allreduce_c, out, in, 1, MPI_INT, MPI_SUM, all);
    DO(ALL, SENT(24 * size), RECEIVED(24 * size), MPI_Alltoall_c, out, 6, MPI_INT, in, 6, MPI_INT, all);
    DO(ALL, SENT(own), RECEIVED(is_root(sum)), MPI_Gatherv_c, out, rank + 1, MPI_INT, in, many, at, MPI_INT, ROOT, all);
    DO(ALL, SENT(size * own), RECEIVED(sum), MPI_Alltoallv_c, out, own_many, at, MPI_INT, in, many, at, MPI_INT, all);
    DO(ALL, SENT(sum), RECEIVED(own), MPI_Reduce_scatter_c, out, in, many, MPI_INT, MPI_SUM, all);
    DO(ALL, SENT(own), RECEIVED(sum), MPI_Iallgatherv_c, out, rank + 1, MPI_INT, in, many, at, MPI_INT, all, &request);
    DO("-", NONE, NONE, MPI_Wait, &request, MPI_STATUS_IGNORE);
    PERSISTENT_AS(ALL, MPI_Allreduce_init_c, out, in, 1, MPI_INT, MPI_SUM, all);
#endif
}

int main(int argc, char **argv)
{
    const char *dir = argc > 1 ? argv[1] : "-";
    static const struct {
        const char *name;
        void (*calls)(void);
    } families[] = {
        {"simple", simple}, {"vectors", vectors}, {"in_place", in_place}, {"neighbours", neighbours}, {"inter", inter},
        {"constructors", constructors}, {"large", large},
    };

    MPI_Init(&argc, &argv);
    DO(WORLD, NONE, NONE, MPI_Comm_dup, MPI_COMM_WORLD, &all);
    MPI_Comm_set_name(all, "all");
    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &size);
    EXPECT(size > ROOT && size <= MOST);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
            if (books_wanted(families[i].name, argc, argv))
                families[i].calls();
        books_hold(dir, round == 0 ? "half" : "done", rank);
    }
    DO("-", NONE, NONE, MPI_Comm_free, &all);
    books_leave(dir, "end", rank);
    MPI_Finalize();
    if (rank == 0)
        puts("profile_collectives: done");
    return 0;
}
