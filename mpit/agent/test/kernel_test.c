/* kernel_test.c - what the kernel says of threads, compared with what they know themselves. */
#define _GNU_SOURCE
#include "kernel.h"
#include "now.h"
#include "test.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int ends[2];
static _Atomic int reader_tid;
static _Atomic bool over;

static void *reads_a_pipe(void *unused)
{
	char byte;

	reader_tid = (int)syscall(SYS_gettid);
	CHECK(read(ends[0], &byte, 1) == 1);
	return unused;
}

static _Atomic int worker_tid;
static _Atomic uint64_t worked_ns;

static void *computes(void *unused)
{
	worker_tid = (int)syscall(SYS_gettid);
	while (!over)
		worked_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	return unused;
}

static void sleep_ms(unsigned ms)
{
	const struct timespec pause = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };

	nanosleep(&pause, NULL);
}

static struct kernel_says look(struct kernel *k, const struct source_calls *calls)
{
	struct kernel_says says;

	k->next = 0;
	kernel_read(k, calls, &says);
	CHECK(says.read);
	return says;
}

void test_what_the_kernel_says_of_threads(void)
{
	struct source_calls calls = { .thread_count = 2 };
	struct kernel k = { 0 };
	struct kernel_says says;
	pthread_t reader, worker;
	char expected[64];
	cpu_set_t cores;
	uint64_t before, after, ids = 0;

	CHECK(pipe2(ends, O_CLOEXEC) == 0);
	CHECK(pthread_create(&reader, NULL, reads_a_pipe, NULL) == 0);
	CHECK(pthread_create(&worker, NULL, computes, NULL) == 0);
	while (reader_tid == 0 || worker_tid == 0)
		sched_yield();
	calls.threads[0] = (struct source_thread){ .id = 7, .tid = (uint64_t)worker_tid };
	calls.threads[1] = (struct source_thread){ .id = 9, .tid = (uint64_t)reader_tid };

	says = look(&k, &calls);
	CHECK(sched_getaffinity(0, sizeof cores, &cores) == 0 && says.cores == (uint64_t)CPU_COUNT(&cores));
	CHECK(says.nice == getpriority(PRIO_PROCESS, 0) && says.resident > 100000 && says.resident < (uint64_t)1 << 45);
	if (says.threads[0].core_ns == UINT64_MAX) {
		fputs("this kernel counts no time in run queues\n", stderr);
	} else {
		sleep_ms(200);
		before = worked_ns;
		says = look(&k, &calls);
		after = worked_ns;
		/* What a tick has not brought yet is missing. */
		CHECK(says.threads[0].core_ns + 20000000 >= before && says.threads[0].core_ns <= after + 20000000);
		CHECK(says.threads[1].core_ns < 100000000 && says.threads[0].in[0] == '\0');
		snprintf(expected, sizeof expected, "read of fd %d (a pipe)", ends[0]);
		CHECK(strcmp(says.threads[1].in, expected) == 0);
		CHECK(says.gpu == 0);
		/* In a call of MPI it isn't asked. */
		calls.threads[1].begun_ns = 1;
		CHECK(look(&k, &calls).threads[1].in[0] == '\0');
	}
	/* Not before it is time again. */
	CHECK(k.next < monotonic_ns() + 500000001); /* soon, while the program is young */
	calls.threads[0].observed_ns = 11000000000;
	before = monotonic_ns();
	look(&k, &calls);
	CHECK(k.next >= before + 3000000000);
	kernel_read(&k, &calls, &says);
	CHECK(!says.read && says.threads[0].core_ns == UINT64_MAX && says.threads[1].in[0] == '\0');

	/* A thread that has gone, and another one in its place. */
	over = true;
	pthread_join(worker, NULL);
	calls.threads[0] = (struct source_thread){ .id = 8, .tid = (uint64_t)syscall(SYS_gettid) };
	calls.threads[1].begun_ns = 0;
	says = look(&k, &calls);
	for (size_t i = 0; i < SOURCE_THREADS; i++)
		ids += k.watched[i].id;
	CHECK(ids == 8 + 9);
	CHECK(write(ends[1], "x", 1) == 1);
	pthread_join(reader, NULL);
	look(&k, &calls); /* gone between two looks */
	close(ends[0]);
	close(ends[1]);
}

/* A kernel that counts no time in run queues, and one that denies it: it isn't known, the rest is. */
void test_what_the_kernel_does_not_say(void)
{
	const struct source_thread self = { .id = 3, .tid = (uint64_t)syscall(SYS_gettid) };
	const struct source_calls calls = { .thread_count = 1, .threads = { self } };
	struct kernel k = { 0 };
	struct kernel_says says;
	char zeros[] = "/tmp/mpit-schedstat-XXXXXX";
	int file = mkstemp(zeros);

	CHECK(file >= 0 && write(file, "0 0 0\n", 6) == 6);
	for (int denied = 0; denied < 2; denied++) {
		k.watched[0] = (struct kernel_watched){ .id = self.id, .schedule = denied ? -1 : file };
		says = look(&k, &calls);
		CHECK(says.threads[0].core_ns == UINT64_MAX && says.threads[0].queue_ns == UINT64_MAX);
		CHECK(says.threads[0].in[0] == '\0' && says.cores > 0 && says.cores != UINT64_MAX);
	}
	close(file);
	unlink(zeros);
}
