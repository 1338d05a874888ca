/* link.c - the agent's thread. */
#define _GNU_SOURCE
#include "link.h"

#include "agent.h"
#include "answers.h"
#include "descriptor.h"
#include "filter.h"
#include "last.h"
#include "now.h"
#include "wake.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BACKOFF_FIRST_MS 20
#define BACKOFF_LAST_MS 2000
#define OWN_STACK (256u << 10) /* what we and MPI_T's functions may need */
#define END_STACK (128u << 10) /* what the thread of the end needs */
#define LARGEST_PAGE (64u << 10)

#define BEGIN_PATIENCE_NS 10000000u

/* The connection that stands; whose turn it is says who may touch it. */
static struct connection standing = { .fd = -1 };
static _Atomic uint32_t begun; /* the thread has its descriptors, and has looked for an exporter once, or has left */

void link_paths(struct link *l)
{
	const char *given = getenv("MPIT_SOCKET"), *runtime = getenv("XDG_RUNTIME_DIR");

	l->paths.path[0][0] = l->paths.path[1][0] = '\0';
	if (given != NULL && *given != '\0') {
		if (strlen(given) < sizeof l->paths.path[0])
			copy_string(l->paths.path[0], sizeof l->paths.path[0], given);
		else
			agent_log("MPIT_SOCKET is longer than a socket's path may be (%zu bytes)", sizeof l->paths.path[0] - 1);
		return;
	}
	copy_string(l->paths.path[0], sizeof l->paths.path[0], SOCKET_DEFAULT);
	if (runtime != NULL && *runtime != '\0' && strlen(runtime) + sizeof "/" SOCKET_RUNTIME <= sizeof l->paths.path[1])
		snprintf(l->paths.path[1], sizeof l->paths.path[1], "%s/" SOCKET_RUNTIME, runtime);
}

static void close_range_of(unsigned first, unsigned last)
{
	struct rlimit limit;

	if (syscall(SYS_close_range, first, last, 0) == 0)
		return;
	/* Linux before 5.9. What stayed open here would keep the program's pipes from ending. */
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > 65536)
		limit.rlim_cur = 65536;
	for (unsigned fd = first; fd <= last && fd < limit.rlim_cur; fd++)
		descriptor_close((int)fd);
}

/* Leaves the program's descriptors: from here on its table is none of ours, and ours none of its. */
static bool own_table(void)
{
	int fd;

	if (unshare(CLONE_FILES) != 0)
		return false;
	close_range_of(0, agent_log_enabled() ? 1 : 2);
	close_range_of(3, ~0u);
	/* So that the socket can't become 0, 1 or 2. */
	do
		fd = descriptor_open("/dev/null", O_RDWR);
	while (fd >= 0 && fd < 2);
	if (fd > 2)
		descriptor_close(fd);
	return true;
}

static bool alive(void)
{
	return agent_state() == AGENT_RUNNING;
}

/* A thousand ranks must not come back in the same millisecond. */
static unsigned jitter(uint64_t *seed, unsigned ms)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return ms / 2 + (unsigned)(*seed >> 33) % (ms / 2 + 1);
}

/*
 * The C library's size of a stack. Static TLS of the program's libraries counts against it; it is at least as large
 * as that, but under a small limit, or with a very large TLS, not much larger.
 */
static size_t default_stack(void)
{
	pthread_attr_t attributes;
	size_t size = 8u << 20;

	if (pthread_attr_init(&attributes) != 0)
		return size;
	pthread_attr_getstacksize(&attributes, &size);
	pthread_attr_destroy(&attributes);
	return size;
}

/* How much of this thread's stack lies above the address of a local variable: static TLS for the most part. */
static size_t stack_above(const void *local)
{
	pthread_attr_t attributes;
	void *lowest = NULL;
	size_t size = 0, above = default_stack();

	if (pthread_getattr_np(pthread_self(), &attributes) != 0)
		return above;
	if (pthread_attr_getstack(&attributes, &lowest, &size) == 0)
		above = (uintptr_t)lowest + size - (uintptr_t)local;
	pthread_attr_destroy(&attributes);
	return above;
}

/* Detached, all signals blocked. */
static bool start(void *(*run)(void *), void *argument, size_t stack)
{
	sigset_t all, before;
	pthread_attr_t attributes;
	pthread_t thread;
	int failed;

	if (pthread_attr_init(&attributes) != 0)
		return false;
	pthread_attr_setstacksize(&attributes, (stack | (LARGEST_PAGE - 1)) + 1);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pthread_create(&thread, &attributes, run, argument);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return failed == 0;
}

/*
 * In a program compiled with ThreadSanitizer its runtime sees what these threads do to memory by the C library's
 * functions, and not the agent's atomics, by which they do it in order: it would report races, and end a correct
 * program with another status. It looks away while one of them runs, and must look again before it ends. Where the
 * agent is compiled with it, for its tests, it sees both.
 */
#ifdef __SANITIZE_THREAD__
static void unwatched(bool begin)
{
	(void)begin;
}
#else
extern void __tsan_ignore_thread_begin(void) __attribute__((weak));
extern void __tsan_ignore_thread_end(void) __attribute__((weak));
static void unwatched(bool begin)
{
	if (__tsan_ignore_thread_begin != NULL && __tsan_ignore_thread_end != NULL)
		(begin ? __tsan_ignore_thread_begin : __tsan_ignore_thread_end)();
}
#endif

/* The thread of the end shares the descriptors of the one that answers. It sends the last sample, then it lets the
 * other one go. */
static void *run_end(void *unused)
{
	(void)unused;
	unwatched(true);
	pthread_setname_np(pthread_self(), "mpit-agent-end");
	wake_await(FOREVER);
	last_deliver(&standing);
	connection_enter_over();
	connection_shut(&standing);
	connection_leave();
	unwatched(false);
	return NULL;
}

/* A turn of its own, so that no connection comes up behind the end's back. */
static bool come_up(const struct link *l, struct answering *a)
{
	bool up;

	connection_enter();
	up = alive() && connection_open(&standing, &l->paths);
	if (up) {
		agent_log("connected, %s descriptor", standing.private ? "private" : "shared");
		wire_reset(&a->out);
		frame_hello(&a->out, l->identity, CONNECTION_STAYS);
		connection_send(&standing, &a->out); /* where that fails there is nothing to receive either */
	}
	connection_leave();
	return up;
}

static void come_down(void)
{
	connection_enter();
	connection_close(&standing);
	last_unasked();
	connection_leave();
}

/*
 * What the thread answers with. It stays when the thread ends: by then the program may have denied itself files, and
 * glibc, when it gives memory of a thread back, opens one of /proc first.
 */
static struct answering standing_answers;

static void *run(void *argument)
{
	const struct link *l = argument;
	struct answering *a = &standing_answers;
	uint64_t seed = l->identity->id[0];
	unsigned backoff = BACKOFF_FIRST_MS;
	bool told = false; /* in the log, that nobody listens */

	unwatched(true);
	free(a->request); /* of a thread before this one */
	wire_free(&a->out);
	mapped_free(&a->code);
	*a = (struct answering){ .session = l->session, .passive = l->identity->passive, .statistics.level = 1 };
	pthread_setname_np(pthread_self(), "mpit-agent");
	standing.private = own_table();
	if (standing.private && l->session->sourced.source != NULL)
		mapped_read(&a->code);
	/* Without the second thread this one would keep a program that leaves by pthread_exit. */
	if (!start(run_end, NULL, stack_above(&seed) + END_STACK)) {
		agent_log("no second thread can be made: only the last sample will be sent");
		word_set(&begun, 1);
		unwatched(false);
		return NULL;
	}
	a->request = malloc(WIRE_REQUEST_WORDS_MAX * sizeof *a->request);
	while (a->request != NULL && alive()) {
		bool served = false, up;

		if (filter_came()) {
			agent_log("a filter of system calls has come: no connection is made any more");
			break;
		}
		up = come_up(l, a);
		if (atomic_load(&begun) == 0)
			word_set(&begun, 1);
		if (up) {
			while (answer(a, &standing))
				served = true;
			come_down();
			answers_end(a);
			told = false;
		} else if (!told) {
			agent_log("no exporter listens at %s%s%s; trying on", l->paths.path[0],
				  l->paths.path[1][0] != '\0' ? " or " : "", l->paths.path[1]);
			told = true;
		}
		/* Who takes connections and asks nothing is refusing us: no reason to come back soon. */
		if (served)
			backoff = BACKOFF_FIRST_MS;
		if (alive())
			wake_await(monotonic_ns() + 1000000u * (uint64_t)jitter(&seed, backoff));
		backoff = 2 * backoff < BACKOFF_LAST_MS ? 2 * backoff : BACKOFF_LAST_MS;
	}
	word_set(&begun, 1);
	wake_threads(); /* the other one, too, where this one leaves by itself */
	unwatched(false);
	return NULL;
}

bool link_start(struct link *l)
{
	filter_begin();
	wake_prepare();
	connection_prepare();
	atomic_store(&begun, 0);
	if (!start(run, l, default_stack() + OWN_STACK))
		return false;
	/*
	 * The program may deny itself files and sockets right after MPI_Init (filter.h), and end for what the thread then
	 * still had to do: 0.2 to 0.8 ms on an idle machine.
	 */
	word_await(&begun, 0, monotonic_ns() + BEGIN_PATIENCE_NS);
	return true;
}

void link_stop(void)
{
	wake_threads();
}

void link_forked(void)
{
	connection_forked();
}
