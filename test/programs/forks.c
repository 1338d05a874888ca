/* forks DIR: three children that leave by _exit, by exit (with their parent's atexit functions) and by exec. */
#include "hold.h"
#include <mpi.h>
#include <sys/wait.h>

static int child(int how)
{
    int status = -1;
    const pid_t pid = fork();

    if (pid == 0) {
        if (how == 0)
            _exit(10);
        if (how == 1)
            exit(11);
        execl("/bin/sh", "sh", "-c", "exit 12", (char *)NULL);
        _exit(96);
    }
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(int argc, char **argv)
{
    const char *dir = argc > 1 ? argv[1] : "-";
    int rank, status[3];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int how = 0; how < 3; how++)
        status[how] = child(how);
    hold(dir, "forked", rank);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    if (rank == 0)
        printf("forks: children's status %d %d %d\n", status[0], status[1], status[2]);
    return 0;
}
