/* libplugin.c - what plugin.c opens: uses MPI, also functions that both preloaded libraries stand in front of, and prints what they answer. */
#include <mpi.h>
#include <stdio.h>

int run(int *argc, char ***argv);

int run(int *argc, char ***argv)
{
    int codes[7], out[4] = {1, 2, 3, 4}, in[4] = {0};
    MPI_Request request;
    MPI_Comm comm;

    codes[0] = MPI_Init(argc, argv);
    codes[1] = MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    codes[2] = MPI_Isend(out, 4, MPI_INT, 0, 0, comm, &request);
    codes[3] = MPI_Recv(in, 4, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE);
    codes[4] = MPI_Wait(&request, MPI_STATUS_IGNORE);
    codes[5] = PMPI_Comm_free(&comm);
    codes[6] = MPI_Finalize();
    printf("plugin: codes %d %d %d %d %d %d %d, received %d\n", codes[0], codes[1], codes[2], codes[3], codes[4], codes[5], codes[6], in[3]);
    return 0;
}
