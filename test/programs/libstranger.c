/* An MPI library of a kind that no agent knows: just enough of it for stranger.c. */
#include <string.h>

int MPI_Init(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    return 0;
}

int MPI_Finalize(void) { return 0; }

int MPI_Get_library_version(char *version, int *length)
{
    strcpy(version, "Stranger MPI 1.0");
    *length = (int)strlen(version);
    return 0;
}

int PMPI_Init(int *argc, char ***argv) { return MPI_Init(argc, argv); }
int PMPI_Finalize(void) { return MPI_Finalize(); }
int PMPI_Get_library_version(char *version, int *length) { return MPI_Get_library_version(version, length); }
