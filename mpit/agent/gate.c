/* gate.c - the one lock of the agent; its rule stands in gate.h. */
#define _GNU_SOURCE
#include "gate.h"

#include "agent.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static _Atomic unsigned waiting; /* program's threads that wait now */
static _Atomic uint64_t wait_count, wait_total, wait_longest;
/* initial-exec: no call into the dynamic linker; four bytes of a preloaded library's static TLS. */
static __thread bool held __attribute__((tls_model("initial-exec")));

static void note_wait(uint64_t waited)
{
	uint64_t longest = atomic_load(&wait_longest);

	atomic_fetch_add(&wait_count, 1);
	atomic_fetch_add(&wait_total, waited);
	while (waited > longest && !atomic_compare_exchange_weak(&wait_longest, &longest, waited))
		;
}

bool gate_enter_within(uint64_t patience_ns)
{
	struct timespec until;
	uint64_t begin, end;
	int failed;

	if (held)
		return false;
	if (pthread_mutex_trylock(&gate) == 0) {
		held = true;
		return true;
	}
	/* Somebody reads: this thread sleeps in the kernel (a futex) so that the reader gets the core. */
	begin = monotonic_ns();
	end = realtime_ns() + patience_ns;
	until.tv_sec = (time_t)(end / 1000000000u);
	until.tv_nsec = (long)(end % 1000000000u);
	atomic_fetch_add(&waiting, 1);
	failed = pthread_mutex_timedlock(&gate, &until);
	atomic_fetch_sub(&waiting, 1);
	note_wait(monotonic_ns() - begin);
	if (failed)
		return false;
	held = true;
	return true;
}

bool gate_enter(void)
{
	if (held)
		return false;
	if (gate_enter_within(GATE_PATIENCE_NS))
		return true;
	agent_give_up("a sample did not end in two seconds");
	return false;
}

void gate_leave(void)
{
	held = false;
	pthread_mutex_unlock(&gate);
}

bool gate_try(void)
{
	/* Who waits goes first: without this a busy exporter could starve the program. */
	if (atomic_load(&waiting) != 0 || pthread_mutex_trylock(&gate) != 0)
		return false;
	held = true;
	return true;
}

bool gate_wanted(void)
{
	return atomic_load_explicit(&waiting, memory_order_relaxed) != 0;
}

struct gate_waits gate_waits(void)
{
	return (struct gate_waits){
		.count = atomic_load(&wait_count),
		.total_ns = atomic_load(&wait_total),
		.longest_ns = atomic_load(&wait_longest),
	};
}
