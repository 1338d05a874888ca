/*
 * dlopened LIBRARY HOW: opens an MPI library itself and looks its functions up. HOW: local or global (dlopen's flag;
 * functions from the library's handle), default (global, functions from RTLD_DEFAULT), absent (functions from
 * RTLD_DEFAULT, no library opened).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *library;

static void *function(const char *name)
{
    void *found = dlsym(library, name);

    if (found == NULL) {
        printf("dlopened: no %s\n", name);
        exit(2);
    }
    return found;
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "", *how = argc > 2 ? argv[2] : "local";
    int (*init)(int *, char ***), (*finalize)(void), (*initialized)(int *), (*tools)(int, int *), (*number)(int *);
    int flags[2] = {-1, -1}, provided = -1, count = -1, codes[5];

    library = RTLD_DEFAULT;
    if (strcmp(how, "absent") != 0) {
        library = dlopen(path, RTLD_NOW | (strcmp(how, "local") == 0 ? RTLD_LOCAL : RTLD_GLOBAL));
        if (library == NULL) {
            puts("dlopened: no library");
            return 3;
        }
    }
    if (strcmp(how, "default") == 0)
        library = RTLD_DEFAULT;
    *(void **)&init = function("MPI_Init");
    *(void **)&finalize = function("MPI_Finalize");
    *(void **)&initialized = function("MPI_Initialized");
    *(void **)&tools = function("MPI_T_init_thread");
    *(void **)&number = function("MPI_T_cvar_get_num");
    codes[0] = tools(0, &provided);
    codes[1] = init(&argc, &argv);
    codes[2] = initialized(&flags[0]);
    codes[3] = number(&count);
    codes[4] = finalize();
    printf("dlopened: codes %d %d %d %d %d, initialized %d, tools at level %d, control variables: %s\n", codes[0], codes[1], codes[2],
           codes[3], codes[4], flags[0], provided, count > 0 ? "some" : "none");
    return 0;
}
