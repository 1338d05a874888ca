/*
 * pcontrol N DIR: what a program says with MPI_Pcontrol, between known numbers of allreduces on communicator "sums".
 *
 *   hold     | before it                                                                              | to be seen on "sums"
 *   on       | N allreduces                                                                           | N
 *   off      | level 0, 2 N; made meanwhile: "quiet" with N, and "gone" with N, freed                 | N
 *   back     | level 1                                                                                | N
 *   counted  | N, and N on "quiet"                                                                    | 2 N, and N on "quiet"
 *   two      | level 2                                                                                | 2 N
 *   level    | N, level 7                                                                             | 3 N
 *   renamed  | level 0, N, "sums" becomes "later", N, level 1, N                                      | 3 N, and N on "later"
 *   again    | levels 1, 0, 0 and N, level 1 and N, level -5                                          | 3 N, and 2 N on "later"
 *   last     | level 0, N; MPI_Finalize comes while it is switched off                                | 3 N, and 2 N on "later"
 */
#include "hold.h"
#include <mpi.h>

static void sum(int n, MPI_Comm comm)
{
    double one = 1, got;

    while (n-- > 0)
        MPI_Allreduce(&one, &got, 1, MPI_DOUBLE, MPI_SUM, comm);
}

int main(int argc, char **argv)
{
    const int n = argc > 1 ? atoi(argv[1]) : 10;
    const char *dir = argc > 2 ? argv[2] : "-";
    MPI_Comm sums, quiet, gone;
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &sums);
    MPI_Comm_set_name(sums, "sums");

    sum(n, sums);
    hold(dir, "on", rank);

    MPI_Pcontrol(0);
    sum(2 * n, sums);
    MPI_Comm_dup(MPI_COMM_WORLD, &quiet);
    MPI_Comm_set_name(quiet, "quiet");
    sum(n, quiet);
    MPI_Comm_dup(MPI_COMM_WORLD, &gone);
    MPI_Comm_set_name(gone, "gone");
    sum(n, gone);
    MPI_Comm_free(&gone);
    hold(dir, "off", rank);

    MPI_Pcontrol(1);
    hold(dir, "back", rank);
    sum(n, sums);
    sum(n, quiet);
    hold(dir, "counted", rank);

    MPI_Pcontrol(2, "two", &n); /* what a tool may define goes behind the level */
    hold(dir, "two", rank);

    sum(n, sums);
    MPI_Pcontrol(7);
    hold(dir, "level", rank);

    MPI_Pcontrol(0);
    sum(n, sums);
    MPI_Comm_set_name(sums, "later");
    sum(n, sums);
    MPI_Pcontrol(1);
    sum(n, sums);
    hold(dir, "renamed", rank);

    MPI_Pcontrol(1);
    MPI_Pcontrol(0);
    MPI_Pcontrol(0);
    sum(n, sums);
    MPI_Pcontrol(1);
    sum(n, sums);
    MPI_Pcontrol(-5);
    hold(dir, "again", rank);

    MPI_Pcontrol(0);
    sum(n, sums);
    hold(dir, "last", rank);
    MPI_Comm_free(&quiet);
    MPI_Comm_free(&sums);
    MPI_Finalize();
    if (rank == 0)
        printf("pcontrol: %d allreduces in a step\n", n);
    return 0;
}
