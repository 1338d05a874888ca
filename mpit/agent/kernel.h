/*
 * kernel.h - what the kernel says of the process and of its threads that call MPI: whether they run, wait for a core or
 * sleep, and in what. Read every few seconds, over descriptors that stay open.
 *
 * The agent's thread's alone, and only where it has a table of descriptors of its own: in the program's there is to be
 * no descriptor that comes and goes.
 */
#ifndef MPIT_KERNEL_H
#define MPIT_KERNEL_H

#include "source.h"

#include <stdbool.h>
#include <stdint.h>

/* Of a thread, in nanoseconds since it began. */
struct kernel_thread {
	uint64_t core_ns, queue_ns; /* on a core, and ready without one; UINT64_MAX both: not read */
	/* The system call that it sleeps in, outside MPI, such as "read of fd 3 (a pipe)"; empty: it isn't, or hasn't been
	 * asleep for most of the time since the last reading. */
	char in[64];
};

/* What is UINT64_MAX isn't known. */
struct kernel_says {
	bool read; /* in this sample; false: the rest means nothing */
	uint64_t cores; /* that the thread which initialised MPI may use */
	int nice; /* of that one */
	uint64_t major_faults, resident; /* of the process: how many, and bytes */
	uint64_t gpu; /* 1: it holds a device of a GPU open. Looked for while a thread sleeps only */
	uint64_t throttled_ns; /* for how long its control group was stopped by a limit */
	struct kernel_thread threads[SOURCE_THREADS]; /* as in source_calls */
};

/* Zeros: nothing has been read. */
struct kernel {
	uint64_t next, next_gpu, gpu; /* CLOCK_MONOTONIC, ns: when to read again; what was found then */
	bool open;                    /* the next two have been opened, or can't be */
	int memory, limit;            /* statm, and cpu.stat of the control group with a limit; negative: there is none */
	struct kernel_watched {
		uint64_t id; /* of source_thread; 0: none */
		int schedule; /* schedstat */
		uint64_t core_ns, at; /* when it was read last */
	} watched[SOURCE_THREADS];
};

/* Reads, if it is time and no filter of system calls has come. What it opens is closed with the table. */
void kernel_read(struct kernel *k, const struct source_calls *calls, struct kernel_says *out);

#endif
