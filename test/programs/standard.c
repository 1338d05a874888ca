/*
 * standard: a program for MPI-5's own ABI (libstandard.c) that receives two messages, one of them without looking at
 * the status.
 */
#include "abi/standard.h"

#include <stdio.h>

extern int MPI_Init(int *, char ***);
extern int MPI_Finalize(void);
extern int MPI_Recv(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);

int main(int argc, char **argv)
{
    int buffer[100];
    MPI_Status status;

    MPI_Init(&argc, &argv);
    MPI_Recv(buffer, 100, MPI_INT, 0, 0, MPI_COMM_WORLD, &status);
    MPI_Recv(buffer, 100, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    puts("standard: done");
    return MPI_Finalize();
}
