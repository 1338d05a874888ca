/*
 * cvars NAME DIR: prints the value of the MPI library's control variable NAME, an int or a string, as this process
 * itself reads it, before the hold point "asked" and after it: what somebody has set meanwhile stands in the second
 * line.
 */
#include "hold.h"
#include <mpi.h>

static void print(const char *name)
{
    static char text[65536];
    char unused[1];
    int index, number, count, verbosity, bind, scope, name_length = 1, description_length = 1;
    MPI_Datatype type;
    MPI_T_enum enumeration;
    MPI_T_cvar_handle handle;

    if (MPI_T_cvar_get_index(name, &index) != MPI_SUCCESS ||
        MPI_T_cvar_get_info(index, unused, &name_length, &verbosity, &type, &enumeration, unused, &description_length, &bind, &scope) != MPI_SUCCESS ||
        MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 90);
    MPI_T_cvar_read(handle, type == MPI_CHAR ? (void *)text : &number);
    if (type == MPI_CHAR)
        printf("cvars: %s is \"%s\"\n", name, text);
    else
        printf("cvars: %s is %d\n", name, number);
    fflush(stdout);
    MPI_T_cvar_handle_free(&handle);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "", *dir = argc > 2 ? argv[2] : "-";
    int rank, provided;

    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        print(name);
    hold(dir, "asked", rank);
    if (rank == 0)
        print(name);
    MPI_Finalize();
    return 0;
}
