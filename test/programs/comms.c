/*
 * comms DIR SEED: makes communicators in every way, and then others of these at random, the same in all ranks, and begins
 * collectives on them, some of them while one rank or another has switched observation off. At hold point "made" each
 * communicator's name says which it is and how many collectives the rank has begun on it, as in "split.1 #17". At hold
 * point "late" rank 0 is in a barrier on the first one, which the others come to afterwards.
 */
#include <mpi.h>

#include "hold.h"

enum { MOST = 250, CHILDREN = 3 };

static struct {
    MPI_Comm comm; /* MPI_COMM_NULL: this rank isn't in it */
    char name[32];
    int begun;
} all[MOST];
static int count, first, world_rank; /* first: how many there are before those made at random */

/* The communicator of a collective that begins. */
static MPI_Comm on(int i)
{
    all[i].begun++;
    return all[i].comm;
}

/* The same number in all ranks, whether they have it or not. */
static int keep(MPI_Comm comm, const char *how, int part)
{
    snprintf(all[count].name, sizeof all[count].name, "%s%d.%d", how, count, part);
    all[count].comm = comm;
    return count++;
}

static int rank_in(int i)
{
    int rank;

    MPI_Comm_rank(all[i].comm, &rank);
    return rank;
}

static int size_of(int i)
{
    int size;

    MPI_Comm_size(all[i].comm, &size);
    return size;
}

/* An answer that all ranks know. */
static unsigned chance;

static int below(int n)
{
    chance = chance * 1103515245u + 12345u;
    return (int)(chance >> 16 & 0x7fff) % n;
}

/* Each rank has one of the parts at most. */
static void keep_part(MPI_Comm comm, const char *how, int part, int parts)
{
    for (int i = 0; i < parts; i++)
        keep(i == part ? comm : MPI_COMM_NULL, how, i);
}

static void makes_split(int of)
{
    int colour = rank_in(of) % 2;
    MPI_Comm comm;

    MPI_Comm_split(on(of), colour, -rank_in(of), &comm);
    keep_part(comm, "split", colour, 2);
}

/* The first one of the group is always in it. */
static void makes_group(int of, int step, int tag)
{
    int range[3] = {0, size_of(of) - 1, step};
    MPI_Group all_of, group;
    MPI_Comm comm = MPI_COMM_NULL;

    MPI_Comm_group(all[of].comm, &all_of);
    MPI_Group_range_incl(all_of, 1, &range, &group);
    if (rank_in(of) % step == 0)
        MPI_Comm_create_group(all[of].comm, group, tag, &comm);
    keep(comm, "group", 0);
    MPI_Group_free(&group);
    MPI_Group_free(&all_of);
}

static void makes_parts(int of)
{
    int part = rank_in(of) % 2, range[3] = {part, size_of(of) - 1, 2};
    MPI_Group all_of, group;
    MPI_Comm comm;

    MPI_Comm_group(all[of].comm, &all_of);
    MPI_Group_range_incl(all_of, 1, &range, &group);
    MPI_Comm_create(on(of), group, &comm);
    keep_part(comm, "create", part, 2);
    MPI_Group_free(&group);
    MPI_Group_free(&all_of);
}

/* Between the two halves of one that has at least two members, and then all of them again. */
static void makes_inter(int of, int tag)
{
    int side = rank_in(of) % 2, local, inter;
    MPI_Comm comm;

    makes_split(of); /* the side's first member is its last one there */
    local = count - 2 + side;
    MPI_Intercomm_create(on(local), size_of(local) - 1, all[of].comm, side == 0 ? 1 : 0, tag, &comm);
    inter = keep(comm, "inter", 0);
    MPI_Barrier(on(inter));
    MPI_Comm_dup(on(inter), &comm);
    keep(comm, "interdup", 0);
    MPI_Intercomm_merge(on(inter), side, &comm);
    keep(comm, "merge", 0);
}

static void makes_topologies(int of)
{
    int size = size_of(of), dims[2] = {2, size / 2}, periods[2] = {1, 0}, row[2] = {0, 1}, coordinates[2];
    int index[3] = {1, 3, 4}, edges[4] = {1, 0, 2, 1}, next = (rank_in(of) + 1) % size, weight = 1, one = 1,
        self = rank_in(of), cart, grid;
    char from[2] = {0}, to[4] = {0};
    MPI_Comm comm, sub;

    MPI_Cart_create(on(of), 2, dims, periods, 1, &comm);
    cart = keep(comm, "cart", 0);
    if (comm != MPI_COMM_NULL) {
        MPI_Neighbor_allgather(from, 1, MPI_CHAR, to, 1, MPI_CHAR, on(cart));
        MPI_Cart_coords(all[cart].comm, rank_in(cart), 2, coordinates);
        MPI_Cart_sub(on(cart), row, &sub);
        keep_part(sub, "row", coordinates[0], 2);
    } else {
        keep_part(MPI_COMM_NULL, "row", 0, 2);
    }
    MPI_Graph_create(on(of), 3, index, edges, 0, &comm);
    keep(comm, "graph", 0);
    MPI_Dist_graph_create_adjacent(on(of), 1, &next, &weight, 1, &next, &weight, MPI_INFO_NULL, 0, &comm);
    grid = keep(comm, "adjacent", 0);
    MPI_Barrier(on(grid));
    MPI_Dist_graph_create(on(of), 1, &self, &one, &next, &weight, MPI_INFO_NULL, 0, &comm);
    keep(comm, "dist", 0);
}

static void makes_one_of_each(int world)
{
    MPI_Comm comm;
    MPI_Request request;
    MPI_Win win;
    MPI_File file;
    int parts, shared, memory[1];

    MPI_Comm_dup(on(world), &comm);
    keep(comm, "dup", 0);
    MPI_Comm_dup_with_info(on(world), MPI_INFO_NULL, &comm);
    keep(comm, "info", 0);
    MPI_Comm_idup(on(world), &comm, &request); /* which nobody tracks */
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(comm);
    MPI_Comm_free(&comm);
    makes_split(world);
    parts = count;
    MPI_Comm_split_type(on(world), MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm);
    shared = keep(comm, "shared", 0);
    if (size_of(shared) == 1) /* Debian's MPICH 5.0.2 takes each rank for the only one on its node */
        MPI_Comm_split(on(world), 0, 0, &all[shared].comm);
    makes_parts(world);
    makes_parts(parts);
    makes_topologies(world);
    for (int i = 0; i < 3; i++) {
        makes_group(world, 2, 5);
        makes_group(world, 3, 5);
        makes_group(world, 2, i);
    }
    makes_inter(world, 1);
    makes_inter(world, 1);
    MPI_Ibarrier(on(world), &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_create(memory, sizeof memory, 1, MPI_INFO_NULL, on(parts), &win);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
    if (MPI_File_open(on(parts), "/there/is/none", MPI_MODE_RDONLY, MPI_INFO_NULL, &file) == MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 3);
    MPI_Send(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, all[parts].comm);
    MPI_Comm_split(on(world), MPI_UNDEFINED, 0, &comm);
}

static void makes_one_at_random(void)
{
    int of = below(below(2) ? count : first), what = below(6), tag = below(2), before = count, has = all[of].comm != MPI_COMM_NULL, inter = 0;
    int observed = below(3), who = below(6);
    MPI_Comm comm;

    if (who == world_rank)
        MPI_Pcontrol(observed > 0);
    if (has)
        MPI_Comm_test_inter(all[of].comm, &inter);
    if (has && !inter && size_of(of) >= 2) {
        switch (what) {
        case 0:
        case 1:
            MPI_Comm_dup(on(of), &comm);
            keep(comm, "dup", 0);
            break;
        case 2: makes_split(of); break;
        case 3: makes_parts(of); break;
        case 4: makes_group(of, 1 + tag, tag); break;
        case 5: makes_inter(of, tag); break;
        }
        MPI_Barrier(on(of));
    }
    while (count < before + 5)
        keep(MPI_COMM_NULL, "none", 0);
}

int main(int argc, char **argv)
{
    int size, world;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    world = keep(MPI_COMM_WORLD, "world", 0);
    makes_one_of_each(world);
    first = count;
    chance = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
    while (count < MOST - 5)
        makes_one_at_random();
    for (int i = 0; i < count; i++) {
        char name[64];

        if (all[i].comm == MPI_COMM_NULL)
            continue;
        snprintf(name, sizeof name, "%s #%d", all[i].name, all[i].begun);
        MPI_Comm_set_name(all[i].comm, name);
    }
    MPI_Pcontrol(1);
    hold(argc > 1 ? argv[1] : "-", "made", world_rank);
    if (world_rank != 0)
        hold(argc > 1 ? argv[1] : "-", "late", world_rank);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    if (world_rank == 0)
        puts("comms: done");
    return 0;
}
