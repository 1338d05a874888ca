/*
 * profile_stuck DIR: rank 0 waits in MPI_Barrier on communicator "halo", called in waits_for_the_others(), until the
 * test lets the others go from hold point "late"; with books (books.h). Hold point of all: "done".
 */
#include "books.h"

static __attribute__((noinline)) void waits_for_the_others(MPI_Comm halo)
{
    DO("comm:halo", NONE, NONE, MPI_Barrier, halo);
}

int main(int argc, char **argv)
{
    const char *dir = argc > 1 ? argv[1] : "-";
    MPI_Comm halo;
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    DO("comm:MPI_COMM_WORLD", NONE, NONE, MPI_Comm_dup, MPI_COMM_WORLD, &halo);
    MPI_Comm_set_name(halo, "halo");
    if (rank != 0)
        hold(dir, "late", rank);
    waits_for_the_others(halo);
    books_hold(dir, "done", rank);
    MPI_Comm_free(&halo);
    MPI_Finalize();
    if (rank == 0)
        puts("profile_stuck: done");
    return 0;
}
