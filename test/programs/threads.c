/* threads LEVEL: what MPI answers of thread levels. LEVEL: none (MPI_Init), single, funneled, serialized, multiple. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static const char *name(int level)
{
    switch (level) {
    case MPI_THREAD_SINGLE:     return "single";
    case MPI_THREAD_FUNNELED:   return "funneled";
    case MPI_THREAD_SERIALIZED: return "serialized";
    case MPI_THREAD_MULTIPLE:   return "multiple";
    default:                    return "?";
    }
}

int main(int argc, char **argv)
{
    const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE};
    const char *asked = argc > 1 ? argv[1] : "none";
    int provided = -1, query, main_thread, rank;

    if (strcmp(asked, "none") == 0)
        MPI_Init(&argc, &argv);
    for (int i = 0; i < 4; i++)
        if (strcmp(asked, name(levels[i])) == 0)
            MPI_Init_thread(&argc, &argv, levels[i], &provided);
    MPI_Query_thread(&query);
    MPI_Is_thread_main(&main_thread);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        printf("threads: asked %s, provided %s, query %s, main %d\n", asked, name(provided), name(query), main_thread);
    MPI_Finalize();
    return 0;
}
