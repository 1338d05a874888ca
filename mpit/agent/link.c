/* link.c - the agent's thread. */
#define _GNU_SOURCE
#include "link.h"

#include "agent.h"
#include "answers.h"
#include "hello.h"
#include "wake.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BACKOFF_FIRST_MS 20
#define BACKOFF_LAST_MS 2000
#define OWN_STACK (256u << 10) /* what we and MPI_T's functions may need */

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
	if (runtime != NULL && *runtime != '\0' && strlen(runtime) + sizeof "/" SOCKET_RUNTIME <= sizeof l->paths.path[1]) {
		size_t n = strlen(runtime);

		memcpy(l->paths.path[1], runtime, n);
		memcpy(l->paths.path[1] + n, "/" SOCKET_RUNTIME, sizeof "/" SOCKET_RUNTIME);
	}
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
		close((int)fd);
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
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd < 2);
	if (fd > 2)
		close(fd);
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

static void *run(void *argument)
{
	const struct link *l = argument;
	struct answering a = { .session = l->session, .passive = l->passive, .statistics.level = 1 };
	struct connection c = { .fd = -1 };
	uint64_t seed = l->identity->id[0];
	unsigned backoff = BACKOFF_FIRST_MS;
	bool told = false; /* in the log, that nobody listens */

	pthread_setname_np(pthread_self(), "mpit-agent");
	c.private = own_table();
	if (c.private)
		wake_prepare();
	a.request = malloc(WIRE_REQUEST_WORDS_MAX * sizeof *a.request);
	while (a.request != NULL && alive()) {
		bool served = false;

		if (connection_open(&c, &l->paths)) {
			agent_log("connected, %s descriptor", c.private ? "private" : "shared");
			wire_reset(&a.out);
			put_hello(&a.out, l->identity, CONNECTION_STAYS);
			if (connection_send(&c, &a.out))
				while (answer(&a, &c))
					served = true;
			connection_close(&c);
			answers_end(&a);
			told = false;
		} else if (!told) {
			agent_log("no exporter listens at %s%s%s; trying on", l->paths.path[0], l->paths.path[1][0] != '\0' ? " or " : "", l->paths.path[1]);
			told = true;
		}
		/* Who takes connections and asks nothing is refusing us: no reason to come back soon. */
		if (served)
			backoff = BACKOFF_FIRST_MS;
		if (alive())
			wake_sleep(-1, (int)jitter(&seed, backoff));
		backoff = 2 * backoff < BACKOFF_LAST_MS ? 2 * backoff : BACKOFF_LAST_MS;
	}
	wake_forget();
	free(a.request);
	wire_free(&a.out);
	return NULL;
}

bool link_start(struct link *l)
{
	sigset_t all, before;
	pthread_attr_t attributes;
	pthread_t thread;
	size_t stack;
	int failed;

	if (pthread_attr_init(&attributes) != 0)
		return false;
	/*
	 * Static TLS of the program's libraries counts against a thread's stack. The C library's default is at least as large as that,
	 * but under a small limit, or with a very large TLS, not much larger.
	 */
	if (pthread_attr_getstacksize(&attributes, &stack) == 0)
		pthread_attr_setstacksize(&attributes, stack + OWN_STACK);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pthread_create(&thread, &attributes, run, l);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return failed == 0;
}

void link_stop(void)
{
	connection_shut_shared();
	wake_thread();
}

void link_forked(void)
{
	wake_forget();
	connection_forked();
}
