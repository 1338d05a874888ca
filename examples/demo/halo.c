/*
 * halo.c - the demo's MPI program: heat flowing through a plate.
 *
 *     mpirun -n 4 halo [SECONDS]
 *
 * Ends after SECONDS (0 or none: never), or at SIGTERM, SIGINT or SIGUSR1. It does what makes performance variables
 * move, the way real programs do:
 *
 *   - every step exchanges the borders of a 2-D grid with the four neighbours on a Cartesian communicator ("grid") and
 *     agrees on the residual with MPI_Allreduce;
 *   - each rank sends small reports to its neighbour, who is late in receiving them: its unexpected queue grows for
 *     BACKLOG steps, then it is emptied;
 *   - every PHASE steps a communicator is made, named ("phase"), used and freed;
 *   - every rank puts its progress into a window ("progress") on rank 0.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define N 128            /* cells of a rank's square, in each direction */
#define STEP_PAUSE_MS 50 /* the demo is to be looked at, not to heat the machine */
#define PHASE 20
#define BACKLOG 70
#define REPORTS 3 /* in each step */

enum { TAG_HALO = 1, TAG_REPORT = 2 };
enum { LEFT, RIGHT, UP, DOWN, SIDES };

static volatile sig_atomic_t asked_to_stop;

static void on_signal(int number)
{
	(void)number;
	asked_to_stop = 1;
}

static void pause_ms(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

/* One rank's square with a border of its neighbours' cells around it. */
struct plate {
	double now[N + 2][N + 2];
	double next[N + 2][N + 2];
	double out[SIDES][N], in[SIDES][N];
};

static void exchange(struct plate *p, MPI_Comm grid, const int neighbour[SIDES])
{
	static const int opposite[SIDES] = { RIGHT, LEFT, DOWN, UP };
	MPI_Request requests[2 * SIDES];
	MPI_Status statuses[2 * SIDES];
	int side, i;

	for (i = 0; i < N; i++) {
		p->out[LEFT][i] = p->now[i + 1][1];
		p->out[RIGHT][i] = p->now[i + 1][N];
		p->out[UP][i] = p->now[1][i + 1];
		p->out[DOWN][i] = p->now[N][i + 1];
	}
	/* On a torus of two columns the left and the right neighbour are one rank: the tag says which border it is. */
	for (side = 0; side < SIDES; side++) {
		MPI_Irecv(p->in[side], N, MPI_DOUBLE, neighbour[side], 10 * TAG_HALO + opposite[side], grid, &requests[side]);
		MPI_Isend(p->out[side], N, MPI_DOUBLE, neighbour[side], 10 * TAG_HALO + side, grid, &requests[SIDES + side]);
	}
	MPI_Waitall(2 * SIDES, requests, statuses);
	for (i = 0; i < N; i++) {
		p->now[i + 1][0] = p->in[LEFT][i];
		p->now[i + 1][N + 1] = p->in[RIGHT][i];
		p->now[0][i + 1] = p->in[UP][i];
		p->now[N + 1][i + 1] = p->in[DOWN][i];
	}
}

/* Jacobi's method; returns the sum of the squared changes. */
static double relax(struct plate *p)
{
	double change, sum = 0;
	int i, j;

	for (i = 1; i <= N; i++) {
		for (j = 1; j <= N; j++) {
			p->next[i][j] = (p->now[i - 1][j] + p->now[i + 1][j] + p->now[i][j - 1] + p->now[i][j + 1]) / 4;
			change = p->next[i][j] - p->now[i][j];
			sum += change * change;
		}
	}
	memcpy(p->now, p->next, sizeof p->now);
	return sum;
}

/* At last: the reports of one neighbour, as many as were sent to the other. */
static void receive_reports(MPI_Comm grid, int from, int backlog, MPI_Request sent[])
{
	long report;
	int i;

	for (i = 0; i < backlog; i++) {
		MPI_Recv(&report, 1, MPI_LONG, from, TAG_REPORT, grid, MPI_STATUS_IGNORE);
		MPI_Wait(&sent[i], MPI_STATUS_IGNORE);
	}
}

int main(int argc, char **argv)
{
	const double seconds = argc > 1 ? atof(argv[1]) : 0;
	int rank, size, dims[2] = { 0, 0 }, periods[2] = { 1, 1 }, neighbour[SIDES], before, after, backlog = 0, i;
	long step, reports[BACKLOG * REPORTS], *progress, mine;
	MPI_Request sent[BACKLOG * REPORTS];
	struct sigaction action;
	struct plate *plate;
	MPI_Comm grid, phase;
	MPI_Win window;
	double start, local[2], global[2];

	MPI_Init(&argc, &argv);
	MPI_Comm_size(MPI_COMM_WORLD, &size);

	/* After MPI_Init, so that the library's own handlers don't replace them. */
	memset(&action, 0, sizeof action);
	action.sa_handler = on_signal;
	action.sa_flags = SA_RESTART;
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGUSR1, &action, NULL);

	MPI_Dims_create(size, 2, dims);
	MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &grid);
	MPI_Comm_set_name(grid, "grid");
	MPI_Comm_rank(grid, &rank);
	MPI_Cart_shift(grid, 1, 1, &neighbour[LEFT], &neighbour[RIGHT]);
	MPI_Cart_shift(grid, 0, 1, &neighbour[UP], &neighbour[DOWN]);
	before = (rank + size - 1) % size;
	after = (rank + 1) % size;

	MPI_Win_allocate((MPI_Aint)(rank == 0 ? size : 0) * (MPI_Aint)sizeof *progress, sizeof *progress, MPI_INFO_NULL, grid, &progress, &window);
	MPI_Win_set_name(window, "progress");

	plate = calloc(1, sizeof *plate);
	if (plate == NULL) {
		fprintf(stderr, "halo: out of memory\n");
		MPI_Abort(MPI_COMM_WORLD, 1);
		return 1;
	}
	if (rank == 0)
		plate->now[N / 2][N / 2] = 1000;

	start = MPI_Wtime();
	for (step = 1;; step++) {
		for (i = 0; i < REPORTS; i++, backlog++) {
			reports[backlog] = step;
			MPI_Isend(&reports[backlog], 1, MPI_LONG, after, TAG_REPORT, grid, &sent[backlog]);
		}
		exchange(plate, grid, neighbour);
		local[0] = relax(plate);
		local[1] = asked_to_stop || (seconds > 0 && MPI_Wtime() - start > seconds);
		MPI_Allreduce(local, global, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);

		if (step % PHASE == 0) {
			MPI_Comm_dup(grid, &phase);
			MPI_Comm_set_name(phase, "phase");
			MPI_Bcast(&global[0], 1, MPI_DOUBLE, 0, phase);
			MPI_Comm_free(&phase);

			mine = step;
			MPI_Win_fence(0, window);
			MPI_Put(&mine, 1, MPI_LONG, 0, rank, 1, MPI_LONG, window);
			MPI_Win_fence(0, window);
		}
		if (global[1] > 0)
			break;
		if (step % BACKLOG == 0) {
			receive_reports(grid, before, backlog, sent);
			backlog = 0;
		}
		pause_ms(STEP_PAUSE_MS);
	}
	receive_reports(grid, before, backlog, sent);

	if (rank == 0)
		printf("halo: %ld steps on %d ranks, residual %g\n", step, size, global[0]);
	free(plate);
	MPI_Win_free(&window);
	MPI_Comm_free(&grid);
	MPI_Finalize();
	return 0;
}
