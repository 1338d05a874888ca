/* cvarcount: prints how many control variables the MPI library has after MPI_Init. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int provided, count;

    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Init(&argc, &argv);
    MPI_T_cvar_get_num(&count);
    printf("%d\n", count);
    MPI_Finalize();
    return 0;
}
