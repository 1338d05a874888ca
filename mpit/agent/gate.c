/* gate.c - the one lock of the agent; its rule stands in gate.h. */
#define _GNU_SOURCE
#include "gate.h"

#include "agent.h"
#include "now.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

/*
 * A wait is made of these, each counted in full: of time in which the process stood still (SIGSTOP, a debugger, a
 * frozen control group) no more than one counts.
 */
#define SLICE_NS 50000000u

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

/* pthread_mutex_clocklock. NULL: an older glibc than 2.30, or musl, has only the wait that a step of the clock
 * shortens or stretches. */
typedef int clocked_lock(pthread_mutex_t *, clockid_t, const struct timespec *);
static clocked_lock *_Atomic clocklock;

void gate_prepare(void)
{
	clocked_lock *found;

	/* GCC 12's thread sanitizer, the program's or the agent's own, does not see that it takes the mutex. */
	if (dlsym(RTLD_DEFAULT, "__tsan_init") != NULL)
		return;
	*(void **)&found = dlsym(RTLD_DEFAULT, "pthread_mutex_clocklock");
	atomic_store(&clocklock, found);
}

static bool lock_for(uint64_t slice_ns)
{
	clocked_lock *lock = atomic_load(&clocklock);
	uint64_t end = (lock != NULL ? monotonic_ns() : realtime_ns()) + slice_ns;
	struct timespec until = { .tv_sec = (time_t)(end / 1000000000u), .tv_nsec = (long)(end % 1000000000u) };

	return (lock != NULL ? lock(&gate, CLOCK_MONOTONIC, &until) : pthread_mutex_timedlock(&gate, &until)) == 0;
}

static bool lock_within(uint64_t patience_ns)
{
	for (; patience_ns > SLICE_NS; patience_ns -= SLICE_NS)
		if (lock_for(SLICE_NS))
			return true;
	return lock_for(patience_ns);
}

bool gate_enter_within(uint64_t patience_ns)
{
	uint64_t begin;
	bool locked;

	if (held)
		return false;
	if (pthread_mutex_trylock(&gate) == 0) {
		held = true;
		return true;
	}
	/* Somebody reads: this thread sleeps in the kernel (a futex) so that the reader gets the core. */
	begin = monotonic_ns();
	atomic_fetch_add(&waiting, 1);
	locked = lock_within(patience_ns);
	atomic_fetch_sub(&waiting, 1);
	note_wait(monotonic_ns() - begin);
	if (!locked)
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

bool gate_mine(void)
{
	return held;
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
	/* Given up: whoever could not wait any longer may have freed what the next read is of. */
	return atomic_load_explicit(&waiting, memory_order_relaxed) != 0 || agent_state() == AGENT_OFF;
}

struct gate_waits gate_waits(void)
{
	return (struct gate_waits){
		.count = atomic_load(&wait_count),
		.total_ns = atomic_load(&wait_total),
		.longest_ns = atomic_load(&wait_longest),
	};
}
