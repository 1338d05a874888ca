/*
 * profile_peers DIR [FAMILY ...]: messages from each rank to others, on communicators and windows in which the others
 * have other ranks than in MPI_COMM_WORLD. Families: messages, persistent, window, inter; all of them if none is
 * named. At the hold points "half" and "done", and at the end ("end"), DIR/NAME.peers.RANK has lines of a peer's rank in
 * MPI_COMM_WORLD, and the messages and bytes that RANK has sent it, from the program's own knowledge of where it sends to. "-" as DIR:
 * no file.
 */
#include "books.h"

enum { MOST = 64 };

static int rank, size;
static int out[1000], in[1000];
static struct {
    long long messages, bytes;
} sent_to[MOST];

/* PEER: a rank in MPI_COMM_WORLD. */
#define TO(peer, bytes_, call)                                                          \
    do {                                                                                \
        EXPECT((call) == MPI_SUCCESS);                                                  \
        sent_to[peer].messages++;                                                       \
        sent_to[peer].bytes += (bytes_);                                                \
    } while (0)

static void leave(const char *dir, const char *point)
{
    char path[4096];
    FILE *file;

    if (strcmp(dir, "-") == 0)
        return;
    snprintf(path, sizeof path, "%s/%s.peers.%d", dir, point, rank);
    file = fopen(path, "w");
    EXPECT(file != NULL);
    for (int i = 0; i < size; i++)
        if (sent_to[i].messages > 0)
            fprintf(file, "%d %lld %lld\n", i, sent_to[i].messages, sent_to[i].bytes);
    fclose(file);
}

/*
 * Everybody sends something of its own to everybody on COMM, in which rank i is WORLD[i] of the world; itself too.
 * Sends of all kinds, with nothing in them, to nobody, and what is no message.
 */
static void among(MPI_Comm comm, const int *world, int n)
{
    MPI_Request requests[MOST], one;
    int sum = 0;

    for (int i = 0; i < n; i++)
        MPI_Irecv(in + 20 * i, 20, MPI_INT, i, 1, comm, &requests[i]);
    for (int i = 0; i < n; i++) {
        int length = (rank + 2 * world[i]) % 20;

        switch (i % 4) {
        case 0: TO(world[i], 4 * length, MPI_Send(out, length, MPI_INT, i, 1, comm)); break;
        case 1:
            TO(world[i], 4 * length, MPI_Isend(out, length, MPI_INT, i, 1, comm, &one));
            MPI_Wait(&one, MPI_STATUS_IGNORE);
            break;
        case 2:
            TO(world[i], 4 * length, MPI_Issend(out, length, MPI_INT, i, 1, comm, &one));
            MPI_Wait(&one, MPI_STATUS_IGNORE);
            break;
        case 3: TO(world[i], 4 * length, MPI_Rsend(out, length, MPI_INT, i, 1, comm)); break;
        }
        if (i == 0) /* ready, all of them */
            MPI_Barrier(comm);
    }
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    MPI_Send(out, 10, MPI_INT, MPI_PROC_NULL, 1, comm);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
}

/* To the next one on COMM, where one's rank is ME. */
static void around(MPI_Comm comm, const int *world, int n, int me)
{
    int next = (me + 1) % n, before = (me + n - 1) % n;

    TO(world[next], 400, MPI_Sendrecv(out, 100, MPI_INT, next, 2, in, 100, MPI_INT, before, 2, comm, MPI_STATUS_IGNORE));
    TO(world[before], 8, MPI_Sendrecv_replace(in, 2, MPI_INT, before, 3, next, 3, comm, MPI_STATUS_IGNORE));
}

/* On communicators of which no two give the same ranks. The program says itself who is who, by the colours and keys that
 * it has chosen. */
static void messages(void)
{
    MPI_Comm comm;
    int world[MOST], me;

    for (int i = 0; i < size; i++)
        world[i] = i;
    among(MPI_COMM_WORLD, world, size);
    around(MPI_COMM_WORLD, world, size, rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    among(comm, world, size);
    MPI_Comm_free(&comm);

    /* The other way round. */
    for (int i = 0; i < size; i++)
        world[i] = size - 1 - i;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
    among(comm, world, size);
    around(comm, world, size, size - 1 - rank);
    MPI_Comm_free(&comm);

    /* Those of even rank, and those of odd rank. */
    for (int i = 0; i < (size + 1 - rank % 2) / 2; i++)
        world[i] = 2 * i + rank % 2;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comm);
    among(comm, world, (size + 1 - rank % 2) / 2);
    MPI_Comm_free(&comm);

    /* In no order at all: 1, 0, 2, 3 … */
    for (int i = 0; i < size; i++)
        world[i] = i < 2 ? 1 - i : i;
    me = world[rank];
    MPI_Comm_split(MPI_COMM_WORLD, 0, me, &comm);
    among(comm, world, size);
    around(comm, world, size, me);
    MPI_Comm_free(&comm);

    world[0] = rank;
    among(MPI_COMM_SELF, world, 1);
}

/*
 * Persistent sends of all kinds, each started several times, with a receive and one to nobody; one made
 * while nothing is measured. PEER is NEXT's rank in the world.
 */
static void starts(MPI_Comm comm, int next, int peer, int before)
{
    static char buffer[8 * (400 + MPI_BSEND_OVERHEAD)];
    MPI_Comm copy;
    MPI_Request r[8];
    void *detached;
    int n = 0, length;

    MPI_Buffer_attach(buffer, sizeof buffer);
    MPI_Comm_dup(comm, &copy);
    for (int i = 0; i < 3; i++)
        MPI_Recv_init(in + 100 * i, 100, MPI_INT, before, 4 + i, copy, &r[n++]);
    MPI_Send_init(out, 5, MPI_INT, next, 4, copy, &r[n++]);
    MPI_Pcontrol(0);
    MPI_Ssend_init(out, 7, MPI_INT, next, 5, copy, &r[n++]);
    MPI_Pcontrol(1);
    MPI_Bsend_init(out, 100, MPI_INT, next, 6, copy, &r[n++]);
    MPI_Send_init(out, 9, MPI_INT, MPI_PROC_NULL, 6, copy, &r[n++]);
    for (int i = 0; i < 5; i++) {
        MPI_Startall(n, r);
        sent_to[peer].messages += 3;
        sent_to[peer].bytes += 4 * (5 + 7 + 100);
        MPI_Waitall(n, r, MPI_STATUSES_IGNORE);
    }
    MPI_Buffer_detach(&detached, &length);
    for (int i = 0; i < n; i++)
        MPI_Request_free(&r[i]);
    MPI_Comm_free(&copy);

    MPI_Recv_init(in, 3, MPI_INT, before, 7, comm, &r[0]);
    MPI_Rsend_init(out, 3, MPI_INT, next, 7, comm, &r[1]);
    MPI_Start(&r[0]);
    MPI_Barrier(comm);
    TO(peer, 12, MPI_Start(&r[1]));
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    MPI_Request_free(&r[0]);
    MPI_Request_free(&r[1]);
#if MPI_VERSION >= 4
    MPI_Precv_init(in, 4, 5, MPI_INT, before, 8, comm, MPI_INFO_NULL, &r[0]);
    MPI_Psend_init(out, 4, 5, MPI_INT, next, 8, comm, MPI_INFO_NULL, &r[1]);
    for (int i = 0; i < 2; i++) {
        MPI_Start(&r[0]);
        TO(peer, 80, MPI_Start(&r[1]));
        MPI_Pready_range(0, 3, r[1]);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(&r[0]);
    MPI_Request_free(&r[1]);
#endif
}

/* On two communicators, to the same peer. */
static void persistent(void)
{
    MPI_Comm turned;
    int next = (rank + 1) % size, before = (rank + size - 1) % size;

    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned);
    starts(MPI_COMM_WORLD, next, next, before);
    starts(turned, size - 1 - next, next, size - 1 - before);
    MPI_Comm_free(&turned);
}

/* The window's ranks are the other way round. */
static void window(void)
{
    MPI_Comm comm;
    MPI_Win box;
    int *room, target = (size - 1 - rank + 1) % size, peer = size - 1 - target;

    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
    MPI_Win_allocate(1000 * sizeof(int), sizeof(int), MPI_INFO_NULL, comm, &room, &box);
    MPI_Win_fence(0, box);
    TO(peer, 40, MPI_Put(out, 10, MPI_INT, target, 0, 10, MPI_INT, box));
    TO(peer, 12, MPI_Accumulate(out, 3, MPI_INT, target, 20, 3, MPI_INT, MPI_SUM, box));
    MPI_Put(out, 10, MPI_INT, MPI_PROC_NULL, 0, 10, MPI_INT, box);
    MPI_Win_fence(0, box);
    MPI_Get(in, 10, MPI_INT, target, 0, 10, MPI_INT, box);
    MPI_Win_fence(0, box);
    MPI_Win_free(&box);
    MPI_Comm_free(&comm);
}

/* Ranks of even number are on one side, those of odd number on the other. */
static void inter(void)
{
    MPI_Comm side, bridge;
    int side_rank = rank / 2, mine = (size + 1 - rank % 2) / 2, others = size - mine, peer = 2 * (side_rank % others) + 1 - rank % 2;

    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &side);
    MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, 1 - rank % 2, 7, &bridge);
    /* To one on the other side, who knows who sends something. */
    TO(peer, 12, MPI_Send(out, 3, MPI_INT, side_rank % others, 1, bridge));
    for (int i = 0; i < others; i++)
        if (i % mine == side_rank)
            MPI_Recv(in, 3, MPI_INT, i, 1, bridge, MPI_STATUS_IGNORE);
    MPI_Comm_free(&bridge);
    MPI_Comm_free(&side);
}

int main(int argc, char **argv)
{
    const char *dir = argc > 1 ? argv[1] : "-", *points[] = {"half", "done"};

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    EXPECT(size > 1 && size <= MOST);
    for (int round = 0; round < 2; round++) {
        if (books_wanted("messages", argc, argv))
            messages();
        if (books_wanted("persistent", argc, argv))
            persistent();
        if (books_wanted("window", argc, argv))
            window();
        if (books_wanted("inter", argc, argv))
            inter();
        leave(dir, points[round]);
        hold(dir, points[round], rank);
    }
    TO((rank + 1) % size, 4, MPI_Sendrecv(out, 1, MPI_INT, (rank + 1) % size, 9, in, 1, MPI_INT, (rank + size - 1) % size, 9,
       MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    leave(dir, "end");
    MPI_Finalize();
    return 0;
}
