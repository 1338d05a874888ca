/*
 * profile_onesided DIR [FAMILY ...]: one-sided calls between neighbours, with books (books.h). Families: fences,
 * post_start, locks, requests, kinds, large; all of them if none is named. Two rounds: hold points "half" and "done".
 * The books of the end are named "end".
 */
#include "books.h"

#define WORLD "comm:MPI_COMM_WORLD"
#define BOX   "win:box"

static MPI_Win box;
static int rank, size, next, before;
static int out[100], in[100], more[100], *room;

static void fences(void)
{
    MPI_Datatype column;

    MPI_Type_vector(3, 1, 4, MPI_INT, &column);
    MPI_Type_commit(&column);
    out[0] = rank + 1000;
    DO(BOX, NONE, NONE, MPI_Win_fence, 0, box);
    DO(BOX, SENT(40), NONE, MPI_Put, out, 10, MPI_INT, next, 0, 10, MPI_INT, box);
    DO(BOX, SENT(24), NONE, MPI_Put, out, 2, column, next, 20, 6, MPI_INT, box);
    DO(BOX, NONE, NONE, MPI_Put, out, 10, MPI_INT, MPI_PROC_NULL, 0, 10, MPI_INT, box);
    DO(BOX, NONE, NONE, MPI_Win_fence, 0, box);
    EXPECT(room[0] == before + 1000);
    DO(BOX, NONE, RECEIVED(28), MPI_Get, in, 7, MPI_INT, next, 0, 28, MPI_BYTE, box);
    DO(BOX, NONE, NONE, MPI_Get, in, 7, MPI_INT, MPI_PROC_NULL, 0, 7, MPI_INT, box);
    DO(BOX, NONE, NONE, MPI_Win_fence, 0, box);
    DO(BOX, SENT(20), NONE, MPI_Accumulate, out, 5, MPI_INT, next, 0, 5, MPI_INT, MPI_SUM, box);
    DO(BOX, NONE, NONE, MPI_Accumulate, out, 5, MPI_INT, MPI_PROC_NULL, 0, 5, MPI_INT, MPI_SUM, box);
    DO(BOX, NONE, NONE, MPI_Win_fence, 0, box);
    MPI_Type_free(&column);
}

static void post_start(void)
{
    MPI_Group everybody, from, to;
    int flag;

    MPI_Comm_group(MPI_COMM_WORLD, &everybody);
    MPI_Group_incl(everybody, 1, &before, &from);
    MPI_Group_incl(everybody, 1, &next, &to);
    for (int i = 0; i < 2; i++) {
        DO(BOX, NONE, NONE, MPI_Win_post, from, 0, box);
        DO(BOX, NONE, NONE, MPI_Win_start, to, 0, box);
        DO(BOX, SENT(8), NONE, MPI_Put, out, 2, MPI_INT, next, 0, 2, MPI_INT, box);
        DO(BOX, NONE, NONE, MPI_Win_complete, box);
        if (i == 0)
            DO(BOX, NONE, NONE, MPI_Win_wait, box);
        else
            for (flag = 0; !flag;)
                DO(BOX, NONE, NONE, MPI_Win_test, box, &flag);
    }
    MPI_Group_free(&to);
    MPI_Group_free(&from);
    MPI_Group_free(&everybody);
}

static void locks(void)
{
    DO(BOX, NONE, NONE, MPI_Win_lock, MPI_LOCK_EXCLUSIVE, next, 0, box);
    DO(BOX, SENT(12), NONE, MPI_Put, out, 3, MPI_INT, next, 0, 3, MPI_INT, box);
    DO(BOX, NONE, NONE, MPI_Win_flush, next, box);
    DO(BOX, NONE, RECEIVED(12), MPI_Get, in, 3, MPI_INT, next, 0, 3, MPI_INT, box);
    DO(BOX, NONE, NONE, MPI_Win_flush_local, next, box);
    DO(BOX, NONE, NONE, MPI_Win_unlock, next, box);
    DO(BOX, NONE, NONE, MPI_Win_lock_all, 0, box);
    DO(BOX, NONE, RECEIVED(20), MPI_Get_accumulate, out, 4, MPI_INT, in, 5, MPI_INT, next, 0, 5, MPI_INT, MPI_NO_OP,
       box); /* doesn't look at `out` */
    DO(BOX, SENT(16), RECEIVED(16), MPI_Get_accumulate, out, 4, MPI_INT, in, 4, MPI_INT, next, 0, 4, MPI_INT, MPI_SUM, box);
    DO(BOX, SENT(4), RECEIVED(4), MPI_Fetch_and_op, out, in, MPI_INT, next, 0, MPI_SUM, box);
    DO(BOX, NONE, NONE, MPI_Fetch_and_op, out, in, MPI_INT, MPI_PROC_NULL, 0, MPI_SUM, box);
    DO(BOX, SENT(4), RECEIVED(4), MPI_Compare_and_swap, out, more, in, MPI_INT, next, 0, box);
    DO(BOX, NONE, NONE, MPI_Win_flush_all, box);
    DO(BOX, NONE, NONE, MPI_Win_flush_local_all, box);
    DO(BOX, NONE, NONE, MPI_Win_sync, box);
    DO(BOX, NONE, NONE, MPI_Win_unlock_all, box);
    DO(WORLD, NONE, NONE, MPI_Barrier, MPI_COMM_WORLD); /* some libraries need the target's help */
}

static void requests(void)
{
    MPI_Request r[4];

    DO(BOX, NONE, NONE, MPI_Win_lock_all, 0, box);
    DO(BOX, SENT(8), NONE, MPI_Rput, out, 2, MPI_INT, next, 0, 2, MPI_INT, box, &r[0]);
    DO("-", NONE, NONE, MPI_Wait, &r[0], MPI_STATUS_IGNORE);
    DO(BOX, NONE, RECEIVED(12), MPI_Rget, in, 3, MPI_INT, next, 0, 3, MPI_INT, box, &r[1]);
    DO("-", NONE, NONE, MPI_Wait, &r[1], MPI_STATUS_IGNORE);
    DO(BOX, SENT(16), NONE, MPI_Raccumulate, out, 4, MPI_INT, next, 0, 4, MPI_INT, MPI_SUM, box, &r[2]);
    DO(BOX, SENT(20), RECEIVED(20), MPI_Rget_accumulate, out, 5, MPI_INT, in, 5, MPI_INT, next, 20, 5, MPI_INT, MPI_SUM, box, &r[3]);
    DO("-", NONE, NONE, MPI_Waitall, 2, r + 2, MPI_STATUSES_IGNORE);
    DO(BOX, NONE, NONE, MPI_Win_unlock_all, box);
    DO(WORLD, NONE, NONE, MPI_Barrier, MPI_COMM_WORLD);
}

/* Windows of each kind: what makes them is a call on the communicator, what frees them has no object. */
static void kinds(void)
{
    MPI_Win win;
    MPI_Aint here, there;
    MPI_Comm part;
    void *base;

    DO(WORLD, NONE, NONE, MPI_Win_allocate, 64, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    MPI_Win_set_name(win, "given");
    DO("win:given", NONE, NONE, MPI_Win_fence, 0, win);
    DO("win:given", SENT(4), NONE, MPI_Put, out, 1, MPI_INT, next, 3, 1, MPI_INT, win);
    DO("win:given", NONE, NONE, MPI_Win_fence, 0, win);
    DO("-", NONE, NONE, MPI_Win_free, &win);

    DO(WORLD, NONE, NONE, MPI_Win_create, room, 400, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win); /* has no name */
    DO("win:unnamed", NONE, NONE, MPI_Win_fence, 0, win);
    DO("-", NONE, NONE, MPI_Win_free, &win);

    DO(WORLD, NONE, NONE, MPI_Comm_split_type, MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &part);
    MPI_Comm_set_name(part, "node");
    DO("comm:node", NONE, NONE, MPI_Win_allocate_shared, 64, 4, MPI_INFO_NULL, part, &base, &win);
    MPI_Win_set_name(win, "shared");
    DO("win:shared", NONE, NONE, MPI_Win_lock_all, 0, win);
    DO("win:shared", NONE, NONE, MPI_Win_sync, win);
    DO("win:shared", NONE, NONE, MPI_Win_unlock_all, win);
    DO("-", NONE, NONE, MPI_Win_free, &win);
    DO("-", NONE, NONE, MPI_Comm_free, &part);

    DO(WORLD, NONE, NONE, MPI_Win_create_dynamic, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_name(win, "dynamic");
    MPI_Win_attach(win, more, sizeof more);
    MPI_Get_address(more, &here);
    DO(WORLD, SENT(sizeof here), RECEIVED(sizeof here), MPI_Sendrecv, &here, 1, MPI_AINT, before, 0, &there, 1, MPI_AINT, next, 0,
       MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    DO("win:dynamic", NONE, NONE, MPI_Win_fence, 0, win);
    DO("win:dynamic", SENT(4), NONE, MPI_Put, out, 1, MPI_INT, next, there, 1, MPI_INT, win);
    DO("win:dynamic", NONE, NONE, MPI_Win_fence, 0, win);
    MPI_Win_detach(win, more);
    DO("-", NONE, NONE, MPI_Win_free, &win);
}

/* The functions of MPI-4 for large counts count as the plain ones. */
static void large(void)
{
#if MPI_VERSION >= 4
    MPI_Request r;

    DO(BOX, NONE, NONE, MPI_Win_lock_all, 0, box);
    DO(BOX, SENT(8), NONE, MPI_Put_c, out, 2, MPI_INT, next, 0, 2, MPI_INT, box);
    DO(BOX, NONE, RECEIVED(8), MPI_Get_c, in, 2, MPI_INT, next, 0, 2, MPI_INT, box);
    DO(BOX, SENT(8), NONE, MPI_Accumulate_c, out, 2, MPI_INT, next, 0, 2, MPI_INT, MPI_SUM, box);
    DO(BOX, SENT(8), NONE, MPI_Rput_c, out, 2, MPI_INT, next, 0, 2, MPI_INT, box, &r);
    DO("-", NONE, NONE, MPI_Wait, &r, MPI_STATUS_IGNORE);
    DO(BOX, NONE, NONE, MPI_Win_unlock_all, box);
    DO(WORLD, NONE, NONE, MPI_Barrier, MPI_COMM_WORLD);
#endif
}

int main(int argc, char **argv)
{
    const char *dir = argc > 1 ? argv[1] : "-";
    static const struct {
        const char *name;
        void (*calls)(void);
    } families[] = {
        {"fences", fences}, {"post_start", post_start}, {"locks", locks}, {"requests", requests}, {"kinds", kinds}, {"large", large},
    };

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    next = (rank + 1) % size;
    before = (rank + size - 1) % size;
    room = calloc(100, sizeof *room);
    DO(WORLD, NONE, NONE, MPI_Win_create, room, 100 * sizeof *room, sizeof *room, MPI_INFO_NULL, MPI_COMM_WORLD, &box);
    MPI_Win_set_name(box, "box");
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
            if (books_wanted(families[i].name, argc, argv))
                families[i].calls();
        books_hold(dir, round == 0 ? "half" : "done", rank);
    }
    DO("-", NONE, NONE, MPI_Win_free, &box);
    books_leave(dir, "end", rank);
    MPI_Finalize();
    free(room);
    if (rank == 0)
        puts("profile_onesided: done");
    return 0;
}
