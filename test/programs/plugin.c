/* plugin LIBRARY: opens a library that uses MPI so that nobody else can see it (RTLD_LOCAL), and calls its function
 * run. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    int (*run)(int *, char ***) = NULL;

    if (library != NULL)
        *(void **)&run = dlsym(library, "run");
    if (run == NULL) {
        puts("plugin: no library");
        return 3;
    }
    return run(&argc, &argv);
}
