/* stranger: a program of libstranger.c. Prints the library's name and ends with status 0. */
#include <stdio.h>

int MPI_Init(int *argc, char ***argv);
int MPI_Finalize(void);
int MPI_Get_library_version(char *version, int *length);

int main(int argc, char **argv)
{
    char version[256];
    int length;

    if (MPI_Init(&argc, &argv) != 0)
        return 1;
    MPI_Get_library_version(version, &length);
    printf("stranger: %s\n", version);
    return MPI_Finalize();
}
