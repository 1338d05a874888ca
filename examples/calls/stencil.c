/*
 * stencil.c - a program whose call profile is worth reading: heat flowing through a plate, one rank of which may be
 * slow.
 *
 *     mpirun -n 4 mpit-exporter exec --calls -- ./stencil [--seconds=10] [--steps=N] [--cells=256]
 *                                                         [--work=MS] [--pause=MS] [--slow=RANK] [--factor=3]
 *                                                         [--output=FILE] [--every=100] [--report]
 *
 * Each step is what many programs do:
 *
 *   - the borders go to the four neighbours on the Cartesian communicator "grid" (MPI_Irecv, MPI_Isend, MPI_Waitall);
 *   - the rank works: it relaxes its CELLS x CELLS, again and again for --work milliseconds, and then sleeps for --pause
 *     milliseconds. Sleeping is no computing, and may be called what it is; but more ranks than there are cores can be
 *     looked at so, for a sleeping rank takes no time from the others;
 *   - all agree on the residual (MPI_Allreduce on "residual");
 *   - every EVERY steps the plate goes into FILE (MPI_File_write_all), if there is one.
 *
 * Rank RANK of "grid" does FACTOR times the work: all others wait for it in MPI_Allreduce, in each step.
 *
 * It ends after SECONDS (0: never), after N steps, or at SIGTERM, SIGINT or SIGUSR1, and says how long a step took.
 * With --report each rank's own clock (MPI_Wtime) says how long it was in which call, to be held against the profile.
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LEFT, RIGHT, UP, DOWN, SIDES };
static const int opposite[SIDES] = { RIGHT, LEFT, DOWN, UP };

/* What --report says, in this order. */
enum { IRECV, ISEND, WAITALL, ALLREDUCE, WRITE_ALL, CALLS };
static const char *const names[CALLS] = { "MPI_Irecv", "MPI_Isend", "MPI_Waitall", "MPI_Allreduce", "MPI_File_write_all" };

struct options {
	double seconds, work_ms, pause_ms, factor;
	long steps, every;
	int cells, slow, report;
	const char *output;
};

/* One rank's square with a border of its neighbours' cells around it, and the time it has spent in calls so far. */
struct plate {
	int n, neighbour[SIDES];
	double *now, *next, *out[SIDES], *in[SIDES];
	double spent[CALLS];
};

static volatile sig_atomic_t asked_to_stop;

static void on_signal(int number)
{
	(void)number;
	asked_to_stop = 1;
}

/* After MPI_Init, so that the library's own handlers don't replace them. */
static void handle_signals(void)
{
	struct sigaction action;

	memset(&action, 0, sizeof action);
	action.sa_handler = on_signal;
	action.sa_flags = SA_RESTART;
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGUSR1, &action, NULL);
}

static struct options parse(int argc, char **argv)
{
	static const struct option known[] = {
		{ "seconds", required_argument, NULL, 's' }, { "steps", required_argument, NULL, 'n' },
		{ "cells", required_argument, NULL, 'c' },   { "work", required_argument, NULL, 'w' },
		{ "pause", required_argument, NULL, 'p' },   { "slow", required_argument, NULL, 'r' },
		{ "factor", required_argument, NULL, 'f' },  { "output", required_argument, NULL, 'o' },
		{ "every", required_argument, NULL, 'e' },   { "report", no_argument, NULL, 't' },
		{ NULL, 0, NULL, 0 },
	};
	struct options o = { .seconds = 10, .factor = 3, .every = 100, .cells = 256, .slow = -1 };
	int option;

	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (option) {
		case 's': o.seconds = atof(optarg); break;
		case 'n': o.steps = atol(optarg); break;
		case 'c': o.cells = atoi(optarg); break;
		case 'w': o.work_ms = atof(optarg); break;
		case 'p': o.pause_ms = atof(optarg); break;
		case 'r': o.slow = atoi(optarg); break;
		case 'f': o.factor = atof(optarg); break;
		case 'o': o.output = optarg; break;
		case 'e': o.every = atol(optarg); break;
		case 't': o.report = 1; break;
		default: exit(2); /* getopt has said why */
		}
	}
	if (optind < argc || o.cells < 1 || o.cells > 16384 || o.factor < 1 || o.every < 1 || o.work_ms < 0 ||
	    o.pause_ms < 0) {
		fprintf(stderr, "stencil: --cells is from 1 to 16384, --factor and --every at least 1, --work and --pause at "
				"least 0, and there are no other arguments\n");
		exit(2);
	}
	return o;
}

static void *zeroed(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (p == NULL) {
		fprintf(stderr, "stencil: out of memory\n");
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	return p;
}

static void exchange(struct plate *p, MPI_Comm grid)
{
	const int n = p->n, line = n + 2;
	MPI_Request requests[2 * SIDES];
	MPI_Status statuses[2 * SIDES];
	double clock[4];
	int side, i;

	for (i = 0; i < n; i++) {
		p->out[LEFT][i] = p->now[(i + 1) * line + 1];
		p->out[RIGHT][i] = p->now[(i + 1) * line + n];
		p->out[UP][i] = p->now[line + i + 1];
		p->out[DOWN][i] = p->now[n * line + i + 1];
	}
	/* On a torus of two columns the left and the right neighbour are one rank: the tag says which border it is. */
	clock[0] = MPI_Wtime();
	for (side = 0; side < SIDES; side++)
		MPI_Irecv(p->in[side], n, MPI_DOUBLE, p->neighbour[side], opposite[side], grid, &requests[side]);
	clock[1] = MPI_Wtime();
	for (side = 0; side < SIDES; side++)
		MPI_Isend(p->out[side], n, MPI_DOUBLE, p->neighbour[side], side, grid, &requests[SIDES + side]);
	clock[2] = MPI_Wtime();
	MPI_Waitall(2 * SIDES, requests, statuses);
	clock[3] = MPI_Wtime();
	for (i = 0; i < 3; i++)
		p->spent[IRECV + i] += clock[i + 1] - clock[i];
	for (i = 0; i < n; i++) {
		p->now[(i + 1) * line] = p->in[LEFT][i];
		p->now[(i + 1) * line + n + 1] = p->in[RIGHT][i];
		p->now[i + 1] = p->in[UP][i];
		p->now[(n + 1) * line + i + 1] = p->in[DOWN][i];
	}
}

/* Jacobi's method; returns the sum of the squared changes. */
static double relax(const struct plate *p)
{
	const int n = p->n, line = n + 2;
	double change, sum = 0;
	int i, j;

	for (i = 1; i <= n; i++) {
		const double *here = p->now + i * line;

		for (j = 1; j <= n; j++) {
			p->next[i * line + j] = (here[j - line] + here[j + line] + here[j - 1] + here[j + 1]) / 4;
			change = p->next[i * line + j] - here[j];
			sum += change * change;
		}
	}
	return sum;
}

static void sleep_ms(double ms)
{
	struct timespec t = { (time_t)(ms / 1000), (long)(ms * 1e6) % 1000000000 };

	if (ms > 0)
		nanosleep(&t, NULL);
}

/* A slow rank does all of it several times over. */
static double work(struct plate *p, const struct options *o, double factor)
{
	const double begin = MPI_Wtime();
	double sum = 0, left = factor, *swap;

	for (; left > 0 || MPI_Wtime() - begin < o->work_ms / 1e3 * factor; left -= 1)
		sum = relax(p); /* the same each time */
	sleep_ms(o->pause_ms * factor);
	swap = p->now;
	p->now = p->next;
	p->next = swap;
	return sum;
}

static double agree(struct plate *p, MPI_Comm residual, double sum, int stop, int *stopped)
{
	double local[2] = { sum, stop }, global[2], begin = MPI_Wtime();

	MPI_Allreduce(local, global, 2, MPI_DOUBLE, MPI_SUM, residual);
	p->spent[ALLREDUCE] += MPI_Wtime() - begin;
	*stopped = global[1] > 0;
	return global[0];
}

static void report(const struct plate *p, MPI_Comm grid, int rank, int size)
{
	double *all = rank == 0 ? zeroed((size_t)size * CALLS, sizeof *all) : NULL;
	int r, call;

	MPI_Gather(p->spent, CALLS, MPI_DOUBLE, all, CALLS, MPI_DOUBLE, 0, grid);
	for (r = 0; rank == 0 && r < size; r++) {
		printf("rank %d:", r);
		for (call = 0; call < CALLS; call++)
			printf(" %s %.6f s%s", names[call], all[r * CALLS + call], call + 1 < CALLS ? "," : "\n");
	}
	free(all);
}

int main(int argc, char **argv)
{
	const struct options o = parse(argc, argv);
	int dims[2] = { 0, 0 }, periods[2] = { 1, 1 }, rank, size, side, stopped = 0;
	struct plate p = { .n = o.cells };
	const size_t n = (size_t)o.cells;
	MPI_Comm grid, residual;
	double start, begin, sum = 0;
	MPI_File file;
	long step;

	MPI_Init(&argc, &argv);
	handle_signals();
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Dims_create(size, 2, dims);
	MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
	MPI_Comm_set_name(grid, "grid");
	MPI_Comm_dup(grid, &residual);
	MPI_Comm_set_name(residual, "residual");
	MPI_Comm_rank(grid, &rank);
	MPI_Cart_shift(grid, 1, 1, &p.neighbour[LEFT], &p.neighbour[RIGHT]);
	MPI_Cart_shift(grid, 0, 1, &p.neighbour[UP], &p.neighbour[DOWN]);

	p.now = zeroed((n + 2) * (n + 2), sizeof *p.now);
	p.next = zeroed((n + 2) * (n + 2), sizeof *p.next);
	for (side = 0; side < SIDES; side++) {
		p.out[side] = zeroed(n, sizeof *p.out[side]);
		p.in[side] = zeroed(n, sizeof *p.in[side]);
	}
	if (rank == 0)
		p.now[(n + 2) * (n / 2 + 1) + n / 2 + 1] = 1000;
	if (o.output != NULL) {
		if (MPI_File_open(grid, o.output, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS) {
			fprintf(stderr, "stencil: %s can't be opened\n", o.output);
			MPI_Abort(MPI_COMM_WORLD, 1);
			return 1;
		}
		MPI_File_set_view(file, (MPI_Offset)rank * (MPI_Offset)((n + 2) * (n + 2) * sizeof *p.now), MPI_DOUBLE, MPI_DOUBLE, "native", MPI_INFO_NULL);
	}

	start = MPI_Wtime();
	for (step = 1; !stopped; step++) {
		exchange(&p, grid);
		sum = work(&p, &o, rank == o.slow ? o.factor : 1);
		sum = agree(&p, residual, sum,
			    asked_to_stop || (o.steps > 0 && step >= o.steps) || (o.seconds > 0 && MPI_Wtime() - start > o.seconds), &stopped);
		if (o.output != NULL && step % o.every == 0) {
			begin = MPI_Wtime();
			MPI_File_seek(file, 0, MPI_SEEK_SET);
			MPI_File_write_all(file, p.now, (int)((n + 2) * (n + 2)), MPI_DOUBLE, MPI_STATUS_IGNORE);
			p.spent[WRITE_ALL] += MPI_Wtime() - begin;
		}
	}
	step--;
	if (rank == 0)
		printf("stencil: %ld steps on %d ranks, %.3f us a step, residual %g\n", step, size, (MPI_Wtime() - start) / (double)step * 1e6, sum);
	if (o.report)
		report(&p, grid, rank, size);

	if (o.output != NULL)
		MPI_File_close(&file);
	for (side = 0; side < SIDES; side++) {
		free(p.out[side]);
		free(p.in[side]);
	}
	free(p.now);
	free(p.next);
	MPI_Comm_free(&residual);
	MPI_Comm_free(&grid);
	MPI_Finalize();
	return 0;
}
