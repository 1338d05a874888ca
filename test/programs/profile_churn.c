/*
 * profile_churn COUNT DIR: COUNT communicators that are made, called on and freed, so that handles come again under
 * other names, with books (books.h); a window with every 50th. Some get no name, some another one in the midst of
 * their life, some are made in a life before the calls on others. Hold points: "half", while a few are alive, and
 * "done", when none is. The books of the end are named "end".
 */
#include "books.h"

enum { KEEP = 7 };

static int rank, size, next, before;

static void calls(MPI_Comm comm, const char *object, int number)
{
    char out[64] = {0}, in[64];
    int one = 1, sum = 0;

    DO(object, SENT(number % 50), RECEIVED(number % 50), MPI_Sendrecv, out, number % 50, MPI_BYTE, next, 0, in, 50, MPI_BYTE, before,
       0, comm, MPI_STATUS_IGNORE);
    if (number % 3 == 0)
        DO(object, SENT(4), RECEIVED(4), MPI_Allreduce, &one, &sum, 1, MPI_INT, MPI_SUM, comm);
}

static void window(MPI_Comm comm, const char *object, int number)
{
    const char *name = number % 100 == 0 ? "win:hundred" : "win:fifty";
    int *room;
    MPI_Win win;

    DO(object, NONE, NONE, MPI_Win_allocate, 64, 4, MPI_INFO_NULL, comm, &room, &win);
    MPI_Win_set_name(win, name + 4);
    DO(name, NONE, NONE, MPI_Win_fence, 0, win);
    DO(name, SENT(4), NONE, MPI_Put, &number, 1, MPI_INT, next, 0, 1, MPI_INT, win);
    DO(name, NONE, NONE, MPI_Win_fence, 0, win);
    DO("-", NONE, NONE, MPI_Win_free, &win);
}

int main(int argc, char **argv)
{
    static const char *const objects[] = {"comm:zero", "comm:one", "comm:two", "comm:unnamed", "comm:four"};
    const int count = argc > 1 ? atoi(argv[1]) : 100;
    const char *dir = argc > 2 ? argv[2] : "-";
    MPI_Comm alive[KEEP];
    int living = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    next = (rank + 1) % size;
    before = (rank + size - 1) % size;
    for (int i = 0; i < count; i++) {
        const char *object = objects[i % 5];
        MPI_Comm comm;

        DO("comm:MPI_COMM_WORLD", NONE, NONE, MPI_Comm_dup, MPI_COMM_WORLD, &comm);
        if (strcmp(object, "comm:unnamed") != 0)
            MPI_Comm_set_name(comm, object + 5);
        calls(comm, object, i);
        if (i % 4 == 0) {
            object = "comm:renamed";
            MPI_Comm_set_name(comm, object + 5);
            calls(comm, object, i);
        }
        if (i % 50 == 0)
            window(comm, object, i);
        alive[living++] = comm;
        if (i == count / 2)
            books_hold(dir, "half", rank);
        /* Freed in another order than made, one after the other from time to time. */
        if (living == KEEP || i % 11 == 0)
            for (int other = i % 2; living > 0; living--) {
                if (other && living > 1) {
                    MPI_Comm last = alive[living - 1];

                    alive[living - 1] = alive[0];
                    alive[0] = last;
                }
                DO("-", NONE, NONE, MPI_Comm_free, &alive[living - 1]);
            }
    }
    while (living > 0)
        DO("-", NONE, NONE, MPI_Comm_free, &alive[--living]);
    books_hold(dir, "done", rank);
    books_leave(dir, "end", rank);
    MPI_Finalize();
    if (rank == 0)
        puts("profile_churn: done");
    return 0;
}
