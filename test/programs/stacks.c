/*
 * stacks DIR ROUNDS: calls MPI from functions that are called from several others, with frames of all kinds. ROUNDS times,
 * each with a hold point "round-N" after it, then once more, and the hold point is "done".
 */
#include "hold.h"

#include <alloca.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* Each has a frame of its own, whatever it ends with. */
#define FUNCTION __attribute__((noinline, noclone)) static
#define END __asm__ volatile("" ::: "memory")

static int rank, out[8], in[8];

FUNCTION void exchange(int n)
{
    MPI_Sendrecv(out, n, MPI_INT, rank, 0, in, n, MPI_INT, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    END;
}

/* Where its frame begins only a frame pointer tells. */
FUNCTION void halo(int n)
{
    char *mine = alloca((size_t)n * 100);

    __asm__ volatile("" ::"r"(mine) : "memory");
    exchange(n);
    END;
}

/* The register of frame pointers may have something else here. */
FUNCTION __attribute__((optimize("omit-frame-pointer"))) void smooth(int n)
{
    for (int i = 0; i < n; i++)
        halo(i + 1);
    exchange(n);
    END;
}

FUNCTION __attribute__((optimize("no-omit-frame-pointer"))) void recurse(int n)
{
    if (n == 0)
        MPI_Barrier(MPI_COMM_WORLD);
    else
        recurse(n - 1);
    END;
}

FUNCTION void step(void)
{
    smooth(3);
    halo(2);
    recurse(2);
    END;
}

int main(int argc, char **argv)
{
    const char *dir = argc > 1 ? argv[1] : "-";
    int rounds = argc > 2 ? atoi(argv[2]) : 0;
    char point[32];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < rounds; i++) {
        step();
        snprintf(point, sizeof point, "round-%d", i);
        hold(dir, point, rank);
    }
    step();
    hold(dir, "done", rank);
    MPI_Finalize();
    if (rank == 0)
        puts("stacks: done");
    return 0;
}
