/*
 * calls.c - what make bench-peers measures besides pingpong.c: the time of one call of MPI that does nothing (a send to
 * MPI_PROC_NULL), and the memory of a rank.
 *
 *     mpirun -n 1 calls THREADS SECONDS
 *
 * A line for each: its name, and nanoseconds, of all calls of all threads, the clock's own time included; or the KiB
 * that the process has written and has to itself: pages of files are shared with the next rank.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LONGEST 100000 /* ns; what takes longer counts as this */

static double seconds;

/* Nanoseconds. */
static long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

/* Counts into an array of calls by their nanoseconds, which is the thread's own. */
static void *make_calls(void *counts)
{
	unsigned *of = counts;
	const long end = now() + (long)(seconds * 1e9);
	long before, after = 0;
	int byte = 0;

	while (after < end) {
		before = now();
		MPI_Send(&byte, 1, MPI_CHAR, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
		after = now();
		of[after - before < LONGEST ? after - before : LONGEST]++;
	}
	return NULL;
}

static long percentile(const unsigned *of, double share)
{
	double all = 0, sum = 0;
	long ns;

	for (ns = 0; ns <= LONGEST; ns++)
		all += of[ns];
	for (ns = 0; ns < LONGEST && (sum += of[ns]) < share * all; ns++)
		;
	return ns;
}

static long private_kib(void)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "r");
	char line[256];
	long kib, sum = 0;

	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "Private_Dirty: %ld", &kib) == 1)
			sum = kib;
	if (f)
		fclose(f);
	return sum;
}

int main(int argc, char **argv)
{
	const int threads = argc > 1 ? atoi(argv[1]) : 1;
	unsigned *counts = calloc((size_t)threads * (LONGEST + 1), sizeof *counts), *all = calloc(LONGEST + 1, sizeof *all);
	pthread_t *thread = calloc((size_t)threads, sizeof *thread);
	int provided, i;
	long ns;

	if (!counts || !all || !thread)
		return 1;
	seconds = argc > 2 ? atof(argv[2]) : 1;
	MPI_Init_thread(&argc, &argv, threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
	if (threads == 1)
		printf("private-KiB %ld\n", private_kib());
	for (i = 1; i < threads; i++)
		if (pthread_create(&thread[i], NULL, make_calls, counts + (size_t)i * (LONGEST + 1)))
			return 1;
	make_calls(counts);
	for (i = 1; i < threads; i++)
		pthread_join(thread[i], NULL);
	for (i = 0; i < threads; i++)
		for (ns = 0; ns <= LONGEST; ns++)
			all[ns] += counts[(size_t)i * (LONGEST + 1) + (size_t)ns];
	printf("call-%dt-p50-ns %ld\ncall-%dt-p99-ns %ld\n", threads, percentile(all, 0.5), threads, percentile(all, 0.99));
	MPI_Finalize();
	free(counts);
	free(all);
	free(thread);
	return 0;
}
