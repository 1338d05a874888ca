/*
 * pingpong.c - what make bench measures: the time of one message there and back, of one allreduce, and of one step of
 * a program that computes and exchanges, between two ranks; of making and freeing objects, which is where the agent
 * looks; and of persistent messages of a rank to itself.
 *
 *     mpirun -n 2 pingpong SECONDS
 *
 * MPI_Init and MPI_Finalize are measured too, once. Rank 0 prints a line for each: its name and the microseconds of
 * one operation, the median over blocks of operations (a block is long enough for the clock, and a disturbed one
 * doesn't move the median).
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BLOCK 400        /* operations between two looks at the clock */
#define MAX_BLOCKS 200000
#define AGREE 50 /* blocks between two agreements on whether to end, outside the measured time */

static char buffer[4096];

static void ping_pong(int rank, int bytes)
{
	int i;

	for (i = 0; i < BLOCK; i++) {
		if (rank == 0) {
			MPI_Send(buffer, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
			MPI_Recv(buffer, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		} else {
			MPI_Recv(buffer, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Send(buffer, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
		}
	}
}

static void all_reduce(int rank, int bytes)
{
	double mine = rank, all;
	int i;

	(void)bytes;
	for (i = 0; i < BLOCK; i++)
		MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

/* What a program that computes does in one step: a halo of 1 KiB to each side, its own cells in the meantime, one
 * sum. */
static void step(int rank, int bytes)
{
	enum { HALO = 128, CELLS = 16384 };
	static double cells[CELLS], next[CELLS], halo[2][HALO];
	const int peer = 1 - rank;
	double mine, all;
	int i, k;

	(void)bytes;
	for (i = 0; i < BLOCK; i++) {
		MPI_Request requests[4];

		MPI_Irecv(halo[0], HALO, MPI_DOUBLE, peer, 1, MPI_COMM_WORLD, &requests[0]);
		MPI_Irecv(halo[1], HALO, MPI_DOUBLE, peer, 2, MPI_COMM_WORLD, &requests[1]);
		MPI_Isend(cells, HALO, MPI_DOUBLE, peer, 1, MPI_COMM_WORLD, &requests[2]);
		MPI_Isend(cells + CELLS - HALO, HALO, MPI_DOUBLE, peer, 2, MPI_COMM_WORLD, &requests[3]);
		for (k = 1; k < CELLS - 1; k++)
			next[k] = 0.25 * cells[k - 1] + 0.5 * cells[k] + 0.25 * cells[k + 1];
		MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
		mine = next[HALO] + halo[0][0] + halo[1][0];
		MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		cells[HALO] = all;
	}
}

static void type_commit(int rank, int bytes)
{
	MPI_Datatype type;
	int i;

	(void)rank, (void)bytes;
	for (i = 0; i < BLOCK; i++) {
		MPI_Type_vector(8, 1, 2, MPI_DOUBLE, &type);
		MPI_Type_commit(&type);
		MPI_Type_free(&type);
	}
}

static void comm_dup(int rank, int bytes)
{
	MPI_Comm comm;
	int i;

	(void)rank, (void)bytes;
	for (i = 0; i < BLOCK; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		MPI_Comm_free(&comm);
	}
}

static void comm_split(int rank, int bytes)
{
	MPI_Comm comm;
	int i;

	(void)rank, (void)bytes;
	for (i = 0; i < BLOCK; i++) {
		MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &comm);
		MPI_Comm_free(&comm);
	}
}

/* A rank's message to itself, started by itself or together with its receive. */
static void start(int rank, int together)
{
	MPI_Request requests[2];
	char in[8], out[8] = "";
	int i;

	(void)rank;
	MPI_Recv_init(in, sizeof in, MPI_CHAR, 0, 1, MPI_COMM_SELF, &requests[0]);
	MPI_Send_init(out, sizeof out, MPI_CHAR, 0, 1, MPI_COMM_SELF, &requests[1]);
	for (i = 0; i < BLOCK; i++) {
		if (together) {
			MPI_Startall(2, requests);
		} else {
			MPI_Start(&requests[0]);
			MPI_Start(&requests[1]);
		}
		MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
	}
	MPI_Request_free(&requests[0]);
	MPI_Request_free(&requests[1]);
}

/* Microseconds; MPI_Wtime is not there before MPI_Init. */
static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void measure(const char *name, void (*operation)(int, int), int bytes, int rank, double seconds)
{
	static double blocks[MAX_BLOCKS];
	const double start = MPI_Wtime();
	double before;
	int n = 0, stop = 0;

	operation(rank, bytes); /* not measured: the first messages set connections up */
	while (!stop && n < MAX_BLOCKS) {
		before = MPI_Wtime();
		operation(rank, bytes);
		blocks[n++] = (MPI_Wtime() - before) / BLOCK;
		if (n % AGREE == 0) {
			stop = MPI_Wtime() - start > seconds;
			MPI_Bcast(&stop, 1, MPI_INT, 0, MPI_COMM_WORLD);
		}
	}
	qsort(blocks, (size_t)n, sizeof *blocks, by_value);
	if (rank == 0)
		printf("%s %.4f\n", name, blocks[n / 2] * 1e6);
}

int main(int argc, char **argv)
{
	const double seconds = argc > 1 ? atof(argv[1]) : 1;
	double init = now(), finalize;
	int rank, size;

	MPI_Init(&argc, &argv);
	init = now() - init;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size != 2) {
		fprintf(stderr, "pingpong: needs 2 ranks, has %d\n", size);
		MPI_Abort(MPI_COMM_WORLD, 1);
		return 1;
	}
	measure("ping-pong-8B", ping_pong, 8, rank, seconds);
	measure("ping-pong-4KiB", ping_pong, 4096, rank, seconds);
	measure("allreduce-8B", all_reduce, 8, rank, seconds);
	measure("application-step", step, 0, rank, seconds);
	measure("Type_commit-free", type_commit, 0, rank, seconds);
	measure("Comm_dup-free", comm_dup, 0, rank, seconds);
	measure("Comm_split-free", comm_split, 0, rank, seconds);
	measure("Start-Waitall", start, 0, rank, seconds);
	measure("Startall-Waitall", start, 1, rank, seconds);
	finalize = now();
	MPI_Finalize();
	if (rank == 0)
		printf("MPI_Init %.0f\nMPI_Finalize %.0f\n", init, now() - finalize);
	return 0;
}
