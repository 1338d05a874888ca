/*
 * descriptors DIR: prints how many descriptors MPI_Init left open, then gives every high number to files of its own:
 * a library that keeps descriptors there must neither lose them nor write into somebody else's.
 */
#include "hold.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <sys/socket.h>

enum { FIRST = 200, PAIRS = 300 };

static int open_descriptors(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/fd");

    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n - 3; /* ".", ".." and the directory itself */
}

int main(int argc, char **argv)
{
    const char *dir = argc > 1 ? argv[1] : "-";
    static int pairs[PAIRS][2];
    int rank, count, stray = 0;
    char byte;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    hold(dir, "up", rank);
    count = open_descriptors();

    for (int fd = FIRST; fd < 1024; fd++)
        close(fd);
    for (int i = 0; i < PAIRS; i++)
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pairs[i]) != 0)
            pairs[i][0] = pairs[i][1] = -1;
    hold(dir, "taken", rank);

    for (int i = 0; i < PAIRS; i++)
        for (int side = 0; side < 2; side++)
            if (pairs[i][side] >= 0) {
                stray += recv(pairs[i][side], &byte, 1, 0) > 0;
                close(pairs[i][side]);
            }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    if (rank == 0)
        printf("descriptors: %d open after MPI_Init, %d stray bytes\n", count, stray);
    return 0;
}
