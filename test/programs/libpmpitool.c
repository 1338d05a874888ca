/*
 * Another tool in the same program: counts calls through the profiling interface (MPI-4.1 chapter 15.2) and says at
 * the end what it has seen. To be preloaded before or after others, or linked. PMPITOOL_FILE is where it says it,
 * PMPITOOL_FILE.RANK.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int begun, sent, received, duplicated, split, freed, named, windows, levels, last_level = -1;

int MPI_Init(int *argc, char ***argv)
{
    begun++;
    return PMPI_Init(argc, argv);
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    begun++;
    return PMPI_Init_thread(argc, argv, required, provided);
}

int MPI_Send(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    sent++;
    return PMPI_Send(buffer, count, type, to, tag, comm);
}

int MPI_Recv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    received++;
    return PMPI_Recv(buffer, count, type, from, tag, comm, status);
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *copy)
{
    duplicated++;
    return PMPI_Comm_dup(comm, copy);
}

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *part)
{
    split++;
    return PMPI_Comm_split(comm, color, key, part);
}

int MPI_Comm_free(MPI_Comm *comm)
{
    freed++;
    return PMPI_Comm_free(comm);
}

int MPI_Comm_set_name(MPI_Comm comm, const char *name)
{
    named++;
    return PMPI_Comm_set_name(comm, name);
}

int MPI_Win_create(void *base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, MPI_Win *win)
{
    windows++;
    return PMPI_Win_create(base, size, unit, info, comm, win);
}

int MPI_Pcontrol(const int level, ...)
{
    levels++;
    last_level = level;
    return MPI_SUCCESS; /* a tool's own business: there is nothing of the library's behind it */
}

int MPI_Finalize(void)
{
    const char *file = getenv("PMPITOOL_FILE");
    char path[4096];
    FILE *out;
    int rank;

    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(path, sizeof path, "%s.%d", file == NULL ? "pmpitool" : file, rank);
    out = fopen(path, "w");
    if (out != NULL) {
        fprintf(out, "begun %d sent %d received %d duplicated %d split %d freed %d named %d windows %d levels %d last %d\n", begun, sent,
                received, duplicated, split, freed, named, windows, levels, last_level);
        fclose(out);
    }
    return PMPI_Finalize();
}
